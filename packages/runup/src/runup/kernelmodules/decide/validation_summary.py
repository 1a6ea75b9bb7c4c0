"""Summarizes a validation: its condition `Validated`, the patch of its status, its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.text import cut
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.api.kmm_v1beta2 import (
    ModuleStatus,
    PreflightValidation,
    PreflightValidationOCP,
    PreflightValidationStatus,
)
from runup.kernelmodules.decide import entries
from runup.process.plan import Action, Event, PatchStatus

VALIDATED = "Validated"
LONGEST_MESSAGE = 1024
# The most events of a pass: readers of `kubectl describe` read no more.
MOST_EVENTS = 20
Validation = PreflightValidation | PreflightValidationOCP


def condition(modules: Sequence[ModuleStatus], kernels: Iterable[str]) -> Condition:
    """Returns the condition that summarizes the entries of `modules`."""
    failed = [module_status for module_status in modules if module_status.verification_status != entries.VERIFIED]
    about = f"kernel {', '.join(kernels)}"
    if not modules:
        return Condition(type=VALIDATED, status="True", reason="NoModules", message=f"There is no Module ({about}).")
    if not failed:
        text = f"All {len(modules)} Modules are verified for {about}." if len(modules) > 1 else ""
        text = text or f"The Module is verified for {about}."
        return Condition(type=VALIDATED, status="True", reason="AllVerified", message=text)
    # A Module may still be verified while its build or signature runs, so the answer is Unknown until all have ended.
    running = [module_status for module_status in failed if module_status.verification_status != entries.FAILED]
    text = f"{len(modules) - len(failed)} of {len(modules)} Modules verified for {about}"
    if running:
        return Condition(
            type=VALIDATED, status="Unknown", reason="InProgress", message=f"{text}; others are under way."
        )
    return Condition(
        type=VALIDATED, status="False", reason="NotVerified", message=f"{text}; the others are tried again."
    )


def unknown_condition(reason: str, message: str) -> Condition:
    """Returns the condition with status Unknown, for when the state of some or all Modules is not known."""
    return Condition(type=VALIDATED, status="Unknown", reason=reason, message=message)


def status(
    validation: Validation,
    modules: Sequence[ModuleStatus],
    new_condition: Condition,
    kernels: tuple[ValidatedKernel, ...],
    *,
    now: datetime,
) -> PreflightValidationStatus:
    """Returns the complete status; conditions of other types are kept."""
    generation = validation.metadata.generation
    new_condition = replace(
        new_condition, message=cut(new_condition.message, LONGEST_MESSAGE), observed_generation=generation
    )
    return PreflightValidationStatus(
        modules=entries.fit_entries(modules),
        observed_generation=generation,
        # The list's keys are architecture and version: a kernel without an architecture is only in the spec.
        kernels=tuple(kernel for kernel in kernels if kernel.architecture),
        conditions=with_condition(validation.status.conditions, new_condition, now=now),
    )


def patch(validation: Validation, status: PreflightValidationStatus) -> list[Action]:
    """Returns the patch of the status, or nothing if the status is unchanged."""
    if status == validation.status:
        return []
    fields = {**_EMPTY, **codec.to_dict(status)}
    fresh = validation.status == PreflightValidationStatus()
    return [
        PatchStatus(
            resource_of(type(validation)),
            NamespacedName("", validation.metadata.name),
            fields,
            (),
            validation.metadata.resource_version,
            fresh=fresh,
        )
    ]


# Empty lists are not encoded, so a patch without these would keep the old content.
_EMPTY: dict[str, list[object]] = {"modules": [], "kernels": [], "conditions": []}


def events(
    validation: Validation, before: Mapping[NamespacedName, ModuleStatus], after: Sequence[ModuleStatus]
) -> list[Action]:
    """Returns the events for `kubectl describe`: Modules that were verified, failed, or began to build or sign."""
    about = resource_of(type(validation)), NamespacedName("", validation.metadata.name)
    new_events: list[Event] = []
    for module_status in after:
        old = before.get(NamespacedName(module_status.namespace, module_status.name))
        if old is not None and entries.is_same_report(old, module_status):
            continue
        new_events += [event for event in (_event(about, module_status, old),) if event]
    if len(new_events) > MOST_EVENTS:
        more = f"{len(new_events) - MOST_EVENTS} more Modules changed; status.modules has them all"
        new_events = [*new_events[:MOST_EVENTS], Event(*about, "Normal", "MoreModules", more)]
    return [replace(event, uid=validation.metadata.uid) for event in new_events]


def _event(
    about: tuple[Resource, NamespacedName], module_status: ModuleStatus, old: ModuleStatus | None
) -> Event | None:
    """Returns the event about an entry that changed; None if it needs none."""
    name, reason = f"{module_status.namespace}/{module_status.name}", module_status.status_reason
    if module_status.verification_status == entries.VERIFIED:
        return Event(*about, "Normal", "ModuleVerified", f"{name}: {reason}")
    if module_status.verification_status == entries.FAILED:
        return Event(*about, "Warning", "ModuleNotVerified", f"{name}: {reason}")
    if module_status.running_stage and (old is None or old.running_stage != module_status.running_stage):
        return Event(*about, "Normal", f"{module_status.running_stage}Started", f"{name}: {reason}")
    return None
