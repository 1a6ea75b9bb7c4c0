"""The pure rules of the node agent: phases, conditions, what an agent finds of the one before, and waiting times."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from kubekit.api import codec
from kubekit.api.whole_v1 import WholePod
from kubesandbox.node import pod_status, settings
from kubesandbox.node.pod_status import (
    ContainerRecord,
    Ended,
    Started,
    State,
    StatusInput,
    Verdict,
    Waiting,
    pod_phase,
    resumed_record,
)

JSON = dict[str, Any]
NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
UP, NEW, OK, BAD = Started(NOW), Waiting(), Ended(exit_code=0, reason="Completed"), Ended(exit_code=1, reason="Error")
CRASHED = (Waiting("CrashLoopBackOff"), BAD)


def whole_pod(policy: str = "Always", *, deleted: bool = False, status: JSON | None = None) -> WholePod:
    """A pod of that restart policy."""
    metadata: JSON = {"name": "p", "namespace": "ns", "uid": "u"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-14T10:00:00Z"
    return codec.convert(WholePod, {"metadata": metadata, "spec": {"restartPolicy": policy}, "status": status or {}})


def records(*states: State | tuple[State, Ended]) -> tuple[ContainerRecord, ...]:
    """Containers in these states; a pair has how it ended last next to the state."""
    pairs = [each if isinstance(each, tuple) else (each, None) for each in states]
    return tuple(
        ContainerRecord(name=f"c{number}", image="i", state=now, last=last) for number, (now, last) in enumerate(pairs)
    )


@pytest.mark.parametrize(
    ("policy", "states", "expected"),
    [
        pytest.param("Always", [NEW], "Pending", id="nothing has started"),
        pytest.param("Always", [UP, NEW], "Pending", id="one has not started"),
        pytest.param("Always", [UP, UP], "Running", id="all run"),
        pytest.param("Always", [UP, OK], "Running", id="one runs"),
        pytest.param("Always", [OK, OK], "Running", id="all succeeded, and will be started again"),
        pytest.param("Always", [CRASHED], "Running", id="a crash loop"),
        pytest.param("OnFailure", [OK, OK], "Succeeded", id="all succeeded for good"),
        pytest.param("OnFailure", [OK, BAD], "Running", id="one failed and will be started again"),
        pytest.param("OnFailure", [OK, CRASHED], "Running", id="one waits for its restart"),
        pytest.param("Never", [OK, BAD], "Failed", id="one failed for good"),
        pytest.param("Never", [OK, UP], "Running", id="one goes on after the other's end"),
        pytest.param("Never", [BAD, UP], "Running", id="one goes on after the other's failure"),
    ],
)
def test_phases(policy: str, states: list[Any], expected: str) -> None:
    """By the kubelet's getPhase."""
    assert pod_phase(StatusInput(pod=whole_pod(policy), containers=records(*states))) == expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param([OK, OK], "Succeeded", id="all ended well"),
        pytest.param([OK, BAD], "Failed", id="one ended badly"),
        pytest.param([CRASHED], "Failed", id="one waited for its restart"),
        pytest.param([UP, OK], "Running", id="one has still to end"),
    ],
)
def test_phases_of_deleted_pods(states: list[Any], expected: str) -> None:
    """Whatever its restart policy, a deleted pod whose containers have ended is over."""
    assert pod_phase(StatusInput(pod=whole_pod("Always", deleted=True), containers=records(*states))) == expected


@pytest.mark.parametrize(
    ("policy", "inits", "expected"),
    [
        pytest.param("Always", [UP], "Pending", id="one runs"),
        pytest.param("Always", [OK, NEW], "Pending", id="one is to come"),
        pytest.param("Always", [BAD], "Pending", id="one failed and will be started again"),
        pytest.param("Never", [BAD, NEW], "Failed", id="one failed for good"),
        pytest.param("Always", [OK, OK], "Running", id="all done"),
    ],
)
def test_phases_by_init_containers(policy: str, inits: list[Any], expected: str) -> None:
    """The others wait for them."""
    main = records(UP if all(each is OK for each in inits) else NEW)
    assert pod_phase(StatusInput(pod=whole_pod(policy), containers=main, inits=records(*inits))) == expected


def conditions(seen: StatusInput, now: datetime = NOW) -> dict[str, JSON]:
    """By type."""
    return {each["type"]: each for each in pod_status.pod_status(seen, now=now)["conditions"]}


