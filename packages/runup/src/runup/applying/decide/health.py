"""Evaluates whether applied objects are healthy: ClusterOperators, and workloads, Jobs and definitions. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterOperator, OperandVersion
from runup.api.owned_v1 import OwnedWorkload
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.task import Task

CLUSTER_OPERATOR = ("config.openshift.io", "ClusterOperator")
# While a release is being applied, an operator that was first waited for less than this ago is progress, not failure.
UNAVAILABLE_GRACE = timedelta(seconds=30)


def wants_versions(manifest: dict[str, object]) -> tuple[OperandVersion, ...]:
    """Returns the versions that a ClusterOperator's manifest declares."""
    status = manifest.get("status")
    versions = status.get("versions") if isinstance(status, dict) else None
    return tuple(
        OperandVersion(name=str(version.get("name", "")), version=str(version.get("version", "")))
        for version in (versions if isinstance(versions, list) else ())
        if isinstance(version, dict)
    )


def operator_problem(
    name: str,
    wanted_versions: tuple[OperandVersion, ...],
    operator: ClusterOperator | None,
    state: ApplyReason,
    since: datetime,
    now: datetime,
) -> Problem | None:
    """Returns why operator `name` is not ready, None if it is; `since` is when it was first waited for."""
    conditions = operator.status.conditions if operator is not None else ()
    # Versions that only the operator reports are ignored: the manifest says which ones count.
    reported = {version.name: version.version for version in operator.status.versions} if operator is not None else {}
    holds = {
        "NoVersions": not wanted_versions,
        "NotAvailable": status_of(conditions, "Available") != "True",
        # A missing Degraded condition counts as degraded.
        "Degraded": status_of(conditions, "Degraded") != "False",
        "Updating": any(reported.get(version.name) != version.version for version in wanted_versions),
    }
    for kind, (one, several, effects) in _OPERATOR_PROBLEMS.items():
        effect = effects[state]
        if not holds[kind] or effect is None:
            continue
        if kind == "NotAvailable" and state is not ApplyReason.RECONCILING and now - since < UNAVAILABLE_GRACE:
            effect = Effect.NONE
        return Problem(
            reason=f"ClusterOperator{kind}",
            message=f"Cluster operator {name} {one}",
            effect=effect,
            names=(name,),
            plural=f"ClusterOperators{kind}",
            predicate=several,
            since=((name, since),),
        )
    return None


# The problems of a ClusterOperator, of which the first counts: its message about one operator and about several, and
# the effect by the state of the run (None: no problem). While a release is kept, no problem is progress, so each is a
# failure at once; the periods of grace are those of an update (docs/reference/upstream.md 4.6 and 4.7).
_OPERATOR_PROBLEMS: dict[str, tuple[str, str, dict[ApplyReason, Effect | None]]] = {
    "NoVersions": (
        "does not declare expected versions",
        "do not declare expected versions",
        {
            ApplyReason.INITIALIZING: Effect.FAIL,
            ApplyReason.UPDATING: Effect.FAIL,
            ApplyReason.RECONCILING: Effect.FAIL,
        },
    ),
    # An update allows `UNAVAILABLE_GRACE`.
    "NotAvailable": (
        "is not available",
        "are not available",
        {
            ApplyReason.INITIALIZING: Effect.FAIL,
            ApplyReason.UPDATING: Effect.FAIL,
            ApplyReason.RECONCILING: Effect.FAIL,
        },
    ),
    "Degraded": (
        "is degraded",
        "are degraded",
        {
            ApplyReason.INITIALIZING: Effect.REPORT,
            ApplyReason.UPDATING: Effect.FAIL_AFTER_INTERVAL,
            ApplyReason.RECONCILING: Effect.FAIL,
        },
    ),
    "Updating": (
        "is updating versions",
        "are updating versions",
        {
            ApplyReason.INITIALIZING: None,
            ApplyReason.UPDATING: Effect.NONE,
            ApplyReason.RECONCILING: Effect.FAIL,
        },
    ),
}


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
        if workload.status.succeeded > 0 or status_of(workload.status.conditions, "Complete") == "True":
            return None
        failed = find(workload.status.conditions, "Failed")
        if failed is not None and failed.status == "True":
            words = "deadline exceeded" if failed.reason == "DeadlineExceeded" else "failed"
            text = f'{_task_name(task)}: {words}, reason: "{failed.reason}", message: "{failed.message}"'
            return Problem(reason="WorkloadNotProgressing", message=text)
        return _waiting_problem(f"{_task_name(task)} has not finished yet")
    if task.kind == DEFINITION:
        established = status_of(workload.status.conditions, "Established") == "True"
        return None if established else _waiting_problem(f"{name} is not established yet")
    if state is ApplyReason.INITIALIZING:
        return None
    if workload.metadata.deletion_timestamp is not None:
        return Problem(reason=_NOT_AVAILABLE, message=f"{name} is being deleted")
    # Until the controller has observed the new spec, the conditions are about the old one.
    if task.kind != DEPLOYMENT or workload.status.observed_generation < workload.metadata.generation:
        return None
    available = find(workload.status.conditions, "Available")
    progressing = find(workload.status.conditions, "Progressing")
    failing = find(workload.status.conditions, "ReplicaFailure")
    if failing is not None and failing.status == "True":
        return Problem(reason=_NOT_PROGRESSING, message=f"{name} has some pods failing; {_condition_text(failing)}")
    if available is not None and available.status == "False" and progressing and progressing.status == "False":
        states = f"is not available {_condition_text(available)} and not progressing {_condition_text(progressing)}"
        return Problem(reason=_NOT_AVAILABLE, message=f"{name} {states}")
    if progressing and progressing.status == "False" and progressing.reason == "ProgressDeadlineExceeded":
        return Problem(
            reason=_NOT_PROGRESSING,
            message=f"{name} is {progressing.reason}={progressing.status}: {progressing.message}",
        )
    return None


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


def _waiting_problem(message: str) -> Problem:
    return Problem(reason="WaitingForObject", message=f"waiting on {message}", effect=Effect.NONE)


def _task_name(task: Task) -> str:
    identity = task.identity
    name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    return f"{identity.kind.lower()} {name}"


def _condition_text(condition: Condition) -> str:
    return f"({condition.reason}: {condition.message})"
