"""Compares two releases: manifests, images, checks, feature gates, and RBAC.

Pure over two loaded payloads. Manifests of the same identity are the same object; if a release has several variants of
one (a CRD for each feature set), those for the same clusters are compared. An object that the newer release lacks stays
on clusters that had it, unless a manifest requests its deletion; the two are reported differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Any, Literal

from kubekit.lang.text import count
from runup.release.decide import inclusion, payload
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.object_diff import Change, changes

GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"Role", "ClusterRole"})
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})

Grants = dict[str, frozenset[str]]
"""Resource -> verbs; for a binding: role -> subjects."""


@dataclass(frozen=True, slots=True)
class AccessChange:
    """The difference of a role or binding, `object`: lines of what is newly granted, and of what is `taken` away."""

    object: str
    granted: tuple[str, ...]
    taken: tuple[str, ...]


def changed_grants(before: Iterable[Manifest], after: Iterable[Manifest]) -> tuple[AccessChange, ...]:
    """Returns every role and binding whose grants differ, also if it is new or removed."""
    grants_before, grants_after = _grants(before), _grants(after)
    access_changes = []
    for name in dict.fromkeys((*grants_after, *grants_before)):
        granted = _lines_of_difference(grants_after.get(name, {}), grants_before.get(name, {}))
        removed_grants = _lines_of_difference(grants_before.get(name, {}), grants_after.get(name, {}))
        if granted or removed_grants:
            access_changes.append(AccessChange(name, granted, removed_grants))
    return tuple(access_changes)


def _grants(manifests: Iterable[Manifest]) -> dict[str, Grants]:
    """Returns what each role and binding grants, by its name.

    Variants of one object for different clusters are joined: a grant of any of them exists in some cluster.
    """
    grants_by_object: dict[str, dict[str, set[str]]] = {}
    for manifest in manifests:
        if manifest.identity.group != GROUP:
            continue
        own_grants = grants_by_object.setdefault(str(manifest.identity), {})
        if manifest.identity.kind in _ROLES:
            for resource, verb in _resource_verb_pairs(manifest.object):
                own_grants.setdefault(resource, set()).add(verb)
        elif manifest.identity.kind in _BINDINGS:
            # The bound role with each subject, for example ("ClusterRole view", "ServiceAccount shop/builder").
            role = manifest.object.get("roleRef") or {}
            subjects = own_grants.setdefault(f"{role.get('kind', '')} {role.get('name', '')}", set())
            for subject in _dicts(manifest.object.get("subjects")):
                namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
                subjects.add(f"{subject.get('kind', '')} {namespace}{subject.get('name', '')}")
    return {
        name: {resource: frozenset(verbs) for resource, verbs in grants.items()}
        for name, grants in grants_by_object.items()
    }


def _resource_verb_pairs(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields each resource or path with each verb that the role grants, for example ("deployments.apps", "get").

    An aggregated role yields the labels of the ClusterRoles whose grants it takes over.
    """
    for rule in _dicts(role.get("rules")):
        verbs = _text_list(rule, "verbs")
        names = _text_list(rule, "resourceNames") or [""]
        for group, resource, name, verb in product(
            _text_list(rule, "apiGroups"), _text_list(rule, "resources"), names, verbs
        ):
            full = f"{resource}.{group}" if group else resource
            yield (f"{full} {name!r}" if name else full), verb
        for path, verb in product(_text_list(rule, "nonResourceURLs"), verbs):
            yield path, verb
    for selector in _dicts((role.get("aggregationRule") or {}).get("clusterRoleSelectors")):
        labels = selector.get("matchLabels") or {}
        yield f"whatever ClusterRoles labelled {', '.join(f'{k}={v}' for k, v in sorted(labels.items()))} grant", "all"


def _lines_of_difference(grants: Grants, other_grants: Grants) -> tuple[str, ...]:
    """Returns a line `verb, verb: resource` for each resource with grants that `other_grants` does not have."""
    only_these = {resource: grants[resource] - other_grants.get(resource, frozenset()) for resource in sorted(grants)}
    return tuple(f"{', '.join(sorted(verbs))}: {resource}" for resource, verbs in only_these.items() if verbs)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text_list(rule: dict[str, Any], key: str) -> list[str]:
    """Returns the strings in a list of the rule; a missing key has none."""
    value = rule.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


