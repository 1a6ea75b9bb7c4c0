"""Compares the RBAC objects of two releases.

In: the manifests of both. Out: an `AccessChange` for each role and binding that grants more or less than before. A rule
with several verbs and resources is split up first, so that a rule which was only split or reordered is no change, and
one more verb is one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from runup.release.decide.manifest import Manifest

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
    """Returns what each role and binding grants, by its name; the variants of one object are joined."""
    grants_by_object: dict[str, Grants] = {}
    for manifest in manifests:
        if manifest.identity.group != GROUP:
            continue
        pairs: Iterator[tuple[str, str]] = iter(())
        if manifest.identity.kind in _ROLES:
            pairs = _resource_verb_pairs(manifest.object)
        elif manifest.identity.kind in _BINDINGS:
            pairs = _role_subject_pairs(manifest.object)
        # Variants of one object for different clusters are joined: a grant of any of them exists in some cluster.
        own_grants = {
            resource: set(verbs) for resource, verbs in grants_by_object.get(str(manifest.identity), {}).items()
        }
        for resource, verb in pairs:
            own_grants.setdefault(resource, set()).add(verb)
        grants_by_object[str(manifest.identity)] = {
            resource: frozenset(verbs) for resource, verbs in own_grants.items()
        }
    return grants_by_object


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


def _role_subject_pairs(binding: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the bound role with each subject, for example ("ClusterRole view", "ServiceAccount shop/builder")."""
    role = binding.get("roleRef") or {}
    bound = f"{role.get('kind', '')} {role.get('name', '')}"
    for subject in _dicts(binding.get("subjects")):
        namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
        yield bound, f"{subject.get('kind', '')} {namespace}{subject.get('name', '')}"


def _lines_of_difference(grants: Grants, other_grants: Grants) -> tuple[str, ...]:
    """Returns a line `verb, verb: resource` for each resource with grants that `other_grants` does not have."""
    only_these = {resource: grants[resource] - other_grants.get(resource, frozenset()) for resource in sorted(grants)}
    return tuple(f"{', '.join(sorted(verbs))}: {resource}" for resource, verbs in only_these.items() if verbs)


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Returns the objects in a list of the manifest; what is no list has none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text_list(rule: dict[str, Any], key: str) -> list[str]:
    """Returns the strings in a list of the rule; a missing key has none."""
    value = rule.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
