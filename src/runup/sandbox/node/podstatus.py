"""What the agent knows of a pod's containers in, the pod's status as a kubelet would write it out.

Pure: the time is passed. The worker keeps one `ContainerRecord` a container and asks for the status after each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from runup.api.whole_v1 import WholePod

JSON = dict[str, Any]
# How the agent recognises its own work in a status: processes it ran, and pods it only declared.
RAN, DECLARED = "runup://", "runup-declared://"


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
    """Over; `reason` is Completed, Error, OOMKilled, ContainerStatusUnknown, ..."""

    exit_code: int
    reason: str
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    signal: int = 0


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

    def with_state(self, state: State, **changes: Any) -> ContainerRecord:
        """The record after a change of state; only a running container can be ready."""
        ready = changes.pop("ready", False) if isinstance(state, Started) else False
        return replace(self, state=state, ready=ready, **changes)


RestartPolicy = Literal["Always", "OnFailure", "Never"]


def restart_policy(pod: WholePod) -> RestartPolicy:
    """`spec.restartPolicy`, Always where it is left out."""
    policy: RestartPolicy = pod.spec.get("restartPolicy") or "Always"
    return policy


def restarts(policy: RestartPolicy, exit_code: int) -> bool:
    """Whether a container that ended so is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def phase(records: Sequence[ContainerRecord], inits: Sequence[ContainerRecord], policy: RestartPolicy) -> str:
    """The pod's phase (kubelet's getPhase)."""
    for init in inits:
        if isinstance(init.state, Ended) and init.state.exit_code != 0 and policy == "Never":
            return "Failed"
        if not _succeeded(init):
            return "Pending"
    if any(isinstance(record.state, Waiting) and record.last is None for record in records):
        return "Pending"
    ended = [record.state for record in records if isinstance(record.state, Ended)]
    if len(ended) < len(records) or policy == "Always":
        return "Running"
    if all(state.exit_code == 0 for state in ended):
        return "Succeeded"
    return "Running" if policy == "OnFailure" else "Failed"


def status(
    pod: WholePod,
    records: Sequence[ContainerRecord],
    inits: Sequence[ContainerRecord] = (),
    *,
    now: datetime,
    host_ip: str,
    started_at: datetime,
) -> JSON:
    """The whole status; conditions keep their lastTransitionTime while their status stays."""
    policy = restart_policy(pod)
    unready = [record.name for record in records if not record.ready]
    now_phase = phase(records, inits, policy)
    result: JSON = {
        "phase": now_phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "startTime": _time(started_at),
        "qosClass": qos_class(pod),
        "containerStatuses": [_container(record) for record in records],
        "conditions": _conditions(pod, now_phase, unready, inits, now),
    }
    if inits:
        result["initContainerStatuses"] = [_container(record) for record in inits]
    return result


def qos_class(pod: WholePod) -> str:
    """Guaranteed, Burstable or BestEffort (the rule of `k8s.io/kubernetes/pkg/apis/core/v1/helper/qos`)."""
    resources = [container.get("resources") or {} for container in pod.spec.get("containers") or ()]
    if not any(entry.get("requests") or entry.get("limits") for entry in resources):
        return "BestEffort"
    for entry in resources:
        limits, requests = entry.get("limits") or {}, entry.get("requests") or {}
        if set(limits) < {"cpu", "memory"} or any(requests.get(key, limits[key]) != limits[key] for key in limits):
            return "Burstable"
    return "Guaranteed"


def is_ours(pod: WholePod) -> bool:
    """Whether the status is the work of a node agent of the sandbox."""
    return any(
        str(container.get("containerID", "")).startswith((RAN, DECLARED))
        for key in ("containerStatuses", "initContainerStatuses")
        for container in pod.status.get(key) or ()
    )


def is_imported(pod: WholePod) -> bool:
    """Whether the pod came with a status of its own, as those of a dump do; such a pod is shown, never run."""
    told = pod.status.get("phase") not in {None, "", "Pending"} or bool(pod.status.get("containerStatuses"))
    return told and not is_ours(pod) and not _only_waiting(pod)


def is_over(pod: WholePod) -> bool:
    """Whether nothing of the pod will ever run again."""
    return pod.status.get("phase") in {"Succeeded", "Failed"}


def is_ready(pod: WholePod) -> bool:
    """Whether the pod's Ready condition is True."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod.status.get("conditions") or ()
    )


def _only_waiting(pod: WholePod) -> bool:
    """A status that an agent wrote before anything had started carries no container id yet."""
    statuses = pod.status.get("containerStatuses") or ()
    return (
        bool(statuses)
        and pod.status.get("phase") == "Pending"
        and not any(container.get("containerID") for container in statuses)
        and pod.status.get("hostIP") == "127.0.0.1"
    )


def _succeeded(init: ContainerRecord) -> bool:
    return isinstance(init.state, Ended) and init.state.exit_code == 0


def _container(record: ContainerRecord) -> JSON:
    result: JSON = {
        "name": record.name,
        "image": record.image,
        "imageID": record.image_id,
        "ready": record.ready,
        "started": isinstance(record.state, Started),
        "restartCount": record.restarts,
        "state": _state(record.state, record.container_id),
        "lastState": _state(record.last, record.container_id) if record.last else {},
    }
    if record.container_id:
        result["containerID"] = record.container_id
    return result


def _state(state: State, container_id: str) -> JSON:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Started(at):
            return {"running": {"startedAt": _time(at)}}
        case Ended():
            ended: JSON = {"exitCode": state.exit_code, "reason": state.reason}
            if state.signal:
                ended["signal"] = state.signal
            if state.message:
                ended["message"] = state.message
            if state.started_at:
                ended["startedAt"] = _time(state.started_at)
            if state.finished_at:
                ended["finishedAt"] = _time(state.finished_at)
            if container_id:
                ended["containerID"] = container_id
            return {"terminated": ended}


def _conditions(
    pod: WholePod, now_phase: str, unready: list[str], inits: Sequence[ContainerRecord], now: datetime
) -> list[JSON]:
    incomplete = [init.name for init in inits if not _succeeded(init)]
    over = now_phase in {"Succeeded", "Failed"}
    not_ready = (
        ("PodCompleted", "") if over else ("ContainersNotReady", f"containers with unready status: {_go(unready)}")
    )
    told = [
        (
            "Initialized",
            not incomplete,
            ("ContainersNotInitialized", f"containers with incomplete status: {_go(incomplete)}"),
        ),
        ("Ready", not unready, not_ready),
        ("ContainersReady", not unready, not_ready),
        ("PodScheduled", True, ("", "")),
    ]
    before = {condition.get("type"): condition for condition in pod.status.get("conditions") or ()}
    return [_condition(type_, holds, why, before.get(type_), now) for type_, holds, why in told]


def _condition(type_: str, holds: bool, why: tuple[str, str], before: JSON | None, now: datetime) -> JSON:
    value = "True" if holds else "False"
    kept = before is not None and before.get("status") == value and before.get("lastTransitionTime")
    result: JSON = {
        "type": type_,
        "status": value,
        "lastProbeTime": None,
        "lastTransitionTime": kept or _time(now),
    }
    if not holds:
        result |= {key: text for key, text in zip(("reason", "message"), why, strict=True) if text}
    return result


def _go(names: list[str]) -> str:
    return f"[{' '.join(names)}]"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
