"""Role-based access control by the stored Roles and bindings, and the check against privilege escalation.

`Authorizer`: a user and the attributes of their request (`Target`) in, allowed or not out. `system:masters` may do
everything. Rules are read from the store on first use after a change, then cached by user. `Escalation` is called
before a Role or a binding is stored: no user grants rights that they lack, unless they may `escalate` the role or
`bind` it (k8s.io/kubernetes/pkg/registry/rbac). An aggregationRule can gather any right, so that it needs all.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubekit.lang.cel_authorizer import Decision
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Entry, Event, Store

_RBAC = ".rbac.authorization.k8s.io"
_RESOURCES = tuple(f"{plural}{_RBAC}" for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings"))
_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"Role", "ClusterRole"})
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
# The metadata that the garbage collector changes, for which it needs none of the role's rights.
_COLLECTED = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
# The rights that the writer of an aggregationRule needs (pkg/registry/rbac/clusterrole/policybased).
_FULL_AUTHORITY: tuple[JSON, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
# What rules are about; they ignore a request's selectors.
_ATTRIBUTES = frozenset({"verb", "path", "group", "resource", "subresource", "namespace", "name"})
_SHOWN = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A PolicyRule."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    def allows(self, attributes: Target) -> bool:
        """Returns whether this rule allows the request; the caller checks the namespace in which the rule holds."""
        if "*" not in self.verbs and attributes.verb not in self.verbs:
            return False
        if not attributes.is_resource:
            return any(covers_path(path, attributes.path) for path in self.paths)
        if "*" not in self.groups and attributes.group not in self.groups:
            return False
        named = "*" in self.resources or attributes.full_resource in self.resources
        if not named and (not attributes.subresource or f"*/{attributes.subresource}" not in self.resources):
            return False
        # A rule with resourceNames allows no create, and a list only with a field selector for the name.
        return not self.names or attributes.name in self.names


def covers_path(pattern: str, path: str) -> bool:
    """Returns whether a pattern such as `/healthz*` covers a path."""
    return pattern == "*" or pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def read_rule(raw: JSON) -> Rule:
    """Reads a PolicyRule as it is written in a Role."""
    return Rule(
        verbs=frozenset(raw.get("verbs") or ()),
        groups=frozenset(raw.get("apiGroups") or ()),
        resources=frozenset(raw.get("resources") or ()),
        names=frozenset(raw.get("resourceNames") or ()),
        paths=tuple(raw.get("nonResourceURLs") or ()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binding:
    name: str
    namespace: str  # where its rules hold; empty for everywhere
    role_kind: str
    role_name: str
    subjects: tuple[tuple[str, str, str], ...]  # kind, namespace, name

    def subject_of(self, user: User) -> tuple[str, str, str] | None:
        """Returns the subject by which the user is bound, or None."""
        for subject in self.subjects:
            kind, namespace, name = subject
            if kind == "User":
                is_user = name == user.name
            elif kind == "Group":
                is_user = name in user.groups
            else:
                # A subject without a namespace is in that of its RoleBinding.
                is_user = user.name == f"system:serviceaccount:{namespace or self.namespace}:{name}"
            if is_user:
                return subject
        return None

    def reason_text(self, user: User) -> str:
        """Returns the description of the binding as the reason for an allowed request."""
        kind, name, role = "ClusterRoleBinding", self.name, f'{self.role_kind} "{self.role_name}"'
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        subject = self.subject_of(user)
        assert subject is not None
        who = subject[2] if subject[0] != "ServiceAccount" else f"{subject[2]}/{subject[1] or self.namespace}"
        return f'{kind} "{name}" of {role} to {subject[0]} "{who}"'


def _read_binding(entry: Entry) -> _Binding:
    obj = entry.load()
    role = obj.get("roleRef") or {}
    subjects = (
        (one.get("kind", ""), one.get("namespace", ""), one.get("name", "")) for one in obj.get("subjects") or ()
    )
    return _Binding(
        name=entry.name,
        namespace=entry.namespace,
        role_kind=role.get("kind", ""),
        role_name=role.get("name", ""),
        subjects=tuple(subjects),
    )


class Authorizer:
    """RBAC over a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bindings: list[_Binding] | None = None
        self._by_user: dict[User, list[tuple[_Binding, Rule, JSON]]] = {}

        # Large writes are checked in a thread.
        self._lock = threading.RLock()

        def drop_cached(_: Event) -> None:
            with self._lock:
                self._bindings = None
                self._by_user.clear()

        for resource in _RESOURCES:
            store.subscribe(resource, drop_cached)

    def allowed(self, user: User, attributes: Target) -> bool:
        """Returns whether the user is allowed to make the request."""
        return "system:masters" in user.groups or self._granting_binding(user, attributes) is not None

    def reason(self, user: User, attributes: Target) -> str:
        """Returns why the request is allowed, or what prevented an evaluation; "" if there is nothing to report."""
        if "system:masters" in user.groups:
            return ""
        if (binding := self._granting_binding(user, attributes)) is not None:
            return f"RBAC: allowed by {binding.reason_text(user)}"
        missing = list(dict.fromkeys(self._missing_roles(user, attributes)))
        if not missing:
            return ""
        return f"RBAC: {missing[0]}" if len(missing) == 1 else f"RBAC: [{', '.join(missing)}]"

    def decide(self, about: Mapping[str, Any]) -> Decision:
        """Returns the decision on the attributes of a request that an expression asks about."""
        info = about["user"]
        user = User(info["username"], groups=tuple(info.get("groups") or ()))
        details = {key: value for key, value in about.items() if key in _ATTRIBUTES}
        attributes = Target(is_resource="path" not in about, **details)
        return Decision(self.allowed(user, attributes), self.reason(user, attributes))

    def require(self, user: User, attributes: Target) -> None:
        """Raises ApiError 403, worded as the real server words it, unless the user is allowed to make the request."""
        if not self.allowed(user, attributes):
            reason = self.reason(user, attributes)
            more = f": {reason}" if reason else ""
            if not attributes.is_resource:
                why = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{more}'
                raise status_errors.forbidden("", "", "", why)
            scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
            resource_text = f'resource "{attributes.full_resource}" in API group "{attributes.group}"'
            why = f'User "{user.name}" cannot {attributes.verb} {resource_text} {scope}{more}'
            raise status_errors.forbidden(attributes.resource, attributes.group, attributes.name, why)

    def rules(self, user: User, namespace: str) -> list[JSON]:
        """Returns the rules, as written, that apply to a user in a namespace (SelfSubjectRulesReview)."""
        return [raw for binding, _, raw in self._rules_of(user) if binding.namespace in {"", namespace}]

    def has_role(self, kind: str, name: str, namespace: str) -> bool:
        """Returns whether a Role or ClusterRole exists."""
        role_key = ("roles", namespace) if kind == "Role" else ("clusterroles", "")
        return self._store.get(f"{role_key[0]}{_RBAC}", role_key[1], name) is not None

    def _granting_binding(self, user: User, attributes: Target) -> _Binding | None:
        """Returns the first binding of the user that grants the request, None if none does."""
        for binding, rule, _ in self._rules_of(user):
            holds = not binding.namespace or (attributes.is_resource and binding.namespace == attributes.namespace)
            if holds and rule.allows(attributes):
                return binding
        return None

    def _missing_roles(self, user: User, attributes: Target) -> Iterator[str]:
        for binding in self._bindings_of(user):
            holds = not binding.namespace or (attributes.is_resource and binding.namespace == attributes.namespace)
            if holds and not self.has_role(binding.role_kind, binding.role_name, binding.namespace):
                yield f'{binding.role_kind.lower()}{_RBAC} "{binding.role_name}" not found'

    def _bindings_of(self, user: User) -> list[_Binding]:
        with self._lock:
            if self._bindings is None:
                self._bindings = [
                    _read_binding(entry)
                    for plural in ("clusterrolebindings", "rolebindings")
                    for entry in self._store.items(f"{plural}{_RBAC}")
                ]
            return [binding for binding in self._bindings if binding.subject_of(user) is not None]

    def _rules_of(self, user: User) -> list[tuple[_Binding, Rule, JSON]]:
        """Returns the user's bindings, each with one of its rules, parsed and as written; kept until RBAC changes."""
        with self._lock:
            bound_rules = self._by_user.get(user)
            if bound_rules is None:
                bound_rules = [
                    (binding, read_rule(raw), raw)
                    for binding in self._bindings_of(user)
                    for raw in self.role_rules(binding.role_kind, binding.role_name, binding.namespace)
                ]
                if len(self._by_user) > 1_000:
                    self._by_user.clear()
                self._by_user[user] = bound_rules
            return bound_rules

    def role_rules(self, kind: str, name: str, namespace: str) -> Iterable[JSON]:
        """Returns the rules of a Role or ClusterRole, aggregated ones included; none if it does not exist."""
        if kind == "Role":
            entry = self._store.get(f"roles{_RBAC}", namespace, name)
            return (entry.load().get("rules") or ()) if entry else ()
        # An aggregated role has the rules of all ClusterRoles that one of its selectors matches, and of those that
        # these gather (k8s.io/kubernetes/pkg/controller/clusterroleaggregation). Roles may select each other.
        rules: list[JSON] = []
        names, known = [name], {name}
        for each in names:
            entry = self._store.get(f"clusterroles{_RBAC}", "", each)
            role: JSON = entry.load() if entry is not None else {}
            if not (selectors := _aggregation_selectors(role)):
                rules += role.get("rules") or ()
                continue
            others = [one for one in self._store.items(f"clusterroles{_RBAC}") if one.name not in known]
            gathered = [one.name for one in others if any(_selects(selector, one.labels) for selector in selectors)]
            names += gathered
            known.update(gathered)
        return rules


