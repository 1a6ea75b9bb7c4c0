"""Who may do what, and how that changes from one release to another: RBAC in words, `+` and `-` rule by rule.

A rule with several verbs and resources is taken apart, so that a rule that was only split or put in another order is no
change, and one more verb is one line.
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
"""What is granted -> the verbs; for a binding: role -> subjects."""


@dataclass(frozen=True, slots=True)
class AccessChange:
    """A role or binding: what is granted now that was not, and what is not any more."""

    object: str
    granted: tuple[str, ...]
    taken: tuple[str, ...]


def changed(before: Iterable[Manifest], after: Iterable[Manifest]) -> tuple[AccessChange, ...]:
    """Every role and binding whose grants differ, be it that it is new or gone."""
    was, now = _grants(before), _grants(after)
    found = []
    for name in dict.fromkeys((*now, *was)):
        granted = _lines(now.get(name, {}), was.get(name, {}))
        taken = _lines(was.get(name, {}), now.get(name, {}))
        if granted or taken:
            found.append(AccessChange(name, granted, taken))
    return tuple(found)


def _grants(manifests: Iterable[Manifest]) -> dict[str, Grants]:
    found: dict[str, Grants] = {}
    for manifest in manifests:
        if manifest.identity.group != GROUP:
            continue
        pairs: Iterator[tuple[str, str]] = iter(())
        if manifest.identity.kind in _ROLES:
            pairs = _of_role(manifest.object)
        elif manifest.identity.kind in _BINDINGS:
            pairs = _of_binding(manifest.object)
        # Variants of one object for different clusters count together: what any of them grants is granted somewhere.
        own = {what: set(verbs) for what, verbs in found.get(str(manifest.identity), {}).items()}
        for what, verb in pairs:
            own.setdefault(what, set()).add(verb)
        found[str(manifest.identity)] = {what: frozenset(verbs) for what, verbs in own.items()}
    return found


def _of_role(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for rule in _dicts(role.get("rules")):
        verbs = _texts(rule, "verbs")
        names = _texts(rule, "resourceNames") or [""]
        for group, resource, name, verb in product(_texts(rule, "apiGroups"), _texts(rule, "resources"), names, verbs):
            full = f"{resource}.{group}" if group else resource
            yield (f"{full} {name!r}" if name else full), verb
        for path, verb in product(_texts(rule, "nonResourceURLs"), verbs):
            yield path, verb
    for selector in _dicts((role.get("aggregationRule") or {}).get("clusterRoleSelectors")):
        labels = selector.get("matchLabels") or {}
        yield f"whatever ClusterRoles labelled {', '.join(f'{k}={v}' for k, v in sorted(labels.items()))} grant", "all"


def _of_binding(binding: dict[str, Any]) -> Iterator[tuple[str, str]]:
    role = binding.get("roleRef") or {}
    bound = f"{role.get('kind', '')} {role.get('name', '')}"
    for subject in _dicts(binding.get("subjects")):
        namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
        yield bound, f"{subject.get('kind', '')} {namespace}{subject.get('name', '')}"


def _lines(these: Grants, but: Grants) -> tuple[str, ...]:
    left = {what: these[what] - but.get(what, frozenset()) for what in sorted(these)}
    return tuple(f"{', '.join(sorted(verbs))}: {what}" for what, verbs in left.items() if verbs)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(rule: dict[str, Any], key: str) -> list[str]:
    value = rule.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
