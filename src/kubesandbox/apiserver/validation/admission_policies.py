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
    known: dict[str, CelType] = {"object": DYN, "oldObject": DYN, "request": REQUEST, "namespaceObject": NAMESPACE}
    if spec.get("paramKind"):
        known["params"] = DYN
    variables: dict[str, CelType] = {}
    for index, each in enumerate(spec.get("variables") or ()):
        where = f"spec.variables[{index}].expression"
        yield from _expression_faults(each, "expression", where, {**known, **_variables_type(variables)}, ())
        variables[each.get("name", "")] = _type_or_dyn(
            each.get("expression") or "", {**known, **_variables_type(variables)}
        )
    known |= _variables_type(variables)
    for index, each in enumerate(spec.get("matchConditions") or ()):
        yield from _expression_faults(each, "expression", f"spec.matchConditions[{index}].expression", known, ("bool",))
    if not validations and not annotations:
        yield FieldError(Fault.REQUIRED, "spec.validations", detail=_NOTHING)
        yield FieldError(Fault.REQUIRED, "spec.auditAnnotations", detail=_NOTHING)
    for index, each in enumerate(validations):
        where = f"spec.validations[{index}]"
        yield from _expression_faults(each, "expression", f"{where}.expression", known, ("bool",))
        if each.get("messageExpression"):
            yield from _expression_faults(each, "messageExpression", f"{where}.messageExpression", known, ("string",))
    for index, each in enumerate(annotations):
        where = f"spec.auditAnnotations[{index}].valueExpression"
        yield from _expression_faults(each, "valueExpression", where, known, ("string", "null_type"))


def _variables_type(variables: Mapping[str, CelType]) -> dict[str, CelType]:
    return {_VARIABLES: object_of("kubernetes.variables", variables.get)} if variables else {}


def _expression_faults(
    holder: JSON, key: str, where: str, known: Mapping[str, CelType], wanted: tuple[str, ...]
) -> Faults:
    """Yields the faults of `holder[key]`: it is absent, does not compile, or is of another type than `wanted`."""
    text = holder.get(key) or ""
    if not text.strip():
        yield FieldError(Fault.REQUIRED, where, detail=f"{key} is not specified" if key == "expression" else "")
        return
    if _AUTHORIZER.search(text):
        return
    try:
        why = type_faults(text, known)
        found = "" if why else compile_cel(text, dict.fromkeys(known, "dyn")).result_type
    except CelError as error:
        why, found = str(error), ""
    if why:
        yield FieldError(Fault.INVALID, where, text, f"compilation failed: {why}")
        return
    # The engine knows the types of functions, the checker those of variables.
    if found == "dyn" and (typed := str(_type_or_dyn(text, known))) != "dyn":
        found = typed
    unknown = found == "dyn" and _VARIABLES in text
    if wanted and not unknown and found not in (*wanted, "null" if "null_type" in wanted else ""):
        choice = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
        yield FieldError(Fault.INVALID, where, text, f"must evaluate to {choice} but got {found}")


def _type_or_dyn(text: str, known: Mapping[str, CelType]) -> CelType:
    try:
        return result_type(text, known)
    except CelError:
        return DYN
