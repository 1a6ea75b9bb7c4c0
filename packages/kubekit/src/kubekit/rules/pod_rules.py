"""Decides whether a pod can do its work: it is scheduled, its containers start and stay up, and it is ready.

Sources: kubelet, `pkg/kubelet/images` and `pkg/kubelet/kuberuntime` (reasons of waiting containers, back-off of at most
five minutes between restarts); core/v1 (phase Pending, conditions PodScheduled and Ready).
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Pod

IMAGE_REASONS = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
BROKEN_REASONS = IMAGE_REASONS | {
    "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}  # fmt: skip
"""Reasons why a container does not run that waiting does not remove."""

_LOOPS = 6
"""Restarts after which the back-off has reached its five minutes (kubelet, MaxContainerBackOff)."""

# A pod that is replaced or started in an ordinary rollout has these states for less.
PATIENCE = timedelta(minutes=5)
# The kubelet restarts a container that ends again and again at least every five minutes.
_RESTARTED_WITHIN = timedelta(minutes=10)
_RESTARTS = 3


class PodTrouble(msgspec.Struct, frozen=True):
    """The reason why a pod cannot do its work, in a few words, and since when, None if that is not known."""

    why: str
    since: datetime | None = None


def waiting_reason(pod: Pod) -> tuple[str, str]:
    """Returns the reason and message of a pod's waiting container, a broken one first; empty texts if none waits.

    Init containers come first: the others wait for them.
    """
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    waits = [(wait.reason, wait.message) for status in statuses if (wait := status.state.waiting) and wait.reason]
    return next((wait for wait in waits if wait[0] in BROKEN_REASONS), waits[0] if waits else ("", ""))


def trouble_of(pod: Pod, now: datetime) -> PodTrouble | None:
    """Returns why a pod that has not ended cannot do its work, or None if it can, or is likely to within minutes."""
    created = pod.metadata.creation_timestamp
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    restarts = max((status.restart_count for status in statuses), default=0)
    reason, _ = waiting_reason(pod)
    if reason in BROKEN_REASONS and (restarts >= _RESTARTS or _is_older(created, now)):
        again = f", {restarts} restarts" if restarts else ""
        # The condition Ready of a pod that restarts now and then is younger than its trouble.
        return PodTrouble(f"is in {reason}{again}", _long_not_ready(pod, now) if restarts else created)
    if (ended := _last_end(pod)) and restarts >= _RESTARTS and now - ended <= _RESTARTED_WITHIN:
        return PodTrouble(f"restarts again and again, {restarts} times so far", _long_not_ready(pod, now))
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        since = scheduled.last_transition_time or created
        return (
            PodTrouble(f"is not scheduled ({_cause(scheduled.reason, scheduled.message)})", since)
            if _is_older(since, now)
            else None
        )
    if pod.status.phase == "Pending" and _is_older(created, now):
        return PodTrouble(f"has not started ({reason or pod.status.reason or 'Pending'})", created)
    ready = find(pod.status.conditions, "Ready")
    if ready is not None and ready.status != "True" and _is_older(since := ready.last_transition_time or created, now):
        return PodTrouble(f"is not ready ({_cause(ready.reason, ready.message) or f'Ready={ready.status}'})", since)
    return None


def is_looping(pod: Pod) -> bool:
    """Returns whether a container of the pod has restarted so often, or cannot start, that waiting does not help."""
    reason, _ = waiting_reason(pod)
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return reason in BROKEN_REASONS - {"CrashLoopBackOff"} or any(each.restart_count >= _LOOPS for each in statuses)


def _is_older(moment: datetime | None, now: datetime) -> bool:
    return moment is None or now - moment >= PATIENCE


def _cause(reason: str, message: str) -> str:
    return ": ".join(text for text in (reason, message) if text)


def _last_end(pod: Pod) -> datetime | None:
    """Returns when a container of the pod last ended, None if none is known to have."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    states = (state for each in statuses for state in (each.state, each.last_state))
    ends = [end for state in states if state.terminated and (end := state.terminated.finished_at)]
    return max(ends, default=None)


def _long_not_ready(pod: Pod, now: datetime) -> datetime | None:
    """Returns since when the pod has not been ready; None if it is, or was until just now."""
    ready = find(pod.status.conditions, "Ready")
    since = ready.last_transition_time if ready is not None and ready.status != "True" else None
    return since if since is not None and now - since > _RESTARTED_WITHIN else None
