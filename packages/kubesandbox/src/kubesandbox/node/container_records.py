"""The agent's records of containers and their transitions: states in, states out.

The worker of a pod keeps one `ContainerRecord` a container; `podstatus` turns them into the pod's status.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from kubekit.api.whole_v1 import WholePod

JSON = dict[str, Any]
# Prefixes of container ids by which the agent recognises its own statuses: of processes it ran, of declared pods.
RAN, DECLARED = "runup://", "runup-declared://"
# 128 + SIGKILL, the kubelet's code for a container that it lost.
LOST_EXIT_CODE = 137


@dataclass(frozen=True, slots=True)
class Waiting:
    """The state of a container that is not started yet, or about to be restarted."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """The state of a container that has been running since `at`."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """The state of a container that ended; `reason` is Completed, Error, OOMKilled, StartError and the like."""

    exit_code: int
    reason: str
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = ""


State = Waiting | Started | Ended


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """A container as the agent knows it; `restarts` counts starts after the first."""

    name: str
    image: str
    image_id: str = ""
    container_id: str = ""
    state: State = Waiting()
    last: Ended | None = None
    restarts: int = 0
    ready: bool = False

    @property
    def latest_end(self) -> Ended | None:
        """The end of its latest run, or None if it has not run yet."""
        return self.state if isinstance(self.state, Ended) else self.last

    @property
    def succeeded(self) -> bool:
        """Reports whether it ended with exit code 0."""
        return isinstance(self.state, Ended) and self.state.exit_code == 0

    def waiting(self, reason: str, message: str = "") -> ContainerRecord:
        """Returns the record of the container when it waits, with the reason."""
        return replace(self, state=Waiting(reason, message), last=self.latest_end, ready=False)

    def started(self, at: datetime, *, image_id: str, container_id: str, ready: bool) -> ContainerRecord:
        """Returns the record of the container when it has started; a restart if it had run before."""
        latest_end = self.latest_end
        return replace(
            self,
            state=Started(at),
            last=latest_end,
            restarts=self.restarts + (latest_end is not None),
            image_id=image_id,
            container_id=container_id,
            ready=ready,
        )

    def with_ready(self, ready: bool) -> ContainerRecord:
        """Returns the record with another readiness."""
        return replace(self, ready=ready)

    def ended(self, end: Ended) -> ContainerRecord:
        """Returns the record of the container when it has ended."""
        return replace(self, state=replace(end, container_id=self.container_id), ready=False)


RestartPolicy = Literal["Always", "OnFailure", "Never"]


def restart_policy(pod: WholePod) -> RestartPolicy:
    """Returns `spec.restartPolicy`, by default Always."""
    policy: RestartPolicy = pod.spec.get("restartPolicy") or "Always"
    return policy


def is_restarted(policy: RestartPolicy, exit_code: int) -> bool:
    """Returns whether a container with this exit code is restarted."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def resumed_record(pod: WholePod, name: str, image: str) -> ContainerRecord:
    """Returns the record of a container as an earlier agent left it in the pod's status, or else a new one.

    A container that was running died with that agent, as on a node that went down: its exit is unknown, so it counts as
    failed.
    """
    container_status = _status_in_pod(pod, name)
    record = ContainerRecord(name, image)
    if container_status is None or not _is_ran(container_status):
        return record
    record = replace(
        record,
        image_id=container_status.get("imageID") or "",
        container_id=container_status.get("containerID") or "",
        restarts=int(container_status.get("restartCount") or 0),
        last=_end_in_status(container_status.get("lastState") or {}),
    )
    state = container_status.get("state") or {}
    if "running" in state:
        return record.ended(_lost_end(_parse_time(state["running"].get("startedAt"))))
    ended = _end_in_status(state)
    return record if ended is None else replace(record, state=ended)


def _status_in_pod(pod: WholePod, name: str) -> JSON | None:
    """Returns the status of a container as it stands in the pod, None if there is none."""
    statuses = (pod.status.get(key) or () for key in ("initContainerStatuses", "containerStatuses"))
    return next(
        (
            container_status
            for several in statuses
            for container_status in several
            if container_status.get("name") == name
        ),
        None,
    )


def _is_ran(terminated: JSON) -> bool:
    return str(terminated.get("containerID", "")).startswith(RAN)


def _lost_end(started_at: datetime | None) -> Ended:
    message = "The container could not be located when the pod was resumed"
    return Ended(LOST_EXIT_CODE, "ContainerStatusUnknown", message, started_at)


def _end_in_status(state: JSON) -> Ended | None:
    """Returns the terminated state in a container's status, None if it has not ended."""
    terminated = state.get("terminated")
    if not terminated:
        return None
    return Ended(
        exit_code=int(terminated.get("exitCode") or 0),
        reason=terminated.get("reason") or "",
        message=terminated.get("message") or "",
        started_at=_parse_time(terminated.get("startedAt")),
        finished_at=_parse_time(terminated.get("finishedAt")),
        container_id=terminated.get("containerID") or "",
    )


def _parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
