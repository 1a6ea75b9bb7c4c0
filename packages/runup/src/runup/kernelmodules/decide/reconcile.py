"""Decides everything that is written for kernel modules, in one place: `Observed` of one name in, `Plan` out.

A PreflightValidationOCP creates the PreflightValidation of its name, which examines the Modules; either may exist
alone. A pass patches each object's status at most once, and not at all if nothing changed: while nothing else changes,
passes soon plan no more writes. Questions to registries, and for ConfigMaps and Secrets, are in the plan's `work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import resource_of
from kubekit.rules.owners import is_controlled_by
from runup.api.kmm_v1beta1 import Module, ValidatedKernel
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation
from runup.kernelmodules.decide import (
    build_jobs,
    builds,
    mapping,
    readiness,
    release_validations,
    runs,
    stages,
    validation_status,
)
from runup.kernelmodules.decide.module_state import ModuleState, Observed, Question, Task
from runup.process.plan import Action, Apply, Delete, Plan

API_VERSION = resource_of(PreflightValidation).api_version


@dataclass(frozen=True, slots=True)
class _ExaminedModule:
    """A Module with its previous status entry, and the result of examining it now: None if it was verified before."""

    module: Module
    old: ModuleStatus | None
    looked: ModuleState | None


def decide(observed: Observed, *, now: datetime) -> Plan[Question]:
    """Returns the plan for the PreflightValidation of that name; empty without one."""
    validation = observed.validation
    if validation is None or validation.metadata.deletion_timestamp is not None:
        return Plan()  # the garbage collector deletes its runs
    if observed.modules is None:
        unknown = validation_status.unknown_condition(
            "ModulesUnknown", f"The Modules could not be listed: {observed.modules_problem}"
        )
        modules = validation.status.modules
        status = validation_status.status(validation, modules, unknown, validation.status.kernels, now=now)
        return Plan(tuple(validation_status.patch(validation, status)))
    # Entries from before an edit of the spec may be about another kernel. The definition of another operator does not
    # store `observedGeneration`: its entries count.
    generation = validation.status.observed_generation
    before = (
        validation_status.entries_by_name(validation.status.modules)
        if generation in (0, validation.metadata.generation)
        else {}
    )
    if validation.spec.dtk_image:
        toolkit = validation.spec.dtk_image
    else:
        kernel = validation.spec.kernel_version
        owners = validation.metadata.owner_references
        # False sorts before True: the own parent comes first, since another may name another image for that kernel.
        parents = sorted(
            observed.parents.values(), key=lambda parent: not is_controlled_by(owners, parent.metadata.uid)
        )
        kernels = (known_kernel for parent in parents for known_kernel in parent.status.kernels)
        toolkit = next(
            (
                known_kernel.dtk_image
                for known_kernel in kernels
                if known_kernel.kernel_version == kernel and known_kernel.dtk_image
            ),
            "",
        )
    others = _pushed_by_others(observed, validation) if validation.spec.push_built_image else {}
    examined = []
    for module in validation_status.live_modules(observed.modules):
        old = validation_status.entry_about(before.get(key_of(module)), module)
        # A verified Module is not examined again until it is edited
        # (docs/decisions/0061-kernel-modules-are-tried-by-one-reconcile.md).
        if validation_status.is_final(old, module):
            examined.append(_ExaminedModule(module, old, None))
            continue
        task = Task(
            module=module,
            kernel=validation.spec.kernel_version,
            toolkit=toolkit,
            push=validation.spec.push_built_image,
            validation=validation.metadata.name,
            uid=validation.metadata.uid,
            now=now,
            others=others,
        )
        examined.append(_ExaminedModule(module, old, stages.state_of(task, observed)))
    return _plan_from(observed, validation, examined, before, toolkit=toolkit, now=now)


def _pushed_by_others(observed: Observed, validation: PreflightValidation) -> dict[str, tuple[str, str]]:
    """Returns the images that validations of other kernels push, each with the name of one of them and its kernel.

    A validation of the same kernel pushes the same modules, so it does no harm.
    """
    pushed: dict[str, tuple[str, str]] = {}
    for name, other in sorted(observed.validations.items()):
        kernel = other.spec.kernel_version
        is_over = other.metadata.deletion_timestamp is not None
        if is_over or not other.spec.push_built_image or kernel == validation.spec.kernel_version:
            continue
        for module in readiness.loading_modules(observed.modules or ()):
            try:
                resolved = mapping.resolve(module, kernel)
            except mapping.Unmapped:
                continue
            if resolved.build is not None or resolved.sign is not None:
                pushed.setdefault(resolved.container_image, (name, kernel))
    return pushed


def _plan_from(
    observed: Observed,
    validation: PreflightValidation,
    examined: Sequence[_ExaminedModule],
    before: dict[NamespacedName, ModuleStatus],
    *,
    toolkit: str,
    now: datetime,
) -> Plan[Question]:
    """Returns the plan: the runs to start and remove, the questions to ask, and the status."""
    module_statuses = []
    run_starts: list[Action] = []
    waits: list[float] = []
    questions: dict[Question, None] = {}
    for each in examined:
        if each.looked is None:
            assert each.old is not None
            module_statuses.append(each.old)
            continue
        module_statuses.append(validation_status.entry(each.module, each.looked, each.old, now=now))
        if wanted_run := each.looked.run_to_start:
            owner = runs.owner(wanted_run, API_VERSION)
            if observed.runner is runs.Runner.BUILDS:
                build = builds.build(wanted_run, owner, observed.builder.deadline_s)
                run_starts.append(Apply(resource=builds.BUILDS, object=build))
            else:
                run_starts.append(
                    Apply(resource=build_jobs.JOBS, object=build_jobs.job(wanted_run, observed.builder, owner))
                )
        if each.looked.recheck_after_s is not None:
            waits.append(each.looked.recheck_after_s)
        questions |= dict.fromkeys(each.looked.open_questions)
    module_statuses += [
        validation_status.failed(key, validation_status.unreadable_reason(bad), before.get(key), now=now)
        for bad in observed.unreadable
        for key in (NamespacedName(bad.namespace, bad.name),)
    ]
    kernel = validation.spec.kernel_version
    condition = validation_status.condition(module_statuses, [kernel])
    if observed.incomplete:
        # A Module that was not listed may still exist, so its entry is kept.
        reported = {NamespacedName(module_status.namespace, module_status.name) for module_status in module_statuses}
        module_statuses += [old for key, old in before.items() if key not in reported]
        condition = validation_status.unknown_condition(
            "ModulesUnknown", f"There may be other Modules: {observed.incomplete}"
        )
    module_statuses.sort(key=lambda module_status: (module_status.namespace, module_status.name))
    kernels = (ValidatedKernel(stages.architecture_of(kernel), kernel, toolkit),)
    status = validation_status.status(validation, module_statuses, condition, kernels, now=now)
    actions: list[Action] = [
        *_stop(observed, validation, examined),
        *run_starts,
        *validation_status.patch(validation, status),
        *validation_status.events(validation, before, module_statuses),
    ]
    return Plan(tuple(actions), min(waits, default=None), tuple(questions))


def _stop(
    observed: Observed, validation: PreflightValidation, observed_modules: Iterable[_ExaminedModule]
) -> Iterable[Action]:
    """Yields the deletions of runs that have other inputs, have to be repeated, or whose Modules are gone."""
    by_module = {key_of(observed_module.module): observed_module for observed_module in observed_modules}
    for run in observed.runs:
        if run.owner_uid != validation.metadata.uid or run.deleting:
            continue
        owner = by_module.get(NamespacedName(run.key.namespace, run.module))
        # A run is left alone while its Module could not be read, or may not have been listed.
        unread = any((run.key.namespace, run.module) == (bad.namespace, bad.name) for bad in observed.unreadable)
        unknown = unread or (owner is None and observed.incomplete)
        if unknown or (
            owner is not None
            and (owner.looked is None or not owner.looked.deletes_other_runs or run in owner.looked.kept_runs)
        ):
            continue
        resource = build_jobs.JOBS if run.runner is runs.Runner.JOBS else builds.BUILDS
        yield Delete(resource, run.key, run.uid)


def reconcile(observed: Observed, *, now: datetime) -> Plan[Question]:
    """Returns the plan for `observed` at `now` (UTC)."""
    parts = (release_validations.decide(observed, now=now), decide(observed, now=now))
    waits = [part.requeue_after_s for part in parts if part.requeue_after_s is not None]
    return Plan(
        tuple(action for part in parts for action in part.actions),
        min(waits, default=None),
        tuple(dict.fromkeys(question for part in parts for question in part.work)),
    )
