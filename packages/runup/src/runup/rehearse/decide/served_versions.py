"""The effects of the next API server on a cluster: versions that it no longer serves, rights, and refusals."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.decide.removal_tables import removed_versions, table
from runup.rehearse.decide.rehearsal_outcome import LeftOut, RefusalKind, RightsChange, Unserved
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
# Programs of the control plane, which is of the target when the target is there.
_CONTROL_PLANE = frozenset({"kube-apiserver", "kube-controller-manager", "kube-scheduler"})


def unserved(objects: Iterable[JSON], source: int, target: int) -> tuple[Unserved, ...]:
    """Returns the objects that are written in a version which goes between two minor versions, and by whom."""
    return _users_of_versions(objects, removed_versions(source, target))


def unserved_by_server(
    objects: Iterable[JSON], served: Collection[tuple[str, str, str]], source: int, server: int
) -> tuple[Unserved, ...]:
    """Returns the objects in versions of Kubernetes' own groups that a server does not serve, and who wrote them.

    `served` has group, version and kind of all that it does; `source` and `server` are the minor versions. What an
    object was written in, in a group that is now another, is of the table of removed versions.
    """
    all_objects = list(objects)
    used = {
        (*_group_and_version(api_version), str(obj["kind"]))
        for obj in all_objects
        for api_version, _ in _versions_of_object(obj)
        if _group_and_version(api_version)[0] == _group_and_version(str(obj["apiVersion"]))[0]
    }
    removed = {triple: server for triple in used if triple not in served and is_built_in(triple[0])}
    return _users_of_versions(all_objects, {**removed, **removed_versions(source, server)})


def _group_and_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _users_of_versions(objects: Iterable[JSON], removed: Mapping[tuple[str, str, str], int]) -> tuple[Unserved, ...]:
    """Returns the objects written in each removed version, with their field managers."""
    users: dict[tuple[str, str, str], dict[Identity, set[str]]] = {}
    for obj in objects:
        kind = str(obj["kind"])
        for api_version, manager in _versions_of_object(obj):
            group, version = _group_and_version(api_version)
            if (group, version, kind) in removed:
                metadata = obj["metadata"]
                identity = Identity(group, kind, metadata.get("namespace") or "", metadata["name"])
                writers = users.setdefault((group, version, kind), {}).setdefault(identity, set())
                writers |= {manager} if manager else set()
    return tuple(
        Unserved(
            group=group,
            version=version,
            kind=kind,
            minor=removed[group, version, kind],
            objects=tuple(sorted(by_object, key=str)),
            writers=tuple(sorted(set[str]().union(*by_object.values()))),
        )
        for (group, version, kind), by_object in sorted(users.items())
    )


def _versions_of_object(obj: JSON) -> Iterator[tuple[str, str]]:
    """Yields the versions in which the object is shown or was written, and by which manager."""
    yield str(obj["apiVersion"]), ""
    for entry in obj["metadata"].get("managedFields") or ():
        if isinstance(entry, dict) and entry.get("manager") not in _CONTROL_PLANE:
            yield str(entry.get("apiVersion") or ""), str(entry.get("manager") or "")


def kinds_losing_versions(source: int, target: int) -> tuple[tuple[str, str], ...]:
    """Returns group and kind of all that loses a version between two minor versions."""
    return tuple(sorted({(group, kind) for group, _, kind in removed_versions(source, target)}))


def kinds_beyond_table(target: int) -> tuple[LeftOut, ...]:
    """Returns the unknowns about that minor version, because the table does not reach it."""
    in_table = table("removed-apis")
    if in_table.knows(target):
        return ()
    text = f"what Kubernetes 1.{target} removes is not known: the table reaches 1.{in_table.last}, of {in_table.date}"
    return (LeftOut("versions of the API", text),)


GROUP = "rbac.authorization.k8s.io"
ROLES = frozenset({"Role", "ClusterRole"})
BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
_ALL = "*"


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource of a group (or on a path); `name` limits it to one object."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def covers(self, other: Right) -> bool:
        """Returns whether this right includes the other."""
        # The group and resource of a path are not those of an object.
        if (self.group == _PATH) != (other.group == _PATH):
            return False
        pairs = ((self.verb, other.verb), (self.group, other.group))
        if not all(mine in (_ALL, theirs) for mine, theirs in pairs):
            return False
        return _resource_covers(self.resource, other.resource) and self.name in ("", other.name)

    def __str__(self) -> str:
        if self.group == _PATH:
            return f"{self.verb} {self.resource}"
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}{f' {self.name}' if self.name else ''}"


_PATH = "(path)"


def _resource_covers(mine: str, theirs: str) -> bool:
    """Reports whether a rule's resource or path matches another, by the wildcards of RBAC."""
    if mine in (_ALL, theirs):
        return True
    # `*/scale` represents that subresource of every resource; a path may end in a star.
    if mine.startswith("*/"):
        return theirs.partition("/")[2] == mine[2:]
    return mine.endswith("*") and mine.startswith("/") and theirs.startswith(mine[:-1])


