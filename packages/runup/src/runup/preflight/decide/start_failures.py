"""Determines why a target does not start, in the words of the component that prevents it.

In: the Deployment or the Job, its pods, the Warning events of the namespace. Out: a reason and those words, or nothing.
Where Kubernetes reports what: a pod that may not be created (quota, admission, a missing account) is condition
ReplicaFailure of the ReplicaSet, which the Deployment repeats, and an event of a Job; a pod that no node accepts is
condition PodScheduled; one that its node rejects or evicts has phase Failed with a reason; a volume that cannot be
mounted is reported by an event only; a pod that is not replaced because its node does not confirm its end is known
from its deletionTimestamp alone. An image that cannot be pulled and a container that cannot be created are states
of the container, which `outcome` and `job_progress` read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.workloads_v1 import Deployment, Job
from kubekit.lang.text import shorten

# Seconds: mounts and sandboxes often succeed at the second try, so only longer waits are reported.
REPORT_AFTER_S = 5.0
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_]{0,99})")
# Seconds after its grace period in which the kubelet of a working node confirms a pod's end.
ENDED_WITHIN_S = 60.0
# Seconds within which a controller retries and reports again a pod that it could not create: its backoff ends at 1000 s
# (k8s.io/client-go, util/workqueue, DefaultControllerRateLimiter), and an object's events are limited to one in 300 s.
RETRIED_WITHIN_S = 1300.0
PENDING, FAILED_CREATE, UNSCHEDULABLE, POD_FAILED = "TargetPending", "FailedCreate", "Unschedulable", "PodFailed"
TERMINATING = "PodTerminating"
# Events that conditions and container states report already, in better words.
_REPORTED_ELSEWHERE = frozenset({"FailedScheduling", "Failed", "BackOff", "InspectFailed", "Unhealthy"})
_MAX_CHARACTERS = 600
_ENDED_PHASES = ("Failed", "Succeeded")


class Trouble(msgspec.Struct, frozen=True):
    """A reason why the target does not run. `failed`: a component reported an error; otherwise it only takes long."""

    reason: str
    message: str
    way_out: str
    failed: bool = True


def find_trouble(
    deployment: Deployment | None, pods: Sequence[Pod], events: Iterable[Event], *, name: str, now: datetime
) -> Trouble | None:
    """Returns what keeps Deployment `name` from having a running pod; None if nothing does, or nothing is known yet."""
    if deployment is None:
        return None
    pod = active_pod(pods)
    if pod is None:
        # Events are kept for an hour. Those of an earlier Deployment of the same name do not count, nor those from
        # before the Deployment last had an available pod: a quota that they name may be gone.
        available = find(deployment.status.conditions, "Available")
        times = (deployment.metadata.creation_timestamp, available.last_transition_time if available else None)
        since = max((time for time in times if time is not None), default=None)
        refusals = [
            event
            for event in events
            if (event.involved_object.kind, event.reason) == ("ReplicaSet", FAILED_CREATE)
            and event.involved_object.name.startswith(f"{name}-")
            and (since is None or event.seen_at is None or event.seen_at >= since)
        ]
        return (
            _not_created(deployment)
            or _failed_on_node(pods)
            or _stuck_terminating(pods, now)
            or _trouble_without_pods(deployment, pods, refusals, now)
        )
    if _has_begun(pod):
        return None
    return _not_scheduled(pod) or _trouble_of_setup(pod, events, now)


def trouble_of_job(job: Job, pods: Sequence[Pod], events: Iterable[Event], *, now: datetime) -> Trouble | None:
    """Returns what keeps `job` from having a running pod; None if nothing does, or nothing is known yet."""
    pod = active_pod(pods)
    if pod is None:
        of_job = [event for event in events if event.involved_object.uid == job.metadata.uid]
        refusals = [event for event in of_job if event.reason == FAILED_CREATE]
        without_pods = _trouble_without_pods(job, pods, refusals, now)
        return _failed_on_node(pods) or _stuck_terminating(pods, now) or without_pods
    if _has_begun(pod):
        return None
    return _not_scheduled(pod) or _trouble_of_setup(pod, events, now)


def look_again_s(deployment: Deployment | None, pods: Sequence[Pod], now: datetime) -> float | None:
    """Returns the seconds until a waiting pod is worth reporting; None if it is already, or nothing waits."""
    pod = active_pod(pods)
    if pod is None and deployment is not None and (ending := _ending_pod(pods)) is not None:
        return _seconds_left_to_confirm(ending, now)
    waiting = deployment if pod is None else pod
    if waiting is None or (pod is not None and _has_begun(pod)):
        return None
    remaining_s = REPORT_AFTER_S - _age_s(waiting, now)
    return remaining_s if remaining_s > 0 else None


def active_pod(pods: Iterable[Pod]) -> Pod | None:
    """Returns the newest pod that runs or will run, or None."""
    active = [pod for pod in pods if pod.status.phase not in _ENDED_PHASES and pod.metadata.deletion_timestamp is None]
    return max(active, key=_creation_order, default=None)


def _creation_order(pod: Pod) -> tuple[str, str]:
    return str(pod.metadata.creation_timestamp or ""), pod.metadata.name


def _age_s(obj: Deployment | Job | Pod, now: datetime) -> float:
    created = obj.metadata.creation_timestamp
    return (now - created).total_seconds() if created else 0.0


def _has_begun(pod: Pod) -> bool:
    """Returns whether the pod's container runs, has run, or waits for a reason that the kubelet reports itself."""
    states = [status.state for status in pod.status.container_statuses]
    if any(status.restart_count or status.last_state.terminated for status in pod.status.container_statuses):
        return True
    return any(
        state.running or state.terminated or (state.waiting and state.waiting.reason not in _STARTING_REASONS)
        for state in states
    )


