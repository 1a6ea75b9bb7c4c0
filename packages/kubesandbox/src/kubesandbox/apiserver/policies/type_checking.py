"""Checks a policy's expressions against the types of the objects that it is for: warnings of its status. Pure.

As k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go, whose controller of
kube-controller-manager writes them some time after; here they are in the status when the policy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import DYN, CelType, type_faults
from kubesandbox.apiserver.schema.cel_declarations import (
    AUTHORIZER,
    NAMESPACE,
    REQUEST,
    served_type,
    type_or_dyn,
    variables_type,
)
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
# Returns the schema of a kind's objects, or None if it has none.
SchemaOf = Callable[[Kind], SchemaNode | None]

_MOST_TYPES = 10  # maxTypesToCheck


def policy_status(policy: JSON, kinds: Iterable[Kind], schema_of: SchemaOf) -> JSON:
    """Returns the status of a policy: what was looked at, and its warnings for the kinds whose schema is known."""
    spec, known = policy["spec"], tuple(kinds)
    types = {
        kind: served_type(schema) for kind in _matched_kinds(spec, known) if (schema := schema_of(kind)) is not None
    }
    types_by_name: dict[str, CelType] = {"request": REQUEST, "namespaceObject": NAMESPACE}
    if param_kind := spec.get("paramKind") or {}:
        named = (param_kind.get("apiVersion"), param_kind.get("kind"))
        params = next((kind for kind in known if (kind.api_version, kind.kind) == named), None)
        schema = schema_of(params) if params is not None else None
        types_by_name["params"] = served_type(schema) if schema is not None else DYN
    warnings = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            expression = validation.get(key)
            if not expression or AUTHORIZER.search(expression):
                continue
            faults = (
                _fault_for_kind(kind, expression, spec, {**types_by_name, "object": type_, "oldObject": type_})
                for kind, type_ in types.items()
            )
            if warning := "\n".join(filter(None, faults)):
                warnings.append({"fieldRef": f"spec.validations[{index}].{key}", "warning": warning})
    checking = {"expressionWarnings": warnings} if warnings else {}
    return {"observedGeneration": policy["metadata"].get("generation", 1), "typeChecking": checking}


def _fault_for_kind(kind: Kind, expression: str, spec: JSON, types: dict[str, CelType]) -> str:
    """Returns why an expression does not fit the types of one kind, or ""."""
    variables: dict[str, CelType] = {}
    for variable in spec.get("variables") or ():
        variables[variable["name"]] = type_or_dyn(variable["expression"], types | variables_type(variables))
    try:
        why = type_faults(expression, types | variables_type(variables))
    except CelError as error:
        why = str(error)
    return f"{kind.group}/{kind.version}, Kind={kind.kind}: {why}\n" if why else ""


def _matched_kinds(spec: JSON, kinds: tuple[Kind, ...]) -> list[Kind]:
    """Returns the kinds that the policy's rules name; a rule with a wildcard names none."""
    matched: set[Kind] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        resources = [resource for resource in rule.get("resources") or () if not set(resource) & set("*/")]
        if "*" not in "".join((*groups, *versions)):
            matched |= {k for k in kinds if k.group in groups and k.version in versions and k.plural in resources}
    return sorted(matched, key=lambda kind: (kind.group, kind.version, kind.kind))[:_MOST_TYPES]
