"""A pod's status as a kubelet would write it: the agent's records of containers in, the status out.

The worker of a pod keeps one `ContainerRecord` a container. Pure: the time is passed. The rules are the kubelet's
(pkg/kubelet/kubelet_pods.go `getPhase`, pkg/kubelet/status `generate.go`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from kubekit.api.whole_v1 import WholePod
from kubekit.rules.pod_requests import qos_class

JSON = dict[str, Any]
# Prefixes of container ids by which the agent recognises its own statuses: of processes it ran, of declared pods.
RAN, DECLARED = "runup://", "runup-declared://"
# 128 + SIGKILL, the kubelet's code for a container that it lost.
LOST_EXIT_CODE = 137
RestartPolicy = Literal["Always", "OnFailure", "Never"]
_OVER = frozenset({"Succeeded", "Failed"})
_OURS = frozenset({"Initialized", "Ready", "ContainersReady", "PodScheduled"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """The state of a container that is not started yet, or about to be restarted."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """The state of a container that has been running since `at`."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The state of a container that ended; `reason` is Completed, Error, OOMKilled, StartError and the like."""

    exit_code: int
    reason: str
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = ""


State = Waiting | Started | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def ended(self, end: Ended) -> ContainerRecord:
        """Returns the record of the container when it has ended."""
        return replace(self, state=replace(end, container_id=self.container_id), ready=False)


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
    failed. One that was only declared is still running.
    """
    statuses = [*(pod.status.get("initContainerStatuses") or ()), *(pod.status.get("containerStatuses") or ())]
    container_status: JSON = next((status for status in statuses if status.get("name") == name), {})
    record = ContainerRecord(name=name, image=image)
    container_id = str(container_status.get("containerID", ""))
    if not container_id.startswith((RAN, DECLARED)):
        return record
    record = replace(
        record,
        image_id=container_status.get("imageID") or "",
        container_id=container_id,
        restarts=int(container_status.get("restartCount") or 0),
        last=_end_in_status(container_status.get("lastState") or {}),
    )
    state = container_status.get("state") or {}
    if "running" in state and container_id.startswith(DECLARED):
        started_at = _parse_time(state["running"].get("startedAt"))
        return record if started_at is None else replace(record, state=Started(started_at), ready=True)
    if "running" in state:
        message = "The container could not be located when the pod was resumed"
        started_at = _parse_time(state["running"].get("startedAt"))
        return record.ended(
            Ended(exit_code=LOST_EXIT_CODE, reason="ContainerStatusUnknown", message=message, started_at=started_at)
        )
    ended = _end_in_status(state)
    return record if ended is None else replace(record, state=ended)


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reason for which the agent itself ended the pod, which then failed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInput:
    """The input of a status. `conditions` are those that were published last."""

    pod: WholePod
    containers: tuple[ContainerRecord, ...]
    inits: tuple[ContainerRecord, ...] = ()
    host_ip: str = ""
    started_at: datetime | None = None
    conditions: tuple[JSON, ...] = ()
    verdict: Verdict | None = None


def pod_phase(observation: StatusInput) -> str:
    """Returns the pod's phase."""
    policy = restart_policy(observation.pod)
    init_ends = [init.latest_end for init in observation.inits]
    if observation.verdict or (policy == "Never" and any(end is not None and end.exit_code != 0 for end in init_ends)):
        return "Failed"
    # While an init container has not ended once, the containers wait for it.
    if any(end is None for end in init_ends):
        return "Pending"
    if any(isinstance(record.state, Waiting) and record.last is None for record in observation.containers):
        return "Pending"
    if any(isinstance(record.state, Started) for record in observation.containers):
        return "Running"
    # No container of a pod that is being deleted is restarted.
    final = observation.pod.metadata.deletion_timestamp is not None
    if policy == "Always" and not final:
        return "Running"
    if all(record.succeeded for record in observation.containers):
        return "Succeeded"
    return "Failed" if final or policy == "Never" else "Running"


