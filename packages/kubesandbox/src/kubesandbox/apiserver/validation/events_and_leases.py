"""Validation of Events and Leases (pkg/apis/core/validation/events.go, pkg/apis/coordination/validation)."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults

JSON = dict[str, Any]


def event_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields a fault if an Event's namespace is not that of its object."""
    namespace, about = meta(obj).get("namespace") or "", (obj.get("involvedObject") or {}).get("namespace") or ""
    if about != namespace and not (not about and namespace == "default"):
        yield FieldError(Fault.INVALID, "involvedObject.namespace", about, "does not match event.namespace")


def lease_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a Lease: a positive duration, no negative transitions."""
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield FieldError(Fault.INVALID, "spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield FieldError(Fault.INVALID, "spec.leaseTransitions", transitions, NOT_NEGATIVE)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield FieldError(
            Fault.FORBIDDEN, "spec.preferredHolder", None, "may only be specified if `strategy` is defined"
        )