DELETE = "release.openshift.io/delete"
State = Literal["added", "removed", "changed", "deleted"]
# Annotations that select clusters: they distinguish the variants of one object.
_FOR_WHOM = (inclusion.FEATURE_SET, inclusion.FEATURE_GATE, inclusion.MAJOR_VERSION, inclusion.CAPABILITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestChange:
    """The change of one object. `deleted`: the newer release requests its deletion; `removed`: it no longer has it."""

    object: str
    state: State
    file: str
    changes: tuple[Change, ...] = ()
    variant: str = ""


@dataclass(frozen=True, slots=True)
class NameChange:
    """An image or a gate; `before` or `after` is empty if it is not in that release."""

    name: str
    before: str
    after: str

    @property
    def state(self) -> State:
        """Added, removed or changed."""
        return "added" if not self.before else "removed" if not self.after else "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The differences of two releases; `same` counts the manifests that do not differ."""

    images: tuple[NameChange, ...]
    manifests: tuple[ManifestChange, ...]
    same: int
    checks: tuple[ManifestChange, ...]
    gates: tuple[NameChange, ...]
    access: tuple[AccessChange, ...]


def difference_of(before: payload.Payload, after: payload.Payload) -> Difference:
    """Returns the changes from release `before` to release `after`."""
    manifests, same = _objects(before.manifests, after.manifests)
    checks, _ = _objects(before.checks, after.checks)
    return Difference(
        images=_names(before.image_references.images, after.image_references.images),
        manifests=manifests,
        same=same,
        checks=checks,
        gates=_names(_gates(before.manifests), _gates(after.manifests)),
        access=changed_grants(before.manifests, after.manifests),
    )


def is_deletion(manifest: Manifest) -> bool:
    """Reports whether a manifest requests the deletion of its object."""
    return (manifest.annotations or {}).get(DELETE) == "true"


def variant(manifest: Manifest) -> str:
    """Returns the clusters that a manifest is for, by its annotations; empty if it is for all."""
    annotations = manifest.annotations or {}
    selectors = [f"{key.rpartition('/')[2]}={annotations[key]}" for key in _FOR_WHOM if annotations.get(key)]
    profiles = sorted(
        key.rpartition("/")[2]
        for key, value in annotations.items()
        if value == "true" and key.startswith((inclusion.INCLUDE_PREFIX, inclusion.EXCLUDE_PREFIX))
    )
    return " ".join([*selectors, *([f"profiles={','.join(profiles)}"] if profiles else [])])


Variants = dict[Identity, list[Manifest]]


def _objects(before: Iterable[Manifest], after: Iterable[Manifest]) -> tuple[tuple[ManifestChange, ...], int]:
    """Returns the changed objects, and how many did not change."""
    objects_before, objects_after = _by_identity(before), _by_identity(after)
    manifest_changes: list[ManifestChange] = []
    same = 0
    for identity in dict.fromkeys((*objects_after, *objects_before)):
        unpaired = list(objects_before.get(identity, []))
        pairs: list[tuple[Manifest | None, Manifest | None]] = []
        alone: list[Manifest] = []
        # Manifests for the same clusters are a pair; the rest are paired in order.
        for new in objects_after.get(identity, []):
            old = next((candidate for candidate in unpaired if variant(candidate) == variant(new)), None)
            if old is None:
                alone.append(new)
            else:
                unpaired.remove(old)
                pairs.append((old, new))
        pairs += zip_longest(unpaired, alone)
        for before_it, after_it in pairs:
            change = _change_of(before_it, after_it, several=len(pairs) > 1)
            same += change is None
            manifest_changes += [change] if change else []
    return tuple(manifest_changes), same


def _by_identity(manifests: Iterable[Manifest]) -> Variants:
    variants: Variants = {}
    for manifest in manifests:
        variants.setdefault(manifest.identity, []).append(manifest)
    return variants


def _change_of(old: Manifest | None, new: Manifest | None, *, several: bool) -> ManifestChange | None:
    """Returns how an object changed, None if it did not; `several`: more than one manifest has its name."""
    manifest = new or old
    assert manifest is not None
    label = variant(manifest) if several else ""
    name = str(manifest.identity)
    if new is None:
        return ManifestChange(object=name, state="removed", file=manifest.file, variant=label)
    if is_deletion(new):
        return (
            None
            if old is not None and is_deletion(old)
            else ManifestChange(object=name, state="deleted", file=new.file, variant=label)
        )
    if old is None or is_deletion(old):
        return ManifestChange(object=name, state="added", file=new.file, variant=label)
    field_changes = changes(old.object, new.object) if old.raw != new.raw else ()
    return (
        ManifestChange(object=name, state="changed", file=new.file, changes=field_changes, variant=label)
        if field_changes
        else None
    )


def _names(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[NameChange, ...]:
    names = sorted({*before, *after})
    name_changes = (NameChange(name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(change for change in name_changes if change.before != change.after)


def _gates(manifests: Iterable[Manifest]) -> dict[str, str]:
    """Returns, for each gate of a release, the feature sets in which it is enabled, and the number of manifests using
    it.

    A release has one FeatureGate for each feature set; its status lists the enabled gates.
    """
    on: dict[str, set[str]] = {}
    users: dict[str, int] = {}
    for manifest in manifests:
        for name in inclusion.gates_of(manifest.annotations or {}):
            users[name] = users.get(name, 0) + 1
        if (manifest.identity.group, manifest.identity.kind) == ("config.openshift.io", "FeatureGate"):
            spec, status = (_dict(manifest.object.get(key)) for key in ("spec", "status"))
            value = spec.get("featureSet")
            feature_set = value if isinstance(value, str) and value else "Default"
            for entry in _dicts(status.get("featureGates")):
                for attribute in _dicts(entry.get("enabled")):
                    if isinstance(attribute.get("name"), str):
                        on.setdefault(attribute["name"], set()).add(feature_set)
    gates = {}
    for name in {*on, *users}:
        sets = f"on in {', '.join(sorted(on[name]))}" if name in on else "on in no feature set that the release names"
        number = users.get(name, 0)
        gates[name] = f"{sets}; {count(number, 'manifest')}"
    return gates


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
