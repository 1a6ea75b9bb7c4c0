"""The ReplicaSet and Job controllers: they run the pods that a template asks for. Caches in, calls out.

A ReplicaSet keeps a number of pods. A Job runs pods until enough have succeeded, too many have failed, or a deadline
has passed; the rules are those of Kubernetes' job controller (pkg/controller/job) for Jobs without an index. Pods of a
Job get no finalizers, since no other component removes them before they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find, with_condition
from kubekit.api.meta_v1 import Condition, ConditionStatus, NamespacedName
from kubekit.api.whole_v1 import WholeJob, WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubesandbox.controllers import owned_pods
from kubesandbox.controllers.controller_loop import Requeue, Step
from kubesandbox.controllers.owned_pods import JOBS, JSON, REPLICA_SETS, is_active, is_over, is_ready, ready_since

REPLICA_FAILURE, FAILED_CREATE = "ReplicaFailure", "FailedCreate"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_BY_PHASE = {"Pending": 0, "Unknown": 1, "Running": 2}
# Waits before a failed pod is replaced: 10 s doubling to 10 min (pkg/controller/job `DefaultJobPodFailureBackOff`).
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 600.0
# The condition that is set once the outcome is certain, before the last pod has ended (batch/v1 JobConditionType).
_DECIDED = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}


class ReplicaSets:
    """The controller that keeps the desired number of pods."""

    name = "replicaset"

    def __init__(self, replica_sets: Cache[WholeReplicaSet], pods: Cache[WholePod], clock: Clock) -> None:
        self._replica_sets, self._pods, self._clock = replica_sets, pods, clock
        self._asked = owned_pods.Expectations(pods, clock)

    def calls(self, key: NamespacedName) -> Iterator[Step]:
        """Yields the calls for the ReplicaSet of `key`."""
        whole = self._replica_sets.get(key)
        if whole is None:
            self._asked.forget(key)
            return
        spec, now = whole.spec, self._clock.now()
        report = owned_pods.reporter(whole, REPLICA_SETS, "replicaset-controller", now)
        active = [pod for pod in owned_pods.controlled_by(whole, self._pods) if owned_pods.is_active(pod)]
        refused = None
        if whole.metadata.deletion_timestamp is None:
            missing = spec.replicas - len(active) - self._asked.pending(key)
            if missing > 0:
                new_pod = owned_pods.pod_of(whole, REPLICA_SETS, spec.template)
                refused = yield from self._asked.create_all(key, new_pod, missing, report)
            else:
                for pod in sorted(active, key=deletion_rank)[:-missing]:
                    yield owned_pods.delete_pod(pod)
                    yield report("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        # ReplicaFailure keeps its first message until a pod is created (pkg/controller/replicaset).
        failure = find(whole.status.conditions, REPLICA_FAILURE)
        conditions = [condition for condition in whole.status.conditions if condition is not failure]
        if refused is not None:
            conditions.append(
                failure
                or Condition(
                    type=REPLICA_FAILURE,
                    status="True",
                    reason=FAILED_CREATE,
                    message=refused.message,
                    last_transition_time=now,
                )
            )
            if failure is None:
                yield report(FAILED_CREATE, f"Error creating: {refused.message}")
        template_labels = spec.template.get("metadata", {}).get("labels") or {}
        ready = [pod for pod in active if is_ready(pod)]
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(template_labels.items() <= pod.metadata.labels.items() for pod in active),
            "readyReplicas": len(ready),
            "availableReplicas": sum(not unavailable_for_s(pod, spec.min_ready_seconds, now) for pod in ready),
            "observedGeneration": whole.metadata.generation,
            "conditions": codec.to_dict(conditions),
        }
        if status != owned_pods.status_of(whole):
            yield calls.merge_patch(REPLICA_SETS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        waits = [wait for pod in active if (wait := unavailable_for_s(pod, spec.min_ready_seconds, now))]
        if waits:
            yield Requeue(min(waits))


def deletion_rank(pod: WholePod) -> tuple[Any, ...]:
    """Returns the sort key of pods to delete: the lowest goes first (pkg/controller `ActivePodsWithRanks`)."""
    never, cost = datetime(1970, 1, 1, tzinfo=UTC), 0
    with suppress(ValueError):
        cost = int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    restarts = [int(one.get("restartCount") or 0) for one in pod.status.get("containerStatuses") or ()]
    return (
        bool(pod.spec.get("nodeName")),
        _BY_PHASE.get(pod.status.get("phase") or "Pending", 0),
        is_ready(pod),
        cost,
        # Pods that are ready the longest, restarted the least and are the oldest stay.
        -(ready_since(pod) or never).timestamp(),
        -max(restarts, default=0),
        -(pod.metadata.creation_timestamp or never).timestamp(),
        pod.metadata.name,
    )


def unavailable_for_s(pod: WholePod, min_ready_s: int, now: datetime) -> float:
    """Returns the seconds until a ready pod counts as available; 0 if it does already, or is not ready."""
    since = ready_since(pod)
    if since is None or not min_ready_s:
        return 0.0
    return max(0.0, min_ready_s - (now - since).total_seconds())


class Jobs:
    """The controller that runs Jobs; `first_backoff_s` is its wait after the first failure."""

    name = "job"

    def __init__(
        self, jobs: Cache[WholeJob], pods: Cache[WholePod], clock: Clock, *, first_backoff_s: float = FIRST_BACKOFF_S
    ) -> None:
        self._jobs, self._pods, self._clock, self._first_backoff_s = jobs, pods, clock, first_backoff_s
        self._asked = owned_pods.Expectations(pods, clock)
        # The Jobs whose pods were refused last time, by uid: only the first refusal is reported.
        self._refused: set[str] = set()

    def calls(self, key: NamespacedName) -> Iterator[Step]:
        """Yields the calls for the Job of `key`."""
        job = self._jobs.get(key)
        if job is None:
            self._asked.forget(key)
            return
        if job.metadata.deletion_timestamp is not None:
            return
        now = self._clock.now()
        report = owned_pods.reporter(job, JOBS, "job-controller", now)
        tally = Tally.of(owned_pods.controlled_by(job, self._pods))
        outcome = final_condition(job, tally, now)
        refused = None
        if outcome is None:
            room = pods_to_run(job, tally) - len(tally.active)
            for pod in tally.active[: max(0, -room)]:
                yield owned_pods.delete_pod(pod)
                yield report("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
            room -= self._asked.pending(key)
            if room > 0 and (wait_s := backoff_s(tally, now, first_s=self._first_backoff_s)) > 0:
                yield Requeue(wait_s)
            elif room > 0:
                template = job.spec.template
                metadata = template.get("metadata") or {}
                names = dict.fromkeys(("batch.kubernetes.io/job-name", "job-name"), job.metadata.name)
                metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), **names}}
                new_pod = owned_pods.pod_of(job, JOBS, {**template, "metadata": metadata})
                refused = yield from self._asked.create_all(key, new_pod, room, report)
        else:
            for pod in tally.active:
                yield owned_pods.delete_pod(pod)
                yield report("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
            # The Job itself is deleted after its time to live.
            ttl, ended = job.spec.ttl_seconds_after_finished, find(job.status.conditions, outcome.type)
            if ttl is not None and ended is not None and ended.last_transition_time is not None:
                remaining_s = ttl - (now - ended.last_transition_time).total_seconds()
                if remaining_s > 0:
                    yield Requeue(remaining_s)
                else:
                    uid = job.metadata.uid
                    yield calls.delete(JOBS, key.name, key.namespace, uid=uid, propagation="Foreground")
        now_status = job_status(job, tally, outcome, now)
        if now_status != owned_pods.status_of(job):
            yield calls.merge_patch(JOBS, key.name, {"status": now_status}, key.namespace, subresource="status")
            yield from (report(*event) for event in job_events(job, now_status))
        if outcome is None and (left_s := deadline_left_s(job, now)) is not None:
            yield Requeue(max(0.0, left_s))
        if refused is None:
            self._refused.discard(job.metadata.uid)
            return
        if job.metadata.uid not in self._refused:
            self._refused.add(job.metadata.uid)
            yield report(FAILED_CREATE, f"Error creating: {refused.message}")
        # After the status: the time limit of a Job counts though none of its pods may be created.
        raise refused


@dataclass(frozen=True, slots=True)
class Tally:
    """A Job's pods by their state."""

    active: Sequence[WholePod]
    succeeded: int
    failed: Sequence[WholePod]
    # Whether any pod still runs, including those that are being deleted.
    running: bool

    @classmethod
    def of(cls, pods: Sequence[WholePod]) -> Tally:
        """Groups pods by their state."""
        return cls(
            active=[pod for pod in pods if is_active(pod)],
            succeeded=sum(pod.status.get("phase") == "Succeeded" for pod in pods),
            failed=[pod for pod in pods if pod.status.get("phase") == "Failed"],
            running=any(not is_over(pod) for pod in pods),
        )


