"""Computes which rights roles and bindings gain and lose, and who has them (https://kubernetes.io/docs/reference/access-authn-authz/rbac/)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runup.rehearse.decide.rehearsal_outcome import RightsChange
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
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
    # `*/scale` stands for that subresource of every resource; a path may end in a star.
    if mine.startswith("*/"):
        return theirs.partition("/")[2] == mine[2:]
    return mine.endswith("*") and mine.startswith("/") and theirs.startswith(mine[:-1])


def rights_of(role: JSON | None) -> frozenset[Right]:
    """Returns the rights in a role's rules."""
    return frozenset(right for rule in (role or {}).get("rules") or () for right in _rights_of_rule(rule))


def _rights_of_rule(rule: JSON) -> Iterator[Right]:
    """Yields each right of an RBAC rule: verb, group, resource and name, or verb and path."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Right(verb, _PATH, path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name)


def rights_beyond(rights: Iterable[Right], held: frozenset[Right]) -> tuple[str, ...]:
    """Returns those of `rights` that `held` does not cover, as sorted text."""
    return tuple(sorted(str(right) for right in rights if not any(held_right.covers(right) for held_right in held)))


def subjects_of(binding: JSON | None) -> frozenset[str]:
    """Returns whom a binding names, as `KIND NAME`."""
    return frozenset(_subject_name(subject) for subject in (binding or {}).get("subjects") or ())


def _subject_name(subject: JSON) -> str:
    namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
    return f"{subject.get('kind')} {namespace}{subject.get('name')}"


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
    return RightsChange(identity, lost, gained, tuple(sorted(holders)))


def change_of_binding(
    identity: Identity, before: JSON | None, after: JSON | None, roles: Mapping[Identity, JSON]
) -> Iterator[RightsChange]:
    """Yields what subjects gain or lose that a binding names only before, or only after."""
    old, new = subjects_of(before), subjects_of(after)
    if lost_subjects := old - new:
        assert before is not None
        yield RightsChange(identity, _rights_of_bound_role(before, roles), (), tuple(sorted(lost_subjects)))
    if added := new - old:
        assert after is not None
        yield RightsChange(identity, (), _rights_of_bound_role(after, roles), tuple(sorted(added)))


def _rights_of_bound_role(binding: JSON, roles: Mapping[Identity, JSON]) -> tuple[str, ...]:
    role = role_of(binding)
    rights = rights_of(roles.get(role))
    return tuple(sorted(map(str, rights))) or (f"what {role.kind} {role.name} grants",)