class Escalation:
    """The privilege escalation check for every writer."""

    def __init__(self, authz: Authorizer) -> None:
        self._authz = authz

    def check(self, options: WriteOptions, kind: Kind, obj: JSON, old: JSON | None) -> None:
        """Raises ApiError 403 if a write grants more than its user has; the server itself (no user) may grant all."""
        user = options.user
        if user is None or kind.group != _GROUP or "system:masters" in user.groups:
            return
        if old is not None and _without_bookkeeping(obj) == _without_bookkeeping(old):
            return
        namespace = meta(obj).get("namespace", "")
        if kind.kind in _ROLES:
            name = options.target.name if options.target is not None else ""
            escalating = Target(verb="escalate", group=_GROUP, resource=kind.plural, namespace=namespace, name=name)
            if self._authz.allowed(user, escalating):
                return
            rules = list(obj.get("rules") or ())
        else:
            rules = self._bound_rules(user, kind, namespace, obj)
        held = self._authz.rules(user, namespace)
        if missing := _missing_rules(held, rules):
            groups = " ".join(json.dumps(group) for group in user.groups)
            why = (
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
            )
            # Rules that differ only in their verb are shown as one.
            merged: dict[str, JSON] = {}
            for part in missing:
                key = json.dumps({name: value for name, value in part.items() if name != "verbs"})
                verbs = merged.setdefault(key, {**part, "verbs": []})["verbs"]
                verbs += [verb for verb in part["verbs"] if verb not in verbs]
            texts = [
                ", ".join(
                    f"{name}:[{' '.join(map(json.dumps, rule[key]))}]" for key, name in _SHOWN.items() if rule.get(key)
                )
                for rule in merged.values()
            ]
            why += "\n".join(sorted(f"{{{text}}}" for text in texts))
            raise status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)
        is_aggregated = kind.kind == "ClusterRole" and any(map(_aggregation_selectors, (obj, old or {})))
        if is_aggregated and _missing_rules(held, _FULL_AUTHORITY):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), why)

    def _bound_rules(self, user: User, kind: Kind, namespace: str, obj: JSON) -> list[JSON]:
        """Returns the rules that the writer of a binding must hold."""
        if kind.kind not in _BINDINGS:
            return []
        ref = obj.get("roleRef") or {}
        role, name = ref.get("kind") or "", ref.get("name") or ""
        plural = f"{role.lower()}s"
        attributes = Target(verb="bind", group=_GROUP, resource=plural, namespace=namespace, name=name)
        if self._authz.allowed(user, attributes):
            return []
        if not self._authz.has_role(role, name, namespace):
            # Like the real server, the error names the resource that is written, not the missing role.
            raise status_errors.not_found(kind.plural, _GROUP, name)
        return list(self._authz.role_rules(role, name, namespace))


