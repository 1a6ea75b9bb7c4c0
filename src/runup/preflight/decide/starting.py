"""Why a target does not start, in the words of whoever keeps it from starting: ReplicaSet, scheduler, kubelet.

In: the Deployment, its pods, the Warning events of the namespace. Out: a reason and those words, or nothing. What
Kubernetes writes where: a pod that may not be created (quota, admission, a missing account) is condition ReplicaFailure
of the ReplicaSet, which the Deployment repeats; a pod that no node takes is condition PodScheduled; one that its node
refuses or throws out is phase Failed with a reason; a volume that cannot be mounted is an event alone. An image that
cannot be pulled and a container that cannot be made are states of the container, which `outcome` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.workloads_v1 import Deployment
from kubekit.lang.pattern import Pattern

# Mounts and sandboxes often succeed at the second try; a pod that takes longer than this says why.
PATIENCE_S = 5.0
REASON = Pattern(r"[A-Za-z]([A-Za-z0-9_]{0,99})")
PENDING, FAILED_CREATE, UNSCHEDULABLE, POD_FAILED = "TargetPending", "FailedCreate", "Unschedulable", "PodFailed"
# Told by conditions and states already, in better words.
_TOLD_ELSEWHERE = frozenset({"FailedScheduling", "Failed", "BackOff", "InspectFailed", "Unhealthy"})
_MAX_WORDS = 600
_OVER = ("Failed", "Succeeded")


class Trouble(msgspec.Struct, frozen=True):
    """`failed`: somebody said why; otherwise it only takes long."""

    reason: str
    message: str
    way_out: str
    failed: bool = True


def trouble(
    deployment: Deployment | None, pods: Sequence[Pod], events: Iterable[Event], *, name: str, now: datetime
) -> Trouble | None:
    """What keeps Deployment `name` from having a running pod; None where nothing does, or nothing is known yet."""
    if deployment is None:
        return None
    pod = active_pod(pods)
    if pod is None:
        return _not_created(deployment) or _thrown_out(pods) or _no_pod(deployment, pods, events, name, now)
    if _has_begun(pod):
        return None
    return _not_scheduled(pod) or _not_set_up(pod, events, now)


def look_again_s(deployment: Deployment | None, pods: Sequence[Pod], now: datetime) -> float | None:
    """Seconds until waiting becomes worth a word; None where it is, or nothing waits."""
    pod = active_pod(pods)
    waiting = deployment if pod is None else pod
    if waiting is None or (pod is not None and _has_begun(pod)):
        return None
    left = PATIENCE_S - _age_s(waiting, now)
    return left if left > 0 else None


def active_pod(pods: Iterable[Pod]) -> Pod | None:
    """The newest pod that runs or will."""
    found = [pod for pod in pods if pod.status.phase not in _OVER and pod.metadata.deletion_timestamp is None]
    return max(found, key=_made, default=None)


def _made(pod: Pod) -> tuple[str, str]:
    return str(pod.metadata.creation_timestamp or ""), pod.metadata.name


def _age_s(obj: Deployment | Pod, now: datetime) -> float:
    created = obj.metadata.creation_timestamp
    return (now - created).total_seconds() if created else 0.0


def _has_begun(pod: Pod) -> bool:
    """Whether its container runs, has run, or waits for a reason that the kubelet gives itself."""
    states = [status.state for status in pod.status.container_statuses]
    if any(status.restart_count or status.last_state.terminated for status in pod.status.container_statuses):
        return True
    return any(
        state.running or state.terminated or (state.waiting and state.waiting.reason not in _BEING_MADE)
        for state in states
    )


_BEING_MADE = ("", "ContainerCreating", "PodInitializing")


def _not_created(deployment: Deployment) -> Trouble | None:
    conditions = deployment.status.conditions
    told = find(conditions, "ReplicaFailure")
    if told is None or told.status != "True":
        told = find(conditions, "Progressing")
        # pkg/controller/deployment/util: not even the ReplicaSet could be created.
        if told is None or told.status != "False" or told.reason != "ReplicaSetCreateError":
            return None
    return _refused(told.reason, told.message)


def _refused(reason: str, words: str) -> Trouble:
    return Trouble(
        reason if REASON.fullmatch(reason) else FAILED_CREATE,
        f"the target's pod could not be created: {cut(words)}",
        "it is tried again: change what refuses it (a quota, an admission rule, an account)",
    )


def _thrown_out(pods: Iterable[Pod]) -> Trouble | None:
    """The newest pod that its node refused or ended, where no other took its place."""
    over = [pod for pod in pods if pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None]
    pod = max(over, key=_made, default=None)
    if pod is None:
        return None
    said = pod.status
    reason = said.reason if REASON.fullmatch(said.reason) else POD_FAILED
    node = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    return Trouble(
        reason,
        f"the target's pod failed{node} ({reason}): {cut(said.message)}",
        "it is made again: give the node room, or lower what the preflight asks for",
    )


def _no_pod(
    deployment: Deployment, pods: Sequence[Pod], events: Iterable[Event], name: str, now: datetime
) -> Trouble | None:
    """Where the Deployment repeats nothing, the ReplicaSet's own events do."""
    if pods:
        return None
    created = deployment.metadata.creation_timestamp
    refusals = [
        event
        for event in events
        if (event.involved_object.kind, event.reason) == ("ReplicaSet", FAILED_CREATE)
        and event.involved_object.name.startswith(f"{name}-")
        and (created is None or event.seen_at is None or event.seen_at >= created)
    ]
    if refusals:
        last = max(refusals, key=_when)
        return _refused(FAILED_CREATE, last.message.removeprefix("Error creating: "))
    if created is None or _age_s(deployment, now) < PATIENCE_S:
        return None
    text = f"no pod of it was made since {created:%Y-%m-%dT%H:%M:%SZ}, and nobody says why"
    return Trouble(PENDING, text, "", failed=False)


def _not_scheduled(pod: Pod) -> Trouble | None:
    told = find(pod.status.conditions, "PodScheduled")
    if told is None or told.status != "False" or told.reason != UNSCHEDULABLE:
        return None
    return Trouble(
        UNSCHEDULABLE,
        f"no node takes the target's pod: {cut(told.message)}",
        "it is tried again: make room on the operator's node, or change what the preflight asks for and tolerates",
    )


def _not_set_up(pod: Pod, events: Iterable[Event], now: datetime) -> Trouble | None:
    if _age_s(pod, now) < PATIENCE_S:
        return None
    about = [
        event
        for event in events
        if event.involved_object.uid == pod.metadata.uid and event.reason not in _TOLD_ELSEWHERE and event.reason
    ]
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    if about:
        last = max(about, key=_when)
        reason = last.reason if REASON.fullmatch(last.reason) else POD_FAILED
        text = f"the target's pod cannot be set up{where} ({reason}): {cut(last.message)}"
        return Trouble(reason, text, "it is tried again: see the events of the pod")
    since = pod.metadata.creation_timestamp
    waits = "is being set up" if pod.spec.node_name else "waits for the scheduler"
    text = f"its pod {waits}{where} since {since:%Y-%m-%dT%H:%M:%SZ}; the image may still be on its way"
    return Trouble(PENDING, text, "", failed=False)


def _when(event: Event) -> tuple[str, str]:
    return str(event.seen_at or ""), event.metadata.name


def cut(words: str) -> str:
    """One line; the beginning says what it is about."""
    words = " ".join(words.split()).rstrip(".")
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}..."
