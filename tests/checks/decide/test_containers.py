"""Tests how the output of a check's container is evaluated, as a table of Pods and logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
)
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.lang.version import Version
from runup.checks.decide.declarative import declared_check
from runup.checks.decide.model import Applies, Context
from runup.target.container_checks import has_ended, outcome, why_it_waits, without_log

DOCUMENT = {
    "apiVersion": "preflight.runup.dev/v1alpha1",
    "kind": "PreflightCheck",
    "metadata": {"name": "widgets"},
    "spec": {
        "component": "widgets",
        "container": {"image": "widget-operator", "timeoutSeconds": 30},
        "risk": {"name": "WidgetsBroken", "message": "Widgets break."},
    },
}
CHECK = declared_check(DOCUMENT, file="widgets.yaml")
CONTEXT = Context(source=Version("5.0.0"), target=Version("5.2.0"), now=datetime(2026, 1, 14, tzinfo=UTC))
RISK = {"name": "WidgetsBroken", "message": "3 widgets break."}


def ended(code: int = 0, reason: str = "Completed", message: str = "", **status: Any) -> Pod:
    """A Pod whose container ended."""
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=code, reason=reason, message=message))
    phase = "Failed" if code else "Succeeded"
    statuses = (ContainerStatus(name="check", state=state),)
    return Pod(
        metadata=ObjectMeta(name="check-0"), status=PodStatus(phase=phase, container_statuses=statuses, **status)
    )


def waiting(why: str, message: str = "", **status: Any) -> Pod:
    """A Pod whose container never started."""
    state = ContainerState(waiting=ContainerStateWaiting(reason=why, message=message))
    statuses = (ContainerStatus(name="check", state=state),)
    return Pod(metadata=ObjectMeta(name="check-0"), status=PodStatus(container_statuses=statuses, **status))


def scheduled(status: Any, message: str) -> Pod:
    """A Pod of which the scheduler says that."""
    condition = Condition(type="PodScheduled", status=status, message=message)
    return Pod(metadata=ObjectMeta(name="c"), status=PodStatus(conditions=(condition,)))


def log(**changes: Any) -> bytes:
    """A report in one line."""
    report = {
        "format": "preflight-v1-json",
        "targetVersion": "5.2.0",
        "executionStatus": "completed",
        "checks": [{"name": "Widgets", "result": "Clear"}],
    }
    return json.dumps(report | changes).encode() + b"\n"


GONE = Pod(status=PodStatus(phase="Failed", reason="Evicted", message="disk"))
FOUND = {"checks": [{"name": "Widgets", "result": "Applies"}], "risks": [RISK]}


@pytest.mark.parametrize(
    ("pod", "said", "result", "risks", "words"),
    [
        pytest.param(ended(), log(), "Clear", {}, "", id="nothing is found"),
        pytest.param(
            ended(), log(**FOUND), "Applies", {"WidgetsBroken": "3 widgets break."}, "1 found", id="a risk applies"
        ),
        pytest.param(
            ended(),
            b"starting\n" + log() + log(**FOUND) + b'{"event": "over"}\n',
            "Applies",
            {"WidgetsBroken": "3 widgets break."},
            "1 found",
            id="the last of several reports counts, whatever is logged around it",
        ),
        pytest.param(
            ended(),
            log(**FOUND) + b'{"event": "written", "format": "json", "of": "preflight-v1-json"}\nover',
            "Applies",
            {"WidgetsBroken": "3 widgets break."},
            "1 found",
            id="a line behind the report speaks of it",
        ),
        pytest.param(
            ended(),
            log() + log(**FOUND)[:-20],
            "Unknown",
            {},
            "is not a JSON object",
            id="it ran twice, and the second report is cut off",
        ),
        pytest.param(
            ended(),
            log(checks=[{"name": "W", "result": "Unknown"}], risks=[RISK | {"applies": "Unknown"}]),
            "Unknown",
            {"WidgetsBroken": "3 widgets break."},
            "1 unknown",
            id="it could not tell, and says so",
        ),
        pytest.param(ended(), b"", "Unknown", {}, "wrote no line of JSON", id="it wrote nothing"),
        pytest.param(ended(), b"all is well\n", "Unknown", {}, "wrote no line of JSON", id="it wrote something else"),
        pytest.param(ended(), log()[:-20], "Unknown", {}, "is not a JSON object", id="the report is cut off"),
        pytest.param(
            ended(),
            log(risks=[{"name": "two words", "message": "x"}]),
            "Unknown",
            {},
            "risk name 'two words'",
            id="a risk has a name that none may have",
        ),
        pytest.param(
            ended(), log(checks=[]), "Unknown", {}, "its container checked nothing", id="it checked nothing at all"
        ),
        pytest.param(
            ended(),
            log(checks=[{"name": "W", "result": "Applies"}]),
            "Unknown",
            {},
            "says Applies for W, and names no such risk",
            id="a check applies and no risk says why",
        ),
        pytest.param(
            ended(),
            log(checks=[{"name": "W", "result": "Unknown"}]),
            "Unknown",
            {},
            "says Unknown for W, and names no such risk",
            id="a check could not tell and no risk says so",
        ),
        pytest.param(
            ended(), log(targetVersion="4.9.0"), "Unknown", {}, "of another preflight, for 4.9.0", id="another target"
        ),
        pytest.param(
            ended(), log(preflightID="p0"), "Unknown", {}, "of another preflight", id="a report of another attempt"
        ),
        pytest.param(
            ended(),
            log(executionStatus="running", message="1 of 2", **FOUND),
            "Unknown",
            {"WidgetsBroken": "3 widgets break."},
            "its container's checks are running: 1 of 2",
            id="it ended half-way: what it found stays",
        ),
        pytest.param(
            ended(), log(risksOmitted=4, **FOUND), "Unknown", {"WidgetsBroken": "3 widgets break."}, "4 more risks",
            id="it left some out",
        ),
        pytest.param(
            ended(3, "Error", "no such table"),
            log(**FOUND),
            "Unknown",
            {"WidgetsBroken": "3 widgets break."},
            "ended with exit code 3 (Error): no such table",
            id="it crashed after its report: what it found stays",
        ),
        pytest.param(
            ended(137, "OOMKilled"), b"", "Unknown", {}, "exit code 137 (OOMKilled)", id="it was killed for memory"
        ),
        pytest.param(
            ended(0, "OOMKilled"), log(), "Unknown", {}, "exit code 0 (OOMKilled)", id="a child of it was killed"
        ),
        pytest.param(ended(), log(preflightID="p1"), "Clear", {}, "", id="a report that names the attempt"),
        pytest.param(
            ended(), log(targetVersion="5.3.0"), "Unknown", {}, "of another preflight, for 5.3.0", id="a newer target"
        ),
        pytest.param(
            ended(),
            log(executionStatus="failed", **FOUND),
            "Unknown",
            {"WidgetsBroken": "3 widgets break."},
            "its container's checks are failed: it does not say why",
            id="it failed without a word",
        ),
        pytest.param(
            ended(),
            log(checks=[{"name": "W", "result": "Applies"}], risks=[RISK | {"applies": "Unknown"}]),
            "Unknown",
            {"WidgetsBroken": "3 widgets break."},
            "says Applies for W, and names no such risk",
            id="a check applies and the risk is another",
        ),
        pytest.param(
            ended(),
            b"read as preflight-v1-json {\n" + b'  {"format": "other"}\n',
            "Unknown",
            {},
            "wrote no line of JSON",
            id="it speaks of a report",
        ),
        pytest.param(ended(), b"  " + log(), "Clear", {}, "", id="a report that is indented"),
        pytest.param(
            ended(1, "Error", "x" * 300), b"", "Unknown", {}, f"(Error): {'x' * 300}.", id="as many words as are told"
        ),
        pytest.param(
            ended(1, "Error", "x" * 301), b"", "Unknown", {}, f"(Error): ...{'x' * 300}.", id="a character more"
        ),
        pytest.param(
            Pod(status=PodStatus(phase="Failed")), b"", "Unknown", {}, "its Pod came to Failed", id="nobody says why"
        ),
        pytest.param(
            Pod(metadata=ObjectMeta(name="check-0"), status=PodStatus(phase="Failed", reason="DeadlineExceeded")),
            b"",
            "Unknown",
            {},
            "its container did not end in 30 s",
            id="its time was over",
        ),
        pytest.param(
            waiting("ImagePullBackOff", "no such image", phase="Failed", reason="DeadlineExceeded"),
            b"",
            "Unknown",
            {},
            "did not end in 30 s: it waited (ImagePullBackOff): no such image",
            id="its time was over before its image came",
        ),
        pytest.param(
            GONE,
            b"",
            "Unknown",
            {},
            "its Pod came to Evicted: disk",
            id="its node threw it out",
        ),
    ],
)  # fmt: skip
def test_what_a_container_said(pod: Pod, said: bytes, result: str, risks: dict[str, str], words: str) -> None:
    """Whatever goes wrong is Unknown for this check; what was found does not go away."""
    found = outcome(CHECK, pod, log=said, context=CONTEXT, preflight_id="p1")
    assert found.result == result if not risks or result != "Unknown" else found.result in ("Unknown", "Applies")
    own = {each.name: each.message for each in found.findings if "is unknown" not in each.message}
    assert own == risks
    assert words in found.message
    if result == "Unknown":
        assert any(each.applies is Applies.UNKNOWN for each in found.findings)


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        pytest.param(
            None,
            "the managing operator has made no Pod for it; its log says why, or it is of a release that makes none",
            id="nobody made one",
        ),
        pytest.param(
            waiting("ErrImagePull", "not found"), "its container waits (ErrImagePull): not found", id="no image"
        ),
        pytest.param(Pod(metadata=ObjectMeta(name="c")), "its container in Pod c has not ended", id="it runs"),
        pytest.param(waiting("PodInitializing"), "its container waits (PodInitializing)", id="it begins"),
        pytest.param(scheduled("False", "no room."), "its Pod c is not scheduled: no room.", id="no node"),
        pytest.param(scheduled("False", ""), "its Pod c is not scheduled", id="no node, and nobody says why"),
        pytest.param(scheduled("True", "no room"), "its container in Pod c has not ended", id="a node was found"),
    ],
)
def test_why_it_waits(pod: Pod | None, words: str) -> None:
    """The message quotes the component that delays the container."""
    assert why_it_waits(pod) == words


@pytest.mark.parametrize(
    ("phase", "over"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), ("", False)]
)
def test_when_a_container_has_ended(phase: str, over: bool) -> None:
    """Whichever way; before that its log is not whole."""
    assert has_ended(Pod(status=PodStatus(phase=phase))) is over


def test_another_container_of_the_pod_is_not_the_checks() -> None:
    """A sidecar that somebody's webhook put there may end as it likes."""
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=1, reason="Error"))
    sidecar = ContainerStatus(name="sidecar", state=state)
    pod = ended()
    pod = replace(pod, status=replace(pod.status, container_statuses=(sidecar, *pod.status.container_statuses)))
    assert outcome(CHECK, pod, log=log(), context=CONTEXT, preflight_id="p1").result == "Clear"


def test_a_log_that_may_not_be_read_is_no_answer() -> None:
    """The server's refusal is what the check lacks."""
    found = without_log(CHECK, ended(), 'pods "check-0" is forbidden')
    assert (found.result, 'cannot be read: pods "check-0" is forbidden' in found.message) == ("Unknown", True)


def test_without_a_cluster_it_is_unknown() -> None:
    """From a laptop or over a dump nobody makes Pods."""
    from runup.checks.decide.engine import run_check
    from runup.checks.decide.model import Snapshot

    found = run_check(CHECK, Snapshot(), CONTEXT)
    assert found.result == "Unknown"
    assert "run in a cluster that its operator preflights" in found.findings[0].message
