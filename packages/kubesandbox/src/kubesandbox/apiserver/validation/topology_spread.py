"""Validation of how a pod's workload is spread (`topologySpreadConstraints`), as k8s.io/kubernetes validates it."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, not_supported, object_meta
from kubesandbox.apiserver.validation.common import Faults, selector_faults

JSON = dict[str, Any]

_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_ABOVE_ZERO = "must be greater than zero"


def spread_faults(constraints: list[JSON], path: str) -> Faults:
    """Yields the faults of a pod's constraints; no two have the same topologyKey and whenUnsatisfiable."""
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        yield from _constraint_faults(constraint, at)
        key, unsatisfiable = _kind(constraint)
        if any(_kind(later) == (key, unsatisfiable) for later in constraints[index + 1 :]):
            where = f"{at}.{{topologyKey, whenUnsatisfiable}}"
            yield FieldError(Fault.DUPLICATE, where, f"{{{key}, {unsatisfiable}}}")


def _kind(constraint: JSON) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _constraint_faults(constraint: JSON, at: str) -> Faults:
    """Yields the faults of one topology spread constraint; `at` is its path."""
    key, unsatisfiable = _kind(constraint)
    skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
    if skew <= 0:
        yield FieldError(Fault.INVALID, f"{at}.maxSkew", skew, _ABOVE_ZERO)
    if not key:
        yield FieldError(Fault.REQUIRED, f"{at}.topologyKey", detail="can not be empty")
    if unsatisfiable not in _UNSATISFIABLE:
        yield not_supported(f"{at}.whenUnsatisfiable", unsatisfiable, _UNSATISFIABLE)
    if domains is not None and domains <= 0:
        yield FieldError(Fault.INVALID, f"{at}.minDomains", domains, _ABOVE_ZERO)
    if domains is not None and unsatisfiable != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
        yield FieldError(Fault.INVALID, f"{at}.minDomains", domains, why)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in _INCLUSION:
            yield not_supported(f"{at}.{name}", policy, _INCLUSION)
    selector, keys = constraint.get("labelSelector"), constraint.get("matchLabelKeys") or ()
    if keys and selector is None:
        why = "must not be specified when labelSelector is not set"
        yield FieldError(Fault.FORBIDDEN, f"{at}.matchLabelKeys", detail=why)
    for number, label in enumerate(keys if selector is not None else ()):
        for why in object_meta.qualified_name(label):
            yield FieldError(Fault.INVALID, f"{at}.matchLabelKeys[{number}]", label, why)
    yield from selector_faults(selector, f"{at}.labelSelector")