_STARTING_REASONS = ("", "ContainerCreating", "PodInitializing")


def _not_created(deployment: Deployment) -> Trouble | None:
    """Returns the trouble from the Deployment's conditions if its pod or ReplicaSet could not be created."""
    conditions = deployment.status.conditions
    failure = find(conditions, "ReplicaFailure")
    if failure is None or failure.status != "True":
        failure = find(conditions, "Progressing")
        # pkg/controller/deployment/util: not even the ReplicaSet could be created.
        if failure is None or failure.status != "False" or failure.reason != "ReplicaSetCreateError":
            return None
    return _creation_refused(failure.reason, failure.message)


def _creation_refused(reason: str, message: str) -> Trouble:
    """Returns the failure of a pod that could not be created, in the words of the API server or webhook."""
    return Trouble(
        reason if REASON.fullmatch(reason) else FAILED_CREATE,
        f"the target's pod could not be created: {cut(message)}",
        "it is tried again: change what refuses it (a quota, an admission rule, an account)",
    )


def _failed_on_node(pods: Iterable[Pod]) -> Trouble | None:
    """Returns the trouble of the newest pod that its node rejected or evicted; None if no pod has failed."""
    failed_pods = [pod for pod in pods if pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None]
    pod = max(failed_pods, key=_creation_order, default=None)
    if pod is None:
        return None
    pod_status = pod.status
    reason = pod_status.reason if REASON.fullmatch(pod_status.reason) else POD_FAILED
    node = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    return Trouble(
        reason,
        f"the target's pod failed{node} ({reason}): {cut(pod_status.message)}",
        "it is recreated: give the node room, or lower the preflight's requests",
    )


def _stuck_terminating(pods: Iterable[Pod], now: datetime) -> Trouble | None:
    """Returns the trouble of a pod whose node does not confirm its end, so that no other pod is created.

    Strategy Recreate (and podReplacementPolicy Failed of a Job) waits for as long as the node confirms nothing.
    https://kubernetes.io/docs/concepts/architecture/nodes/#node-shutdown
    """
    pod = _ending_pod(pods)
    if pod is None or _seconds_left_to_confirm(pod, now) is not None:
        return None
    node = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    since = pod.metadata.deletion_timestamp
    return Trouble(
        TERMINATING,
        f"its pod {pod.metadata.name}{node} has been terminating since {since:%Y-%m-%dT%H:%M:%SZ}; "
        "no other is created until the node confirms its end",
        "it continues when the node is back; if the node is lost, "
        f"`kubectl -n {pod.metadata.namespace} delete pod {pod.metadata.name} --force`",
    )