def pods_to_run(job: WholeJob, tally: Tally) -> int:
    """Returns the number of pods that should be active now."""
    spec = job.spec
    if spec.suspend:
        return 0
    if spec.completions is None:
        # A work queue Job (no completions): once a pod has succeeded, no other is started.
        return len(tally.active) if tally.succeeded else spec.parallelism
    return min(spec.parallelism, spec.completions - tally.succeeded)


def backoff_s(tally: Tally, now: datetime, *, first_s: float = FIRST_BACKOFF_S) -> float:
    """Returns the seconds until another pod may be started, after those that failed."""
    states = [status.get("state") or {} for pod in tally.failed for status in pod.status.get("containerStatuses") or ()]
    ends = [text for state in states if (text := (state.get("terminated") or {}).get("finishedAt"))]
    if not ends:
        return 0.0
    # The exponent is limited, so that the power stays finite.
    wait = min(first_s * 2.0 ** min(len(tally.failed) - 1, 32), LONGEST_BACKOFF_S)
    return max(0.0, wait - (now - max(map(datetime.fromisoformat, ends))).total_seconds())


def deadline_left_s(job: WholeJob, now: datetime) -> float | None:
    """Returns the seconds until the Job exceeds its active deadline; None without a deadline."""
    limit, started = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or job.spec.suspend:
        return None
    return limit - (now - started).total_seconds() if started is not None else limit


