"""What the agent knows of one container, and how it changes: states in, states out.

The worker of a pod keeps one `ContainerRecord` a container; `podstatus` turns them into what the cluster sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from kubekit.api.whole_v1 import WholePod

JSON = dict[str, Any]
# How the agent recognises its own work in a status: processes it ran, and pods it only declared.
RAN, DECLARED = "runup://", "runup-declared://"
LOST_EXIT_CODE = 137


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started yet, or about to be started again."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """Running since then."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """Over; `reason` is Completed, Error, OOMKilled, StartError, ContainerStatusUnknown, ..."""

    exit_code: int
    reason: str
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = ""


State = Waiting | Started | Ended


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container as the agent knows it; `restarts` counts starts after the first."""

    name: str
    image: str
    image_id: str = ""
    container_id: str = ""
    state: State = Waiting()
    last: Ended | None = None
    restarts: int = 0
    ready: bool = False

    @property
    def before(self) -> Ended | None:
        """How its latest run ended, if it has had one."""
        return self.state if isinstance(self.state, Ended) else self.last

    @property
    def succeeded(self) -> bool:
        """Whether it ended as it should."""
        return isinstance(self.state, Ended) and self.state.exit_code == 0

    def waiting(self, reason: str, message: str = "") -> ContainerRecord:
        """Not running, and why."""
        return replace(self, state=Waiting(reason, message), last=self.before, ready=False)

    def started(self, at: datetime, *, image_id: str, container_id: str, ready: bool) -> ContainerRecord:
        """Running; a restart where it had run before."""
        before = self.before
        return replace(
            self,
            state=Started(at),
            last=before,
            restarts=self.restarts + (before is not None),
            image_id=image_id,
            container_id=container_id,
            ready=ready,
        )

    def with_ready(self, ready: bool) -> ContainerRecord:
        """Running as before, and ready or not."""
        return replace(self, ready=ready)

    def ended(self, end: Ended) -> ContainerRecord:
        """Over."""
        return replace(self, state=replace(end, container_id=self.container_id), ready=False)


RestartPolicy = Literal["Always", "OnFailure", "Never"]


def restart_policy(pod: WholePod) -> RestartPolicy:
    """`spec.restartPolicy`, Always where it is left out."""
    policy: RestartPolicy = pod.spec.get("restartPolicy") or "Always"
    return policy


def restarts(policy: RestartPolicy, exit_code: int) -> bool:
    """Whether a container that ended so is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def resumed(pod: WholePod, name: str, image: str) -> ContainerRecord:
    """The record of a container where an agent before this one left it, by the pod's status; else a fresh one.

    Whatever ran then died with that agent, as on a node that went down: how it ended is not known, so it failed.
    """
    told = _told(pod, name)
    record = ContainerRecord(name, image)
    if told is None or not _is_ran(told):
        return record
    record = replace(
        record,
        image_id=told.get("imageID") or "",
        container_id=told.get("containerID") or "",
        restarts=int(told.get("restartCount") or 0),
        last=_ended(told.get("lastState") or {}),
    )
    state = told.get("state") or {}
    if "running" in state:
        return record.ended(_lost(_moment(state["running"].get("startedAt"))))
    ended = _ended(state)
    return record if ended is None else replace(record, state=ended)


def _told(pod: WholePod, name: str) -> JSON | None:
    statuses = (pod.status.get(key) or () for key in ("initContainerStatuses", "containerStatuses"))
    return next((told for several in statuses for told in several if told.get("name") == name), None)


def _is_ran(told: JSON) -> bool:
    return str(told.get("containerID", "")).startswith(RAN)


def _lost(started_at: datetime | None) -> Ended:
    message = "The container could not be located when the pod was resumed"
    return Ended(LOST_EXIT_CODE, "ContainerStatusUnknown", message, started_at)


def _ended(state: JSON) -> Ended | None:
    told = state.get("terminated")
    if not told:
        return None
    return Ended(
        exit_code=int(told.get("exitCode") or 0),
        reason=told.get("reason") or "",
        message=told.get("message") or "",
        started_at=_moment(told.get("startedAt")),
        finished_at=_moment(told.get("finishedAt")),
        container_id=told.get("containerID") or "",
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