def pod_status(observation: StatusInput, *, now: datetime) -> JSON:
    """Returns the whole status. A condition keeps its lastTransitionTime while its status is the same; others' stay."""
    now_phase = pod_phase(observation)
    # Conditions that others have set stay.
    foreign = [one for one in observation.pod.status.get("conditions") or () if one.get("type") not in _OURS]
    result: JSON = {
        "phase": now_phase,
        "hostIP": observation.host_ip,
        "hostIPs": [{"ip": observation.host_ip}],
        "podIP": observation.host_ip,
        "podIPs": [{"ip": observation.host_ip}],
        "startTime": _time_text(observation.started_at or now),
        "qosClass": qos_class(observation.pod.spec),
        "containerStatuses": [_container_status(record) for record in observation.containers],
        "conditions": [*_own_conditions(observation, now_phase, now), *foreign],
    }
    if observation.inits:
        result["initContainerStatuses"] = [_container_status(record, is_init=True) for record in observation.inits]
    if observation.verdict:
        result |= {"reason": observation.verdict.reason, "message": observation.verdict.message}
    return result


def start_time(pod: WholePod) -> datetime | None:
    """Returns when an agent started the pod, or None."""
    start = pod.status.get("startTime")
    return datetime.fromisoformat(start) if start else None


def is_ours(pod: WholePod) -> bool:
    """Returns whether a node agent of the sandbox wrote the status."""
    return any(
        str(container.get("containerID", "")).startswith((RAN, DECLARED))
        for key in ("containerStatuses", "initContainerStatuses")
        for container in pod.status.get(key) or ()
    )


def is_imported(pod: WholePod) -> bool:
    """Returns whether the pod came with a recorded status, as those of a dump do; such a pod is shown, never run."""
    phase, statuses = pod.status.get("phase"), pod.status.get("containerStatuses") or ()
    # An agent wrote such a status before any container had started; it has no container ids yet.
    only_waiting = (
        bool(statuses)
        and phase == "Pending"
        and not any(container.get("containerID") for container in statuses)
        and pod.status.get("hostIP") == "127.0.0.1"
    )
    return (phase not in {None, "", "Pending"} or bool(statuses)) and not is_ours(pod) and not only_waiting


def is_over(pod: WholePod) -> bool:
    """Returns whether the pod has succeeded or failed."""
    return pod.status.get("phase") in _OVER


def _container_status(record: ContainerRecord, *, is_init: bool = False) -> JSON:
    result: JSON = {
        "name": record.name,
        "image": record.image,
        "imageID": record.image_id,
        # An init container is ready once it has succeeded.
        "ready": record.succeeded if is_init else record.ready,
        "started": isinstance(record.state, Started),
        "restartCount": record.restarts,
        "state": _state_json(record.state),
        "lastState": _state_json(record.last) if record.last else {},
    }
    if record.container_id:
        result["containerID"] = record.container_id
    return result


def _state_json(state: State) -> JSON:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Started(at):
            return {"running": {"startedAt": _time_text(at)}}
        case Ended():
            optional_fields = {
                "message": state.message,
                "startedAt": _time_text(state.started_at) if state.started_at else "",
                "finishedAt": _time_text(state.finished_at) if state.finished_at else "",
                "containerID": state.container_id,
            }
            present_fields = {key: value for key, value in optional_fields.items() if value}
            return {"terminated": {"exitCode": state.exit_code, "reason": state.reason, **present_fields}}


def _own_conditions(observation: StatusInput, now_phase: str, now: datetime) -> Iterator[JSON]:
    """Yields the conditions that the agent itself sets; a lastTransitionTime stays while its condition's value does."""
    present = (*(observation.pod.status.get("conditions") or ()), *observation.conditions)
    before = {condition.get("type"): condition for condition in present}
    incomplete = [init.name for init in observation.inits if not init.succeeded]
    unready = [record.name for record in observation.containers if not record.ready]
    why_unready = {"Succeeded": ("PodCompleted", ""), "Failed": ("PodFailed", "")}.get(
        now_phase, ("ContainersNotReady", f"containers with unready status: {_go_list(unready)}")
    )
    ready = not unready and now_phase not in _OVER
    why_incomplete = ("ContainersNotInitialized", f"containers with incomplete status: {_go_list(incomplete)}")
    for type_, holds, (reason, message) in (
        ("Initialized", not incomplete, why_incomplete),
        ("Ready", ready, why_unready),
        ("ContainersReady", ready, why_unready),
        ("PodScheduled", True, ("", "")),
    ):
        value, old = "True" if holds else "False", before.get(type_) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        condition = {
            "type": type_,
            "status": value,
            "lastProbeTime": None,
            "lastTransitionTime": since or _time_text(now),
        }
        if not holds:
            condition |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
        yield condition


def _go_list(names: list[str]) -> str:
    return f"[{' '.join(names)}]"


def _time_text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
