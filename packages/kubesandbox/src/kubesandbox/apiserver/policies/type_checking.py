"""Checks a policy's expressions against the types of the objects that it is for: warnings of its status. Pure.

As k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go, whose controller of
kube-controller-manager writes them some time after; here they are in the status when the policy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import DYN, CelType, object_of, result_type, type_faults
from kubesandbox.apiserver.policies.evaluation import AUTHORIZER
from kubesandbox.apiserver.schema import SchemaNode
from kubesandbox.apiserver.schema.cel_declarations import NAMESPACE, REQUEST, served_type
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
# Returns the schema of a kind's objects, or None if it has none.
SchemaOf = Callable[[Kind], SchemaNode | None]

_MOST_TYPES = 10  # maxTypesToCheck


def policy_status(policy: JSON, kinds: Iterable[Kind], schema_of: SchemaOf) -> JSON:
    """Returns the status of a policy: what was looked at, and its warnings."""
    checked: JSON = {"observedGeneration": policy["metadata"].get("generation", 1), "typeChecking": {}}
    if warnings := _type_warnings(policy["spec"], tuple(kinds), schema_of):
        checked["typeChecking"] = {"expressionWarnings": warnings}
    return checked


def _type_warnings(spec: JSON, kinds: tuple[Kind, ...], schema_of: SchemaOf) -> list[JSON]:
    """Returns the expressionWarnings of a policy, for the kinds whose schema is known."""
    types = {
        kind: served_type(schema) for kind in _matched_kinds(spec, kinds) if (schema := schema_of(kind)) is not None
    }
    param_kind = spec.get("paramKind") or {}
    params = next(
        (k for k in kinds if (k.api_version, k.kind) == (param_kind.get("apiVersion"), param_kind.get("kind"))), None
    )
    schema = schema_of(params) if params is not None else None
    types_by_name: dict[str, CelType] = {"request": REQUEST, "namespaceObject": NAMESPACE}
    if param_kind:
        types_by_name["params"] = served_type(schema) if schema is not None else DYN
    warnings = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            if expression := validation.get(key):
                faults = [
                    _fault_for_kind(kind, type_, expression, spec, types_by_name) for kind, type_ in types.items()
                ]
                if warning := "\n".join(filter(None, faults)):
                    warnings.append({"fieldRef": f"spec.validations[{index}].{key}", "warning": warning})
    return warnings


def _fault_for_kind(
    kind: Kind, type_: CelType, expression: str, spec: JSON, types_by_name: Mapping[str, CelType]
) -> str:
    """Returns why an expression does not fit one kind's type, or ""."""
    if AUTHORIZER.search(expression):
        return ""
    types = {**types_by_name, "object": type_, "oldObject": type_}
    variables: dict[str, CelType] = {}
    for variable in spec.get("variables") or ():
        variables[variable["name"]] = _type_or_dyn(variable["expression"], types | _variables_type(variables))
    try:
        why = type_faults(expression, types | _variables_type(variables))
    except CelError as error:
        why = str(error)
    kind_text = f"{kind.group}/{kind.version}, Kind={kind.kind}"
    return f"{kind_text}: {why}\n" if why else ""


def _variables_type(variables: Mapping[str, CelType]) -> dict[str, CelType]:
    return {"variables": object_of("kubernetes.variables", variables.get)} if variables else {}


def _type_or_dyn(expression: str, types_by_name: Mapping[str, CelType]) -> CelType:
    try:
        return result_type(expression, types_by_name)
    except CelError:
        return DYN


def _matched_kinds(spec: JSON, kinds: tuple[Kind, ...]) -> list[Kind]:
    """Returns the kinds that the policy's rules name; a rule with a wildcard names none."""
    matched: list[Kind] = []
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        resources = {
            resource_name for resource_name in rule.get("resources") or () if not set(resource_name) & set("*/")
        }
        if "*" in "".join((*groups, *versions)):
            continue
        matched += [k for k in kinds if k.group in groups and k.version in versions and k.plural in resources]
    unique = sorted(set(matched), key=lambda kind: (kind.group, kind.version, kind.kind))
    return unique[:_MOST_TYPES]
