"""Validation of ValidatingAdmissionPolicies: whether their expressions compile, and to what type.

As pkg/apis/admissionregistration/validation. Objects have no types here, so that a missing property is a matter of the
status (type checking), never a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubekit.lang.cel import CelError, compile_cel
from kubekit.lang.cel_types import DYN, CelType, object_of, result_type, type_faults
from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.schema.admission_types import NAMESPACE, REQUEST
from kubesandbox.apiserver.validation.common import Faults

JSON = dict[str, Any]

_NOTHING = "validations or auditAnnotations must contain at least one item"
# The engine has no authorizer: such an expression is stored unseen, and has no value when it is evaluated.
_AUTHORIZER = re.compile(r"\bauthorizer\b")
_VARIABLES = "variables"


def policy_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a ValidatingAdmissionPolicy's expressions."""
    spec = obj.get("spec") or {}
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    types_by_name: dict[str, CelType] = {
        "object": DYN,
        "oldObject": DYN,
        "request": REQUEST,
        "namespaceObject": NAMESPACE,
    }
    if spec.get("paramKind"):
        types_by_name["params"] = DYN
    variables: dict[str, CelType] = {}
    for index, variable in enumerate(spec.get("variables") or ()):
        fault_path = f"spec.variables[{index}].expression"
        yield from _expression_faults(
            variable, "expression", fault_path, {**types_by_name, **_variables_type(variables)}, ()
        )
        variables[variable.get("name", "")] = _type_or_dyn(
            variable.get("expression") or "", {**types_by_name, **_variables_type(variables)}
        )
    types_by_name |= _variables_type(variables)
    for index, match_condition in enumerate(spec.get("matchConditions") or ()):
        yield from _expression_faults(
            match_condition, "expression", f"spec.matchConditions[{index}].expression", types_by_name, ("bool",)
        )
    if not validations and not annotations:
        yield FieldError(Fault.REQUIRED, "spec.validations", detail=_NOTHING)
        yield FieldError(Fault.REQUIRED, "spec.auditAnnotations", detail=_NOTHING)
    for index, validation in enumerate(validations):
        fault_path = f"spec.validations[{index}]"
        yield from _expression_faults(validation, "expression", f"{fault_path}.expression", types_by_name, ("bool",))
        if validation.get("messageExpression"):
            yield from _expression_faults(
                validation, "messageExpression", f"{fault_path}.messageExpression", types_by_name, ("string",)
            )
    for index, annotation in enumerate(annotations):
        fault_path = f"spec.auditAnnotations[{index}].valueExpression"
        yield from _expression_faults(annotation, "valueExpression", fault_path, types_by_name, ("string", "null_type"))


def _variables_type(variables: Mapping[str, CelType]) -> dict[str, CelType]:
    return {_VARIABLES: object_of("kubernetes.variables", variables.get)} if variables else {}


def _expression_faults(
    holder: JSON, key: str, fault_path: str, types_by_name: Mapping[str, CelType], expected_types: tuple[str, ...]
) -> Faults:
    """Yields the faults of `holder[key]`: it is absent, does not compile, or has none of `expected_types`."""
    text = holder.get(key) or ""
    if not text.strip():
        yield FieldError(Fault.REQUIRED, fault_path, detail=f"{key} is not specified" if key == "expression" else "")
        return
    if _AUTHORIZER.search(text):
        return
    try:
        why = type_faults(text, types_by_name)
        expression_type = "" if why else compile_cel(text, dict.fromkeys(types_by_name, "dyn")).result_type
    except CelError as error:
        why, expression_type = str(error), ""
    if why:
        yield FieldError(Fault.INVALID, fault_path, text, f"compilation failed: {why}")
        return
    # The engine knows the types of functions, the checker those of variables.
    if expression_type == "dyn" and (typed := str(_type_or_dyn(text, types_by_name))) != "dyn":
        expression_type = typed
    unknown = expression_type == "dyn" and _VARIABLES in text
    if (
        expected_types
        and not unknown
        and expression_type not in (*expected_types, "null" if "null_type" in expected_types else "")
    ):
        choice = expected_types[0] if len(expected_types) == 1 else f"one of [{' '.join(expected_types)}]"
        yield FieldError(Fault.INVALID, fault_path, text, f"must evaluate to {choice} but got {expression_type}")


def _type_or_dyn(text: str, types_by_name: Mapping[str, CelType]) -> CelType:
    try:
        return result_type(text, types_by_name)
    except CelError:
        return DYN
