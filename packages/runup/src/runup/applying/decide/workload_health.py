"""Decides whether an applied workload or definition (CRD) is healthy.

Source: docs/upstream-behaviour.md 5.2, health after apply.
"""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from runup.api.owned_v1 import OwnedWorkload, WorkloadStatus
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task

DEPLOYMENT, DAEMON_SET, JOB = ("apps", "Deployment"), ("apps", "DaemonSet"), ("batch", "Job")
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
KINDS = (DEPLOYMENT, DAEMON_SET, JOB, DEFINITION)
# A roll-out is waited for before a release counts as applied.
ROLLED_OUT = (DEPLOYMENT, DAEMON_SET)
_NOT_AVAILABLE, _NOT_PROGRESSING = "WorkloadNotAvailable", "WorkloadNotProgressing"


def problem_of(task: Task, workload: OwnedWorkload | None, state: ApplyReason) -> Problem | None:
    """Returns why the object of `task` is not healthy; None if it is, or if its kind is not waited for.

    During an installation only Jobs, which order the tasks, and CustomResourceDefinitions are waited for.
    """
    if task.kind not in KINDS or workload is None or workload.status is None:
        return None
    name = _task_name(task)
    if task.kind == JOB:
        return _job(task, workload.status)
    if task.kind == DEFINITION:
        established = status_of(workload.status.conditions, "Established") == "True"
        return None if established else _waiting_problem(f"{name} is not established yet")
    if state is ApplyReason.INITIALIZING:
        return None
    if workload.metadata.deletion_timestamp is not None:
        return Problem(_NOT_AVAILABLE, f"{name} is being deleted")
    # Until the controller has observed the new spec, the conditions are about the old one.
    if task.kind != DEPLOYMENT or workload.status.observed_generation < workload.metadata.generation:
        return None
    return _deployment(name, workload.status)


def unfinished_rollout(task: Task, workload: OwnedWorkload | None) -> Problem | None:
    """Returns why the object of `task` does not run what the release wants; None if it does, or if it is no workload.

    Until its controller has observed the spec as it is, its status is of an earlier one. 0 is the generation of an
    object that no controller has observed yet. A release that itself pauses a Deployment is taken at its word, and one
    that only creates an object leaves the rest to others.
    """
    if task.kind not in ROLLED_OUT or task.create_only or task.deletes:
        return None
    name = _task_name(task)
    if workload is None:
        return _waiting_problem(f"{name}, which is not seen yet")
    status, generation = workload.status, workload.metadata.generation
    spec = task.manifest.object.get("spec") or {}
    if workload.spec.paused and not spec.get("paused"):
        return _waiting_problem(f"{name}, which is paused")
    observed = status.observed_generation if status is not None else 0
    if task.kind == DAEMON_SET and not observed:
        return None  # a cluster may lack the controller: docs/decisions/0079
    if status is None or observed < generation:
        return _waiting_problem(f"{name}, whose controller has observed generation {observed} of {generation}")
    if task.kind == DEPLOYMENT:
        without_pod = spec.get("replicas", 1) != 0 and not status.replicas
    else:
        without_pod = bool(status.desired_number_scheduled) and not status.current_number_scheduled
    return _waiting_problem(f"{name}, which has no pod yet") if without_pod else None


def _deployment(name: str, status: WorkloadStatus) -> Problem | None:
    """Returns why a Deployment is not healthy, from its conditions; None if it is."""
    available = find(status.conditions, "Available")
    progressing = find(status.conditions, "Progressing")
    failing = find(status.conditions, "ReplicaFailure")
    if failing is not None and failing.status == "True":
        return Problem(_NOT_PROGRESSING, f"{name} has some pods failing; {_condition_text(failing)}")
    if available is not None and available.status == "False" and progressing and progressing.status == "False":
        states = f"is not available {_condition_text(available)} and not progressing {_condition_text(progressing)}"
        return Problem(_NOT_AVAILABLE, f"{name} {states}")
    if progressing and progressing.status == "False" and progressing.reason == "ProgressDeadlineExceeded":
        return Problem(_NOT_PROGRESSING, f"{name} is {progressing.reason}={progressing.status}: {progressing.message}")
    return None


def _job(task: Task, status: WorkloadStatus) -> Problem | None:
    """Returns why a Job is not done, None if it has succeeded. Tasks that come after a Job depend on its success."""
    if status.succeeded > 0 or status_of(status.conditions, "Complete") == "True":
        return None
    failed = find(status.conditions, "Failed")
    if failed is not None and failed.status == "True":
        words = "deadline exceeded" if failed.reason == "DeadlineExceeded" else "failed"
        text = f'{_task_name(task)}: {words}, reason: "{failed.reason}", message: "{failed.message}"'
        return Problem("WorkloadNotProgressing", text)
    return _waiting_problem(f"{_task_name(task)} has not finished yet")


def _waiting_problem(message: str) -> Problem:
    return Problem("WaitingForObject", f"waiting on {message}", Effect.NONE)


def _task_name(task: Task) -> str:
    identity = task.identity
    name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    return f"{identity.kind.lower()} {name}"


def _condition_text(condition: Condition) -> str:
    return f"({condition.reason}: {condition.message})"