def final_condition(job: WholeJob, tally: Tally, now: datetime) -> Condition | None:
    """Returns the condition with which the Job ended; None until then."""
    for type_, first in _DECIDED.items():
        reached = find(job.status.conditions, type_) or find(job.status.conditions, first)
        if reached is not None:
            return _new_condition(type_, reached.reason, reached.message)
    if len(tally.failed) > job.spec.backoff_limit:
        return _new_condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    remaining_s = deadline_left_s(job, now)
    if remaining_s is not None and remaining_s <= 0:
        return _new_condition("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if job.spec.completions is None:
        enough = tally.succeeded > 0 and not tally.active
    else:
        enough = tally.succeeded >= job.spec.completions
    if not enough:
        return None
    return _new_condition("Complete", "CompletionsReached", "Reached expected number of succeeded pods")


def job_events(job: WholeJob, status: JSON) -> Iterator[tuple[str, str]]:
    """Yields reason and message of the Events of the conditions that `status` adds."""
    current = {(condition.type, condition.status) for condition in job.status.conditions}
    for condition in status["conditions"]:
        if (condition["type"], condition["status"]) in current:
            continue
        if condition["type"] == "Complete":
            yield "Completed", "Job completed"
        elif condition["type"] == "Failed":
            yield condition["reason"], condition["message"]
        elif condition["type"] == "Suspended":
            yield condition["reason"].removeprefix("Job").capitalize(), condition["message"]


def _new_condition(type_: str, reason: str, message: str, status: ConditionStatus = "True") -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message)


def job_status(job: WholeJob, tally: Tally, outcome: Condition | None, now: datetime) -> JSON:
    """Returns the whole status in its JSON form."""
    conditions, new = job.status.conditions, []
    if job.spec.suspend:
        new.append(_new_condition("Suspended", "JobSuspended", "Job suspended"))
    elif find(conditions, "Suspended") is not None:
        new.append(_new_condition("Suspended", "JobResumed", "Job resumed", "False"))
    if outcome is not None:
        # The outcome is certain before the last pod has ended, and set once none runs any longer.
        new.append(_new_condition(_DECIDED[outcome.type], outcome.reason, outcome.message))
        new += [] if tally.running else [outcome]
    for condition in new:
        conditions = with_condition(conditions, condition, now=now)
    started = None if job.spec.suspend and not outcome else job.status.start_time or now
    complete = outcome is not None and outcome.type == "Complete" and not tally.running
    completed = job.status.completion_time or (now if complete else None)
    return {
        "active": 0 if outcome else len(tally.active),
        "ready": 0 if outcome else sum(is_ready(pod) for pod in tally.active),
        "succeeded": tally.succeeded,
        "failed": len(tally.failed),
        "startTime": codec.to_dict(started),
        "completionTime": codec.to_dict(completed),
        "conditions": codec.to_dict(conditions),
    }
