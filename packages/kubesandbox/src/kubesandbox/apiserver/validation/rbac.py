"""Validation of the kinds of RBAC."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, Verbatim, not_supported
from kubesandbox.apiserver.schema.go_json import go_json
from kubesandbox.apiserver.validation.common import Faults

JSON = dict[str, Any]

_GROUP = "rbac.authorization.k8s.io"
_PATHS = "nonResourceURLs"


def role_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a Role: each rule has verbs and resources, and no non-resource URLs."""
    for index, rule in enumerate(obj.get("rules") or ()):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=True)


def cluster_role(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a ClusterRole: each rule has verbs, and either resources or non-resource URLs."""
    for index, rule in enumerate(obj.get("rules") or ()):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield FieldError(Fault.REQUIRED, "aggregationRule.clusterRoleSelectors", None, why)


def _rule_faults(rule: JSON, path: str, *, namespaced: bool) -> Faults:
    """Yields the faults of a rule; a namespaced one has no non-resource URLs."""
    if not rule.get("verbs"):
        yield FieldError(Fault.REQUIRED, f"{path}.verbs", None, "verbs must contain at least one value")
    if urls := rule.get(_PATHS):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield FieldError(Fault.INVALID, f"{path}.{_PATHS}", urls, why)
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield FieldError(Fault.INVALID, f"{path}.{_PATHS}", urls, why)
        return
    for key, label in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(key):
            why = f"resource rules must supply at least one {label}"
            yield FieldError(Fault.REQUIRED, f"{path}.{key}", None, why)


def role_binding(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a RoleBinding: a role of the namespace or of the cluster, and named subjects."""
    yield from _binding_faults(obj, old, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ClusterRoleBinding: a role of the cluster, and named subjects."""
    yield from _binding_faults(obj, old, ("ClusterRole",), namespaced=False)


def _binding_faults(obj: JSON, old: JSON | None, kinds: tuple[str, ...], *, namespaced: bool) -> Faults:
    """Yields the faults of a binding: its role, which never changes, and its subjects."""
    ref = obj.get("roleRef") or {}
    if ref.get("apiGroup") != _GROUP:
        yield not_supported("roleRef.apiGroup", ref.get("apiGroup") or "", (_GROUP,))
    if ref.get("kind") not in kinds:
        yield not_supported("roleRef.kind", ref.get("kind") or "", kinds)
    if not ref.get("name"):
        yield FieldError(Fault.REQUIRED, "roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject_faults(subject, f"subjects[{index}]", namespaced=namespaced)
    # roleRef is immutable: changing it would give the subjects another role's rights.
    if old is not None and ref != (old.get("roleRef") or {}):
        shown_ref = {"APIGroup": ref.get("apiGroup"), "Kind": ref.get("kind"), "Name": ref.get("name")}
        yield FieldError(Fault.INVALID, "roleRef", Verbatim(go_json(shown_ref)), "cannot change roleRef")


def _subject_faults(subject: JSON, path: str, *, namespaced: bool) -> Faults:
    """Yields the faults of one subject of a binding."""
    if not subject.get("name"):
        yield FieldError(Fault.REQUIRED, f"{path}.name")
    kind, group = subject.get("kind") or "", subject.get("apiGroup") or ""
    if kind == "ServiceAccount":
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield FieldError(Fault.REQUIRED, f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != _GROUP:
            yield not_supported(f"{path}.apiGroup", group, (_GROUP,))
    else:
        yield not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))