def rights_of(role: JSON | None) -> frozenset[Right]:
    """Returns the rights in a role's rules."""
    rights: set[Right] = set()
    for rule in (role or {}).get("rules") or ():
        names, resources = rule.get("resourceNames") or ("",), rule.get("resources") or ()
        for verb in rule.get("verbs") or ():
            rights |= {Right(verb, _PATH, path) for path in rule.get("nonResourceURLs") or ()}
            for group in rule.get("apiGroups") or ():
                rights |= {Right(verb, group, resource, name) for resource in resources for name in names}
    return frozenset(rights)


def rights_beyond(rights: Iterable[Right], held: frozenset[Right]) -> tuple[str, ...]:
    """Returns those of `rights` that `held` does not cover, as sorted text."""
    return tuple(sorted(str(right) for right in rights if not any(held_right.covers(right) for held_right in held)))


def subjects_of(binding: JSON | None) -> frozenset[str]:
    """Returns whom a binding names, as `KIND NAME`."""
    subjects = set()
    for subject in (binding or {}).get("subjects") or ():
        namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
        subjects.add(f"{subject.get('kind')} {namespace}{subject.get('name')}")
    return frozenset(subjects)


def role_of(binding: JSON) -> Identity:
    """Returns the role that a binding names."""
    ref = binding.get("roleRef") or {}
    namespace = (binding.get("metadata") or {}).get("namespace") or "" if ref.get("kind") == "Role" else ""
    return Identity(GROUP, str(ref.get("kind") or ""), namespace, str(ref.get("name") or ""))


def change_of_role(
    identity: Identity, before: JSON | None, after: JSON | None, bindings: Iterable[JSON]
) -> RightsChange | None:
    """Returns how the rights in a role change, and who has the role; None if they stay.

    An aggregated role's rules are its controller's, which the copy does not run.
    """
    if any("aggregationRule" in (role or {}) for role in (before, after)):
        return None
    old, new = rights_of(before), rights_of(after)
    lost, gained = rights_beyond(old, new), rights_beyond(new, old)
    if not lost and not gained:
        return None
    holders = {name for binding in bindings if role_of(binding) == identity for name in subjects_of(binding)}
    return RightsChange(identity=identity, lost=lost, gained=gained, subjects=tuple(sorted(holders)))


def change_of_binding(
    identity: Identity, before: JSON | None, after: JSON | None, roles: Mapping[Identity, JSON]
) -> Iterator[RightsChange]:
    """Yields what subjects gain or lose that a binding names only before, or only after."""
    old, new = subjects_of(before), subjects_of(after)
    if lost_subjects := old - new:
        assert before is not None
        rights = _rights_of_bound_role(before, roles)
        yield RightsChange(identity=identity, lost=rights, gained=(), subjects=tuple(sorted(lost_subjects)))
    if added := new - old:
        assert after is not None
        rights = _rights_of_bound_role(after, roles)
        yield RightsChange(identity=identity, lost=(), gained=rights, subjects=tuple(sorted(added)))


def _rights_of_bound_role(binding: JSON, roles: Mapping[Identity, JSON]) -> tuple[str, ...]:
    role = role_of(binding)
    rights = rights_of(roles.get(role))
    return tuple(sorted(map(str, rights))) or (f"what {role.kind} {role.name} grants",)


# k8s.io/apiserver/pkg/admission/plugin/policy/validating: how a denial is worded.
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_NOT_COMPILED = "compilation error:"
_QUOTA = "exceeded quota:"
# k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation.
_STORED_VERSION = "status.storedVersions"
# Words of k8s.io/kubernetes/pkg/apis/*/validation and of apimachinery for fields that are fixed at creation.
_IMMUTABLE = (
    "field is immutable",
    "may not be changed",
    "may not change once set",
    "cannot change roleRef",
    "is forbidden from being changed",
    "updates to statefulset spec for fields other than",
    "spec is immutable after creation",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
    "may not be updated",
)


def kind_of(message: str) -> tuple[RefusalKind, str]:
    """Returns why an answer with that message refuses, and the policy that did, if one did."""
    if match := _POLICY.search(message):
        # A server does not take a policy that it cannot compile: what fails here is the copy's own.
        kind = RefusalKind.NOT_KNOWN if _NOT_COMPILED in message else RefusalKind.POLICY
        return kind, match[1]
    if _QUOTA in message:
        return RefusalKind.QUOTA, ""
    if _STORED_VERSION in message:
        return RefusalKind.STORED_VERSION, ""
    if any(phrase in message for phrase in _IMMUTABLE):
        return RefusalKind.IMMUTABLE, ""
    return RefusalKind.INVALID, ""
