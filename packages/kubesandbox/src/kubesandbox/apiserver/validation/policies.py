"""Validation of RBAC, admission policies, PriorityClasses and RuntimeClasses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubekit.lang.cel import RESERVED_WORDS, CelError, compile_cel
from kubekit.lang.cel_types import DYN, CelType, type_faults
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema.cel_declarations import POLICY_VARIABLES, type_or_dyn, variables_type
from kubesandbox.apiserver.schema.object_meta import dns1123_label_faults
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, changed_paths, selector_faults

JSON = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_PATHS = "nonResourceURLs"
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = RESERVED_WORDS | {"true", "false", "null", "in"}


def role_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a Role: each rule has verbs and resources, and no non-resource URLs."""
    for index, rule in enumerate(obj.get("rules") or ()):
        yield from _role_rule_faults(rule, f"rules[{index}]", namespaced=True)


def cluster_role(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a ClusterRole: each rule has verbs, and either resources or non-resource URLs."""
    for index, rule in enumerate(obj.get("rules") or ()):
        yield from _role_rule_faults(rule, f"rules[{index}]", namespaced=False)
    aggregation = obj.get("aggregationRule")
    for index, selector in enumerate((aggregation or {}).get("clusterRoleSelectors") or ()):
        yield from selector_faults(selector, f"aggregationRule.clusterRoleSelectors[{index}]")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield field.required("aggregationRule.clusterRoleSelectors", why)


def _role_rule_faults(rule: JSON, path: str, *, namespaced: bool) -> Faults:
    """Yields the faults of a rule; a namespaced one has no non-resource URLs."""
    if not rule.get("verbs"):
        yield field.required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get(_PATHS):
        if namespaced:
            yield field.invalid(f"{path}.{_PATHS}", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield field.invalid(f"{path}.{_PATHS}", urls, why)
        return
    for key, label in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(key):
            yield field.required(f"{path}.{key}", f"resource rules must supply at least one {label}")


def role_binding(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a RoleBinding: a role of the namespace or of the cluster, and named subjects."""
    yield from _binding_faults(obj, old, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ClusterRoleBinding: a role of the cluster, and named subjects."""
    yield from _binding_faults(obj, old, ("ClusterRole",), namespaced=False)


def _binding_faults(obj: JSON, old: JSON | None, kinds: tuple[str, ...], *, namespaced: bool) -> Faults:
    """Yields the faults of a binding: its role, which never changes, and its subjects."""
    ref = obj.get("roleRef") or {}
    if ref.get("apiGroup") != _RBAC:
        yield field.not_supported("roleRef.apiGroup", ref.get("apiGroup") or "", (_RBAC,))
    if ref.get("kind") not in kinds:
        yield field.not_supported("roleRef.kind", ref.get("kind") or "", kinds)
    if not ref.get("name"):
        yield field.required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        path = f"subjects[{index}]"
        if not subject.get("name"):
            yield field.required(f"{path}.name")
        kind, group = subject.get("kind") or "", subject.get("apiGroup") or ""
        if kind == "ServiceAccount":
            if group:
                yield field.not_supported(f"{path}.apiGroup", group, ("",))
            if not namespaced and not subject.get("namespace"):
                yield field.required(f"{path}.namespace")
        elif kind in ("User", "Group"):
            if group != _RBAC:
                yield field.not_supported(f"{path}.apiGroup", group, (_RBAC,))
        else:
            yield field.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))
    # roleRef is immutable: changing it would give the subjects another role's rights.
    if old is not None and ref != (old.get("roleRef") or {}):
        shown_ref = {"APIGroup": ref.get("apiGroup"), "Kind": ref.get("kind"), "Name": ref.get("name")}
        yield field.invalid("roleRef", field.Verbatim(field.go_json(shown_ref)), "cannot change roleRef")


# -- PriorityClasses and RuntimeClasses --------------------------------------------------------------------------------

# The greatest value of a class that is not a system class (pkg/apis/scheduling: HighestUserDefinablePriority).
_GREATEST = 1_000_000_000
# The classes of system pods and their values (SystemPriorityClasses).
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def priority_class(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PriorityClass: reserved names, the greatest value, what may not change."""
    name, value = obj["metadata"].get("name", ""), obj.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield field.forbidden("value", "may not be changed in an update.")
        yield from changed_paths(obj, old, "preemptionPolicy")
        return
    if name.startswith("system-"):
        system_value = SYSTEM_CLASSES.get(name)
        why = f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""
        if system_value is None:
            why = f"{name} is not a known system priority class"
        elif value != system_value:
            why = f"value of {name} PriorityClass must be {system_value}"
        if why:
            reserved = "priority class names with 'system-' prefix are reserved for system use only."
            yield field.forbidden("metadata.name", f"{reserved} error: {why}")
    elif value > _GREATEST:
        yield field.forbidden("value", f"maximum allowed value of a user defined priority is {_GREATEST}")
    if (policy := obj.get("preemptionPolicy")) is not None:
        yield from field.one_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def runtime_class(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a RuntimeClass: an overhead below 0, and a handler that is no DNS label, or that changes."""
    for name, amount in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        if str(amount).startswith("-"):
            yield field.invalid(f"overhead.limits[{name}]", str(amount), NOT_NEGATIVE)
    if old is not None:
        yield from changed_paths(obj, old, "handler")
        return
    handler = obj.get("handler") or ""
    if why := "must not contain dots" if "." in handler else dns1123_label_faults(handler):
        yield field.invalid("handler", handler, why)


# -- ValidatingAdmissionPolicies ---------------------------------------------------------------------------------------


def policy_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a ValidatingAdmissionPolicy's expressions.

    Objects have no types here: a missing property is a warning in the status (type checking), not a fault.
    """
    spec = obj.get("spec") or {}
    types: dict[str, CelType] = {"object": DYN, "oldObject": DYN, **POLICY_VARIABLES}
    if spec.get("paramKind"):
        types["params"] = DYN
    variables: dict[str, CelType] = {}
    for index, variable in enumerate(spec.get("variables") or ()):
        known = types | variables_type(variables)
        name = variable.get("name") or ""
        if not name.strip():
            yield field.required(f"spec.variables[{index}].name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            yield field.invalid(f"spec.variables[{index}].name", name, "must be a valid CEL identifier")
        yield from expression_faults(variable, "expression", f"spec.variables[{index}]", known)
        variables[variable.get("name", "")] = type_or_dyn(variable.get("expression") or "", known)
    types |= variables_type(variables)
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        yield from expression_faults(condition, "expression", f"spec.matchConditions[{index}]", types, want=("bool",))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for name in ("validations", "auditAnnotations"):
            yield field.required(f"spec.{name}", "validations or auditAnnotations must contain at least one item")
    for index, validation in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        yield from expression_faults(validation, "expression", path, types, want=("bool",))
        if validation.get("messageExpression"):
            without = {name: type_ for name, type_ in types.items() if name != "authorizer"}
            yield from expression_faults(validation, "messageExpression", path, without, want=("string",))
    for index, annotation in enumerate(spec.get("auditAnnotations") or ()):
        path, want = f"spec.auditAnnotations[{index}]", ("string", "null_type")
        yield from expression_faults(annotation, "valueExpression", path, types, want=want)


def expression_faults(
    holder: JSON, key: str, path: str, types: Mapping[str, CelType], *, want: tuple[str, ...] = ()
) -> Faults:
    """Yields the faults of `holder[key]`: it is absent, does not compile, or has none of the types in `want`."""
    text, path = holder.get(key) or "", f"{path}.{key}"
    if not text.strip():
        yield field.required(path, f"{key} is not specified" if key == "expression" else "")
        return
    try:
        why = type_faults(text, types)
        expression_type = "" if why else compile_cel(text, dict.fromkeys(types, "dyn")).result_type
    except CelError as error:
        why, expression_type = str(error), ""
    if why:
        yield field.invalid(path, text, f"compilation failed: {why}")
        return
    # The engine knows the types of functions, the checker those of variables.
    if expression_type.startswith(("dyn", "map<")):
        expression_type = str(type_or_dyn(text, types))
    unknown = expression_type == "dyn" and "variables" in text
    if want and not unknown and expression_type not in (*want, "null" if "null_type" in want else ""):
        choice = want[0] if len(want) == 1 else f"one of [{' '.join(want)}]"
        yield field.invalid(path, text, f"must evaluate to {choice} but got {expression_type}")
