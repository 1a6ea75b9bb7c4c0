"""The check against privilege escalation, before a Role or a binding is stored: no user grants rights that they lack.

In: the writer and the object. Raises ApiError 403 naming the missing rights, unless the writer may `escalate` the role,
or `bind` it. Follows k8s.io/kubernetes/pkg/registry/rbac.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.authz import Attributes, Authorizer, covers_path
from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"Role", "ClusterRole"})
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
# The metadata that the garbage collector changes, for which it needs none of the role's rights.
_COLLECTED = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class Escalation:
    """The privilege escalation check for every writer."""

    def __init__(self, authz: Authorizer) -> None:
        self._authz = authz

    def check(self, user: User | None, kind: Kind, namespace: str, obj: JSON, old: JSON | None) -> None:
        """Raises ApiError 403 if a write grants more than `user` has; the server itself (no user) may grant all."""
        if user is None or kind.group != _GROUP or "system:masters" in user.groups:
            return
        if old is not None and _without_bookkeeping(obj) == _without_bookkeeping(old):
            return
        rules = self._granted_rules(user, kind, namespace, obj, old)
        held = self._authz.rules(user, namespace)
        missing = [
            part for rule in rules for part in _single_rules(rule) if not any(_covers_part(rule, part) for rule in held)
        ]
        if missing:
            groups = " ".join(json.dumps(group) for group in user.groups)
            why = (
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
            )
            why += "\n".join(sorted(map(_rule_text, _merge_verbs(missing))))
            raise status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)

    def _granted_rules(self, user: User, kind: Kind, namespace: str, obj: JSON, old: JSON | None) -> list[JSON]:
        """Returns the rules that the writer must hold."""
        if kind.kind in _ROLES:
            name = meta(obj).get("name", "") if old is not None else ""
            allowed = self._authz.allowed(user, Attributes("escalate", _GROUP, kind.plural, "", namespace, name))
            return [] if allowed else list(obj.get("rules") or ())
        if kind.kind not in _BINDINGS:
            return []
        ref = obj.get("roleRef") or {}
        role, name = ref.get("kind") or "", ref.get("name") or ""
        if self._authz.allowed(user, Attributes("bind", _GROUP, f"{role.lower()}s", "", namespace, name)):
            return []
        if not self._authz.has_role(role, name, namespace):
            # Like the real server, the error names the resource that is written, not the missing role.
            raise status_errors.not_found(kind.plural, _GROUP, name)
        return list(self._authz.role_rules(role, name, namespace))


def _without_bookkeeping(obj: JSON) -> JSON:
    metadata = {key: value for key, value in meta(obj).items() if key not in _COLLECTED}
    return {**obj, "metadata": metadata}


def _single_rules(rule: JSON) -> Iterator[JSON]:
    """Yields the rule as rules of one verb on one resource or URL each."""
    for verb in rule.get("verbs") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                part = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                names = rule.get("resourceNames") or ()
                yield from ({**part, "resourceNames": [name]} for name in names)
                if not names:
                    yield part
        for url in rule.get("nonResourceURLs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def _covers_part(rule: JSON, part: JSON) -> bool:
    """Returns whether a rule grants all that the rule `part` grants."""
    return (
        _holds_values(rule, part, "verbs")
        and _holds_values(rule, part, "apiGroups")
        and all(_covers_resource(rule, resource) for resource in part.get("resources") or ())
        and all(
            any(covers_path(pattern, url) for pattern in rule.get("nonResourceURLs") or ())
            for url in _non_resource_urls(part)
        )
        and (not rule.get("resourceNames") or _holds_values(rule, part, "resourceNames", needed=True))
    )


def _non_resource_urls(part: JSON) -> list[str]:
    return part.get("nonResourceURLs") or []


def _holds_values(rule: JSON, part: JSON, key: str, *, needed: bool = False) -> bool:
    held_values, required_values = rule.get(key) or [], part.get(key) or []
    if needed and not required_values:
        return False
    return ("*" in held_values and key != "resourceNames") or {*required_values} <= {*held_values}


def _covers_resource(rule: JSON, resource: str) -> bool:
    held_resources = rule.get("resources") or []
    _, slash, subresource = resource.partition("/")
    return "*" in held_resources or resource in held_resources or bool(slash and f"*/{subresource}" in held_resources)


def _merge_verbs(parts: list[JSON]) -> list[JSON]:
    """Merges rules that differ only in their verb."""
    rules: dict[str, JSON] = {}
    for part in parts:
        key = json.dumps({name: value for name, value in part.items() if name != "verbs"})
        merged_rule = rules.setdefault(key, {**part, "verbs": []})
        merged_rule["verbs"] = [
            *merged_rule["verbs"],
            *(verb for verb in part["verbs"] if verb not in merged_rule["verbs"]),
        ]
    return list(rules.values())


_SHOWN = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _rule_text(rule: JSON) -> str:
    parts = [f"{name}:[{' '.join(map(json.dumps, rule[key]))}]" for key, name in _SHOWN.items() if rule.get(key)]
    return f"{{{', '.join(parts)}}}"