def _aggregation_selectors(role: JSON) -> list[JSON]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _selects(selector: JSON, labels: dict[str, str]) -> bool:
    try:
        return codec.convert(LabelSelector, selector).matches(labels)
    except codec.DecodeError:  # of an object that was restored without validation
        return False


def _missing_rules(held: list[JSON], rules: Iterable[JSON]) -> list[JSON]:
    """Returns the parts of `rules`, each of one verb on one resource or URL, that no rule of `held` grants."""
    parts = (part for rule in rules for part in _single_rules(rule))
    return [part for part in parts if not any(_covers_part(rule, part) for rule in held)]


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
    for key in ("verbs", "apiGroups"):
        held = rule.get(key) or []
        if "*" not in held and not {*(part.get(key) or ())} <= {*held}:
            return False
    held = rule.get("resources") or []
    for resource in part.get("resources") or ():
        _, slash, subresource = resource.partition("/")
        if not ("*" in held or resource in held or (slash and f"*/{subresource}" in held)):
            return False
    patterns = rule.get("nonResourceURLs") or []
    if not all(any(covers_path(pattern, url) for pattern in patterns) for url in part.get("nonResourceURLs") or ()):
        return False
    names, needed = rule.get("resourceNames") or [], part.get("resourceNames") or []
    return not names or bool(needed and {*needed} <= {*names})