def _ending_pod(pods: Iterable[Pod]) -> Pod | None:
    """Returns the pod that has been asked to end first and has not ended, or None."""
    ending = [
        pod for pod in pods if pod.status.phase not in _ENDED_PHASES and pod.metadata.deletion_timestamp is not None
    ]
    return min(ending, key=lambda pod: (str(pod.metadata.deletion_timestamp), pod.metadata.name), default=None)


def _seconds_left_to_confirm(pod: Pod, now: datetime) -> float | None:
    """Returns how many seconds the node has left to confirm that a terminating pod has ended; None if they are over.

    They count from the deletionTimestamp, which is the end of the pod's grace period.
    """
    assert pod.metadata.deletion_timestamp is not None
    remaining_s = ENDED_WITHIN_S - (now - pod.metadata.deletion_timestamp).total_seconds()
    return remaining_s if remaining_s > 0 else None


def _trouble_without_pods(
    workload: Deployment | Job, pods: Sequence[Pod], refusals: Sequence[Event], now: datetime
) -> Trouble | None:
    """Returns the trouble of a workload without pods, from events about it or from how long it has waited."""
    if pods:
        return None
    last_refusal = max(refusals, key=_event_order, default=None)
    seen_at = last_refusal.seen_at if last_refusal else None
    if last_refusal and (seen_at is None or (now - seen_at).total_seconds() <= RETRIED_WITHIN_S):
        return _creation_refused(FAILED_CREATE, last_refusal.message.removeprefix("Error creating: "))
    created = workload.metadata.creation_timestamp
    if created is None or _age_s(workload, now) < REPORT_AFTER_S:
        return None
    text = f"no pod of it was made since {created:%Y-%m-%dT%H:%M:%SZ}, and nobody says why"
    return Trouble(PENDING, text, "", failed=False)


def _not_scheduled(pod: Pod) -> Trouble | None:
    """Returns the trouble of a Pod that no node takes, in the scheduler's words; None if it has a node."""
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled is None or scheduled.status != "False" or scheduled.reason != UNSCHEDULABLE:
        return None
    return Trouble(
        UNSCHEDULABLE,
        f"no node takes the target's pod: {cut(scheduled.message)}",
        "it is tried again: make room on the operator's node, or change what the preflight asks for and tolerates",
    )


def _trouble_of_setup(pod: Pod, events: Iterable[Event], now: datetime) -> Trouble | None:
    """Returns the trouble of a scheduled pod without a started container, from its events or how long it has waited."""
    if _age_s(pod, now) < REPORT_AFTER_S:
        return None
    pod_events = [
        event
        for event in events
        if event.involved_object.uid == pod.metadata.uid and event.reason not in _REPORTED_ELSEWHERE and event.reason
    ]
    node_text = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    if pod_events:
        last_event = max(pod_events, key=_event_order)
        reason = last_event.reason if REASON.fullmatch(last_event.reason) else POD_FAILED
        text = f"the target's pod cannot be set up{node_text} ({reason}): {cut(last_event.message)}"
        return Trouble(reason, text, "it is tried again: see the events of the pod")
    since = pod.metadata.creation_timestamp
    waits = "is being set up" if pod.spec.node_name else "waits for the scheduler"
    text = f"its pod {waits}{node_text} since {since:%Y-%m-%dT%H:%M:%SZ}; the image may still be on its way"
    return Trouble(PENDING, text, "", failed=False)


def _event_order(event: Event) -> tuple[str, str]:
    return str(event.seen_at or ""), event.metadata.name


def cut(text: str) -> str:
    """Returns the text on one line, cut at the end, since the beginning names the subject."""
    return shorten(" ".join(text.split()).rstrip("."), _MAX_CHARACTERS, keep=_MAX_CHARACTERS)
