"""What a validation as a whole has come to: its condition `Validated`, its status as a patch, its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.cut import cut
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
# `kubectl describe` shows as many as anybody reads.
MOST_EVENTS = 20
Validation = PreflightValidation | PreflightValidationOCP


def condition(modules: Sequence[ModuleStatus], kernels: Iterable[str]) -> Condition:
    """What the entries come to."""
    failed = [each for each in modules if each.verification_status != entries.VERIFIED]
    about = f"kernel {', '.join(kernels)}"
    if not modules:
        return Condition(type=VALIDATED, status="True", reason="NoModules", message=f"There is no Module ({about}).")
    if not failed:
        text = f"All {len(modules)} Modules are verified for {about}." if len(modules) > 1 else ""
        text = text or f"The Module is verified for {about}."
        return Condition(type=VALIDATED, status="True", reason="AllVerified", message=text)
    running = [each for each in failed if each.verification_stage != "Requeued"]
    text = f"{len(modules) - len(failed)} of {len(modules)} Modules verified for {about}"
    if running:
        return Condition(
            type=VALIDATED, status="Unknown", reason="InProgress", message=f"{text}; others are under way."
        )
    return Condition(
        type=VALIDATED, status="False", reason="NotVerified", message=f"{text}; the others are tried again."
    )


def cannot_tell(reason: str, message: str) -> Condition:
    """Nothing is known of any Module, or not of all."""
    return Condition(type=VALIDATED, status="Unknown", reason=reason, message=message)


def status(
    validation: Validation,
    modules: Sequence[ModuleStatus],
    said: Condition,
    kernels: tuple[ValidatedKernel, ...],
    *,
    now: datetime,
) -> PreflightValidationStatus:
    """The whole status; of what others put there, conditions of other types stay."""
    generation = validation.metadata.generation
    said = replace(said, message=cut(said.message, LONGEST_MESSAGE), observed_generation=generation)
    return PreflightValidationStatus(
        modules=entries.fitting(modules),
        observed_generation=generation,
        # They are listed by architecture: one that is not known has no place there, and stands in the spec.
        kernels=tuple(each for each in kernels if each.architecture),
        conditions=with_condition(validation.status.conditions, said, now=now),
    )


def patch(validation: Validation, status: PreflightValidationStatus) -> list[Action]:
    """One patch, or nothing where it says so already."""
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


# What is empty is not encoded, and would stay as it was.
_EMPTY: dict[str, list[object]] = {"modules": [], "kernels": [], "conditions": []}


def events(
    validation: Validation, before: Mapping[NamespacedName, ModuleStatus], after: Sequence[ModuleStatus]
) -> list[Action]:
    """What changed, for `kubectl describe`: a Module that is verified, or that failed in another way."""
    about = resource_of(type(validation)), NamespacedName("", validation.metadata.name)
    told: list[Action] = []
    for each in after:
        old = before.get(NamespacedName(each.namespace, each.name))
        if old is not None and entries.says_the_same(old, each):
            continue
        told += [event for event in (_event(about, each, old),) if event]
    if len(told) <= MOST_EVENTS:
        return told
    more = f"{len(told) - MOST_EVENTS} more Modules changed; status.modules has them all"
    return [*told[:MOST_EVENTS], Event(*about, "Normal", "MoreModules", more)]


def _event(about: tuple[Resource, NamespacedName], each: ModuleStatus, old: ModuleStatus | None) -> Event | None:
    name, reason = f"{each.namespace}/{each.name}", each.status_reason
    if each.verification_status == entries.VERIFIED:
        return Event(*about, "Normal", "ModuleVerified", f"{name}: {reason}")
    if each.verification_stage == "Requeued":
        return Event(*about, "Warning", "ModuleNotVerified", f"{name}: {reason}")
    if each.verification_stage in {"Build", "Sign"} and (
        old is None or old.verification_stage != each.verification_stage
    ):
        return Event(*about, "Normal", f"{each.verification_stage}Started", f"{name}: {reason}")
    return None