def test_unready_containers_are_named() -> None:
    """In both conditions that they keep False."""
    up, new = records(UP, NEW)
    shown = conditions(StatusInput(pod=whole_pod(), containers=(replace(up, ready=True), new)))
    for type_ in ("Ready", "ContainersReady"):
        assert (shown[type_]["status"], shown[type_]["reason"]) == ("False", "ContainersNotReady")
        assert shown[type_]["message"] == "containers with unready status: [c1]"


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """Whether the watch has brought the last status back or not."""
    first = pod_status.pod_status(StatusInput(pod=whole_pod(), containers=records(NEW)), now=NOW)
    up = replace(records(UP)[0], ready=True)
    published = tuple(first["conditions"])
    assert conditions(StatusInput(pod=whole_pod(), containers=(up,), conditions=published), LATER)["Ready"][
        "lastTransitionTime"
    ] == _text(LATER)
    assert conditions(StatusInput(pod=whole_pod(), containers=(up,), conditions=published), LATER)["Initialized"][
        "lastTransitionTime"
    ] == _text(NOW)
    assert conditions(StatusInput(pod=whole_pod(status=first), containers=(up,)), LATER)["Initialized"][
        "lastTransitionTime"
    ] == _text(NOW)


def test_conditions_of_others_stay() -> None:
    """An eviction's, for one."""
    other = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    assert (
        conditions(StatusInput(pod=whole_pod(status={"conditions": [other]}), containers=records(UP)))[
            "DisruptionTarget"
        ]
        == other
    )


def test_a_verdict_of_the_agent_fails_the_pod() -> None:
    """With its reason, even where every container succeeded."""
    status = pod_status.pod_status(
        StatusInput(pod=whole_pod(), containers=records(OK), verdict=Verdict("DeadlineExceeded", "too long")), now=NOW
    )
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", "too long")


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


RUNNING = {"running": {"startedAt": "2026-01-14T10:00:00Z"}}
ERROR = {"terminated": {"exitCode": 3, "reason": "Error", "containerID": "runup://u-c-0"}}


@pytest.mark.parametrize(
    ("state", "last", "expected"),
    [
        pytest.param(RUNNING, {}, (137, "ContainerStatusUnknown"), id="it ran, and died with its agent"),
        pytest.param(ERROR, {}, (3, "Error"), id="it had ended"),
        pytest.param({"waiting": {"reason": "CrashLoopBackOff"}}, ERROR, (3, "Error"), id="it waited for its restart"),
    ],
)
def test_what_an_agent_finds_of_the_one_before(state: JSON, last: JSON, expected: tuple[int, str]) -> None:
    """How the container ended, and how often it was started."""
    shown = {"name": "c", "containerID": "runup://u-c-1", "state": state, "lastState": last, "restartCount": 4}
    record = resumed_record(whole_pod(status={"containerStatuses": [shown]}), "c", "i")
    assert record.latest_end is not None
    assert (record.latest_end.exit_code, record.latest_end.reason, record.restarts) == (*expected, 4)


def test_a_declared_container_still_runs() -> None:
    """No process of it died with the earlier agent."""
    state = {"running": {"startedAt": "2026-01-14T10:00:00Z"}}
    shown = {"name": "c", "containerID": "runup-declared://u/c", "state": state, "ready": True, "restartCount": 0}
    record = resumed_record(whole_pod(status={"containerStatuses": [shown]}), "c", "i")
    assert (record.state, record.ready, record.restarts) == (UP, True, 0)


def test_a_container_that_never_ran_starts_afresh() -> None:
    """A status without a container of ours tells nothing."""
    shown = {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert resumed_record(whole_pod(status={"containerStatuses": [shown]}), "c", "i") == ContainerRecord(
        name="c", image="i"
    )


def test_restarts_wait_longer_and_longer() -> None:
    """Not at all, then 10 s doubling up to 300 s, as a kubelet's."""
    restarts, now, waited = settings.Restarts(), 100.0, []
    for _ in range(8):
        waited.append(restarts.delay_s(now))
        restarts = restarts.after_restart(now, now + waited[-1])
        now += waited[-1] + 1
    assert waited == [0, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(("ran_s", "wait_s"), [(600, 10), (601, 0)])
def test_a_long_run_is_forgiven(ran_s: float, wait_s: float) -> None:
    """More than ten minutes, twice the longest wait; the next restart is the first again."""
    restarts = settings.Restarts().after_restart(0, 0)
    assert restarts.delay_s(ran_s) == wait_s
    assert restarts.after_restart(ran_s, ran_s + wait_s).wait_s == (20 if wait_s else 10)


def test_delays_after_failures() -> None:
    """The same without a free first attempt."""
    assert list(islice(settings.KUBELET.delays(), 7)) == [10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    ("seconds", "text"), [(10, "10s"), (0.5, "0.5s"), (80, "1m20s"), (300, "5m0s"), (3600, "1h0m0s")]
)
def test_durations_as_go_writes_them(seconds: float, text: str) -> None:
    """In CrashLoopBackOff's message."""
    assert settings.go_duration(seconds) == text
