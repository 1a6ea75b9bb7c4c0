"""The status of a validation: the entries of its Modules, the condition `Validated`, the patch and the events. Pure.

The transition time of an entry changes only when status, stages or reason do. The list fits into an object: if there
are many long reasons they are shortened, but no entry is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, NamespacedName, key_of
from kubekit.api.scheme import resource_of
from kubekit.lang.text import cut, stored_bytes
from runup.api.kmm_v1beta1 import Module, ValidatedKernel
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation, PreflightValidationOCP, PreflightValidationStatus
from runup.kernelmodules.decide.module_state import ModuleState
from runup.process.plan import Action, Event, PatchStatus

# The words of Kernel Module Management 2.4 and later (docs/decisions/0083).
VERIFIED, FAILED, IN_PROGRESS = "Success", "Failure", "InProgress"
# Bytes of all reasons together: etcd takes 1.5 MiB of an object, so half of it is left for the other fields.
MOST_BYTES = 768 * 1024
LONGEST_REASONS = (1024, 256, 64)


def entries_by_name(entries: Iterable[ModuleStatus]) -> dict[NamespacedName, ModuleStatus]:
    """Returns `entries` by the namespaced name of their Module; those in the words of earlier versions are left out."""
    known_states = (VERIFIED, FAILED, IN_PROGRESS)
    return {
        NamespacedName(entry.namespace, entry.name): entry
        for entry in entries
        if entry.verification_status in known_states
    }


def entry_about(old: ModuleStatus | None, module: Module) -> ModuleStatus | None:
    """Returns `old`; None if `module` was created after it, so that it is about a deleted namesake."""
    if old is None:
        return None
    created, reported = module.metadata.creation_timestamp, old.last_transition_time
    return old if created is None or reported is None or created <= reported else None


def is_final(old: ModuleStatus | None, module: Module) -> bool:
    """Returns whether a Module is verified as it is now; it is not examined again until it is edited."""
    return old is not None and old.verification_status == VERIFIED and _is_of(old, module)


def entry(module: Module, state: ModuleState, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """Returns the entry of `module`; while nothing is known yet, the previous entry for the same generation."""
    if state.keeps_previous_status and old is not None and _is_of(old, module):
        return old
    # While an edited Module waits for its first answer, what was looked at is still its previous generation.
    seen_generation = old.observed_generation if old is not None else 0
    new = ModuleStatus(
        namespace=module.metadata.namespace,
        name=module.metadata.name,
        verification_status=_status(state),
        verification_stage="Image" if _status(state) == IN_PROGRESS else "Done",
        running_stage=state.stage if state.stage in {"Build", "Sign"} else "",
        status_reason=cut(state.reason, LONGEST_REASONS[0]),
        observed_generation=seen_generation if state.keeps_previous_status else module.metadata.generation,
    )
    return with_transition_time(new, old, now=now)


def _status(state: ModuleState) -> str:
    if state.verified:
        return VERIFIED
    return FAILED if state.stage == "Requeued" else IN_PROGRESS


def _is_of(old: ModuleStatus, module: Module) -> bool:
    """Returns whether an entry is about the Module as it is now."""
    # Generation 0: the CustomResourceDefinition of another operator does not store `observedGeneration`.
    return old.observed_generation in (0, module.metadata.generation)


def failed(key: NamespacedName, reason: str, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """Returns the entry of a Module that could not be examined."""
    new = ModuleStatus(
        namespace=key.namespace,
        name=key.name,
        verification_status=FAILED,
        verification_stage="Done",
        status_reason=cut(reason, LONGEST_REASONS[0]),
    )
    return with_transition_time(new, old, now=now)


def with_transition_time(new: ModuleStatus, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """Returns `new` with its transition time: that of `old` if both say the same, else `now`."""
    at = old.last_transition_time if old is not None and is_same_report(old, new) else None
    return replace(new, last_transition_time=at or now)


def unreadable_reason(bad: codec.Undecodable) -> str:
    """Returns the reason for a Module that cannot be decoded."""
    return f"the Module cannot be read: {bad.problem}"


def live_modules(modules: Iterable[Module]) -> list[Module]:
    """Returns the Modules that are not being deleted, sorted by namespace and name."""
    return sorted((module for module in modules if module.metadata.deletion_timestamp is None), key=key_of)


def fit_entries(entries: Sequence[ModuleStatus]) -> tuple[ModuleStatus, ...]:
    """Returns all entries, with reasons cut to the longest of `LONGEST_REASONS` at which they fit `MOST_BYTES`."""
    for longest in LONGEST_REASONS:
        shortened = tuple(
            replace(module_status, status_reason=cut(module_status.status_reason, longest)) for module_status in entries
        )
        if sum(stored_bytes(module_status.status_reason) for module_status in shortened) <= MOST_BYTES:
            return shortened
    return shortened


def is_same_report(old: ModuleStatus, new: ModuleStatus) -> bool:
    """Returns whether status, stages and reason are equal."""
    return _reported_fields(old) == _reported_fields(new)


def _reported_fields(module_status: ModuleStatus) -> tuple[str, str, str, str]:
    """Returns the fields whose change is reported."""
    return (
        module_status.verification_status,
        module_status.verification_stage,
        module_status.running_stage,
        module_status.status_reason,
    )


VALIDATED = "Validated"
LONGEST_MESSAGE = 1024
# The most events of a pass: readers of `kubectl describe` read no more.
MOST_EVENTS = 20
Validation = PreflightValidation | PreflightValidationOCP


def condition(modules: Sequence[ModuleStatus], kernels: Iterable[str]) -> Condition:
    """Returns the condition that summarizes the entries of `modules`."""
    failed = [module_status for module_status in modules if module_status.verification_status != VERIFIED]
    about = f"kernel {', '.join(kernels)}"
    if not modules:
        return Condition(type=VALIDATED, status="True", reason="NoModules", message=f"There is no Module ({about}).")
    if not failed:
        text = f"All {len(modules)} Modules are verified for {about}." if len(modules) > 1 else ""
        text = text or f"The Module is verified for {about}."
        return Condition(type=VALIDATED, status="True", reason="AllVerified", message=text)
    # A Module may still be verified while its build or signature runs, so the answer is Unknown until all have ended.
    running = [module_status for module_status in failed if module_status.verification_status != FAILED]
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
        modules=fit_entries(modules),
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
            resource=resource_of(type(validation)),
            key=NamespacedName("", validation.metadata.name),
            fields=fields,
            gone=(),
            resource_version=validation.metadata.resource_version,
            fresh=fresh,
        )
    ]


# Empty lists are not encoded, so a patch without these would keep the old content.
_EMPTY: dict[str, list[object]] = {"modules": [], "kernels": [], "conditions": []}


def events(
    validation: Validation, before: Mapping[NamespacedName, ModuleStatus], after: Sequence[ModuleStatus]
) -> list[Action]:
    """Returns the events for `kubectl describe`: Modules that were verified, failed, or began to build or sign."""
    about = partial(Event, resource=resource_of(type(validation)), key=NamespacedName("", validation.metadata.name))
    new_events: list[Event] = []
    for module_status in after:
        old = before.get(NamespacedName(module_status.namespace, module_status.name))
        if old is not None and is_same_report(old, module_status):
            continue
        text = f"{module_status.namespace}/{module_status.name}: {module_status.status_reason}"
        stage = module_status.running_stage
        if module_status.verification_status == VERIFIED:
            new_events.append(about(type="Normal", reason="ModuleVerified", message=text))
        elif module_status.verification_status == FAILED:
            new_events.append(about(type="Warning", reason="ModuleNotVerified", message=text))
        elif stage and (old is None or old.running_stage != stage):
            new_events.append(about(type="Normal", reason=f"{stage}Started", message=text))
    if len(new_events) > MOST_EVENTS:
        more = f"{len(new_events) - MOST_EVENTS} more Modules changed; status.modules has them all"
        new_events = [*new_events[:MOST_EVENTS], about(type="Normal", reason="MoreModules", message=more)]
    return [replace(event, uid=validation.metadata.uid) for event in new_events]
