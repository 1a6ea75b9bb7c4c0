"""Decides on a PreflightValidationOCP: a PreflightValidation for each kernel of its release, and their merged status.

The first PreflightValidation has the same name, as in Kernel Module Management; a release for nodes of several
architectures has more, with the architecture in their names. An edit of the spec is passed on to their specs. Pure;
called by `reconcile`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, NamespacedName, key_of
from kubekit.api.scheme import resource_of
from kubekit.rules.owners import is_controlled_by
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide import admission, stages, validation_status
from runup.kernelmodules.decide.module_state import Observed, Question, ReleaseQuestion, freshness
from runup.kernelmodules.decide.toolkit import Flavour, flavour_of, is_real_time
from runup.process.plan import Action, Apply, Delete, Plan

VALIDATION = resource_of(PreflightValidation)
OWNER_VERSION = resource_of(PreflightValidationOCP).api_version


@dataclass(frozen=True, slots=True)
class _Release:
    """The kernels of a release, or the problem why they are not known; neither while there is no answer yet."""

    kernels: tuple[ValidatedKernel, ...] = ()
    problem: str = ""
    plan: Plan[Question] = field(default_factory=Plan)


def decide(observed: Observed, *, now: datetime) -> Plan[Question]:
    """Returns the plan for the PreflightValidationOCP of that name; empty without one."""
    ocp = observed.ocp
    if ocp is None or ocp.metadata.deletion_timestamp is not None:
        return Plan()  # the garbage collector deletes its PreflightValidations
    release = _kernels_of_release(observed, ocp, now)
    if not release.kernels:
        return _plan_unknown(observed, ocp, release, now)
    children: dict[str, ValidatedKernel] = {}
    for at, kernel in enumerate(release.kernels):
        ending = "-rt" if is_real_time(kernel.kernel_version) else ""
        name = f"{ocp.metadata.name}-{kernel.architecture or at}{ending}" if at else ocp.metadata.name
        children[name] = kernel
    # The status of somebody else's object is not copied, because it may be about another kernel.
    taken_names = [
        name for name in children if name in observed.validations and not is_child(observed.validations[name], ocp)
    ]
    if taken_names:
        problem = (
            f"there is a PreflightValidation {taken_names[0]} that is not of this object: delete it, or rename this one"
        )
        return _plan_unknown(observed, ocp, _Release((), problem, release.plan), now)
    module_statuses = _combine_entries(observed, list(children.items()))
    condition = _condition(observed, children, module_statuses)
    status = validation_status.status(ocp, module_statuses, condition, release.kernels, now=now)
    actions = [
        # A child whose kernel the release no longer has is deleted.
        *(
            Delete(VALIDATION, NamespacedName("", name), validation.metadata.uid)
            for name, validation in sorted(observed.validations.items())
            if name not in children and is_child(validation, ocp) and validation.metadata.deletion_timestamp is None
        ),
        *(action for name, kernel in children.items() for action in _child(observed, ocp, name, kernel)),
        *validation_status.patch(ocp, status),
    ]
    return Plan((*actions, *release.plan.actions), release.plan.requeue_after_s, release.plan.work)


def _kernels_of_release(observed: Observed, ocp: PreflightValidationOCP, now: datetime) -> _Release:
    """Returns the kernels to validate for, or the problem why they are missing.

    There is neither of them until the registry has answered.
    """
    spec = ocp.spec
    if fault := admission.validation_fault(spec):
        return _Release((), fault)
    # A kernel in the spec makes the release image superfluous, so no registry is asked.
    if spec.kernel_version:
        kernel = ValidatedKernel(stages.architecture_of(spec.kernel_version), spec.kernel_version, spec.dtk_image)
        return _Release((kernel,))
    real_time = spec.use_rt_kernel
    of_nodes = [flavour_of(node) for node in observed.nodes or () if node.status.node_info.architecture]
    flavours = {Flavour(flavour.architecture, flavour.real_time or real_time) for flavour in of_nodes}
    if not flavours and real_time:
        flavours = {Flavour("amd64", real_time=True)}
    # The order of the known kernels stays: the first PreflightValidation has the object's name, which must not pass to
    # another flavour when a node is added.
    before = [_flavour_of_kernel(kernel) for kernel in ocp.status.kernels]
    ordered = sorted(flavours, key=lambda known: (before.index(known) if known in before else len(before), known))
    question = ReleaseQuestion(spec.release_image, tuple(ordered))
    kernels = ocp.status.kernels if ocp.status.observed_generation == ocp.metadata.generation else ()
    answer = observed.answers.of_release(question)
    if answer is None:
        return _Release(kernels, "", Plan(work=(question,)))
    kernel_answer, at = answer
    if kernel_answer.kernels:
        return _Release(kernel_answer.kernels)
    fresh = freshness(question, at, now)
    plan = Plan((), fresh.recheck_after_s, tuple(fresh.questions_to_repeat))
    # The kernels of an earlier answer stay valid while the registry cannot be reached.
    return _Release(kernels, "" if kernels else kernel_answer.problem, plan)


def _plan_unknown(observed: Observed, ocp: PreflightValidationOCP, release: _Release, now: datetime) -> Plan[Question]:
    """Returns the plan while the kernels are not known. The status of every Module repeats the problem.

    It does so for clients that read only the Modules' statuses.
    """
    before = validation_status.entries_by_name(ocp.status.modules)
    if not release.problem:
        module_statuses: list[ModuleStatus] = []
        condition = validation_status.unknown_condition("ReadingRelease", f"{ocp.spec.release_image} is being read.")
    else:
        text = (
            f"release image {ocp.spec.release_image}: {release.problem}" if ocp.spec.release_image else release.problem
        )
        modules = validation_status.live_modules(observed.modules or ())
        module_statuses = [
            validation_status.failed(key_of(module), text, before.get(key_of(module)), now=now) for module in modules
        ]
        condition = Condition(type=validation_status.VALIDATED, status="False", reason="ReleaseUnusable", message=text)
    status = validation_status.status(ocp, module_statuses, condition, (), now=now)
    events = validation_status.events(ocp, before, module_statuses) if release.problem else []
    return Plan(
        (*validation_status.patch(ocp, status), *events, *release.plan.actions),
        release.plan.requeue_after_s,
        release.plan.work,
    )


def _flavour_of_kernel(kernel: ValidatedKernel) -> Flavour:
    return Flavour(kernel.architecture, is_real_time(kernel.kernel_version))


def is_child(validation: PreflightValidation, ocp: PreflightValidationOCP) -> bool:
    """Returns whether `validation` was created by `ocp`."""
    return is_controlled_by(validation.metadata.owner_references, ocp.metadata.uid)


def _child(observed: Observed, ocp: PreflightValidationOCP, name: str, kernel: ValidatedKernel) -> Iterable[Action]:
    """Yields the apply of a child validation for one kernel, if it is not up to date."""
    spec = {"kernelVersion": kernel.kernel_version, "pushBuiltImage": ocp.spec.push_built_image}
    spec |= {"dtkImage": kernel.dtk_image} if kernel.dtk_image else {}
    child = observed.validations.get(name)
    # A child that is being deleted is created again in a later pass, once it is gone.
    if child is not None and child.metadata.deletion_timestamp is not None:
        return
    # A missing `dtkImage` is accepted, because the definition of another operator may drop it.
    if (
        child is not None
        and child.spec.dtk_image in ("", kernel.dtk_image)
        and child.spec.kernel_version == kernel.kernel_version
        and child.spec.push_built_image == ocp.spec.push_built_image
    ):
        return
    owner = {
        "apiVersion": OWNER_VERSION,
        "kind": "PreflightValidationOCP",
        "name": ocp.metadata.name,
        "uid": ocp.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    yield Apply(resource=VALIDATION, object={"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})


def _combine_entries(observed: Observed, children: Sequence[tuple[str, ValidatedKernel]]) -> list[ModuleStatus]:
    """Returns one entry for each Module: verified if the Module is so for every kernel that its nodes will run."""
    by_kernel = []
    for name, kernel in children:
        child = observed.validations.get(name)
        # A child's status may still be about another kernel.
        current = child is not None and child.spec.kernel_version == kernel.kernel_version
        if child is not None and child.status.observed_generation not in (0, child.metadata.generation):
            current = False
        statuses = child.status.modules if child is not None and current else ()
        by_kernel.append((kernel, validation_status.entries_by_name(statuses)))
    if len(by_kernel) == 1:
        return list(by_kernel[0][1].values())
    architectures = Counter(kernel.architecture for kernel, _ in by_kernel)
    nodes = observed.nodes or ()
    # For each Module, the kernel flavours of the nodes that it selects.
    flavours = {
        key_of(module): {flavour_of(node) for node in stages.nodes_selected(module.spec.selector, nodes)}
        for module in observed.modules or ()
    }
    together = []
    for key in sorted({key for _, statuses in by_kernel for key in statuses}):
        parts = [(kernel, statuses[key]) for kernel, statuses in by_kernel if key in statuses]
        needed_parts = []
        for kernel, module_status in parts:
            kind = _flavour_of_kernel(kernel)
            # All nodes of an architecture will have its only kernel.
            alone = architectures[kernel.architecture] == 1
            if any(
                flavour.architecture == kind.architecture and (alone or flavour.real_time == kind.real_time)
                for flavour in flavours.get(key, ())
            ):
                needed_parts.append((kernel, module_status))
        chosen_parts = needed_parts or parts
        bad = [part for part in chosen_parts if part[1].verification_status != validation_status.VERIFIED]
        reasons = [f"{_flavour_of_kernel(kernel)}: {each.status_reason}" for kernel, each in bad if each.status_reason]
        together.append(replace(bad[0][1], status_reason="; ".join(reasons)) if bad else chosen_parts[0][1])
    return together


def _condition(
    observed: Observed, children: Mapping[str, ValidatedKernel], module_statuses: Sequence[ModuleStatus]
) -> Condition:
    """Returns the condition Validated of all children together; Unknown while one of them has no verdict."""
    for name, kernel in children.items():
        child = observed.validations.get(name)
        verdict = find(child.status.conditions, validation_status.VALIDATED) if child else None
        current = child is not None and child.spec.kernel_version == kernel.kernel_version
        if not current or verdict is None or child is None or verdict.observed_generation != child.metadata.generation:
            return validation_status.unknown_condition("InProgress", f"PreflightValidation {name} has not looked yet.")
        if verdict.status == "Unknown" and verdict.reason != "InProgress":
            return replace(verdict, last_transition_time=None)
    return validation_status.condition(
        module_statuses, [child_status.kernel_version for child_status in children.values()]
    )
