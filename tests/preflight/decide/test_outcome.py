"""How an attempt stands, rule by rule: each at its edge, and where it does not count."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs
from tests.factories import NOW, iso_before

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import outcome as outcomes
from runup.preflight.decide import preflight_deployment, start_failures
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.outcome import (
    AttemptState,
    Observations,
    ReportSeen,
    Tally,
    counts_text,
    outcome,
    usable_report,
)
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk

ATTEMPT = Attempt(
    id="preflight-2-0123456789",
    source_version="5.0.0",
    target_version="5.2.0",
    target_image="registry.example/release@sha256:5",
)
NO_COMMAND = 'error: unknown command "preflight" for "cluster-version-operator"'


def preflight_pod(*containers: dict[str, Any], age_s: float = 60, name: str = "preflight-1", **metadata: Any) -> Pod:
    """A pod of the preflight with those containers."""
    statuses = [{"name": preflight_deployment.NAME, "restartCount": 0, **each} for each in containers]
    made = {"name": name, "creationTimestamp": iso_before(age_s), **metadata}
    return codec.convert(Pod, {"metadata": made, "status": {"containerStatuses": statuses}})


def ended(reason: str = "Error", code: int = 1, message: str = "") -> dict[str, Any]:
    """A container's state once it has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


def report(**changes: Any) -> Report:
    """This attempt's own report."""
    base = {
        "format": FORMAT,
        "preflight_id": ATTEMPT.id,
        "source_version": "5.0.0",
        "target_version": "5.2.0",
        "execution_status": "completed",
    }
    return Report(**base | changes)


def scene(*pods: Pod, **changes: Any) -> Observations:
    """An attempt whose Deployment is a minute old; its limit is ten."""
    deployment = codec.convert(Deployment, {"metadata": {"creationTimestamp": iso_before(60)}})
    base = {
        "attempt": ATTEMPT,
        "deployment": deployment,
        "pods": pods,
        "report": None,
        "bad": None,
        "completed_before": False,
        "timeout_s": 600.0,
        "now": NOW,
    }
    return Observations(**base | changes)


def restarted(seconds_ago: float, *pods: Pod, **changes: Any) -> Observations:
    """A target that had completed, and is unfinished for so long; its Deployment is half a day old."""
    attempt = structs.replace(ATTEMPT, unfinished_since=NOW - timedelta(seconds=seconds_ago))
    deployment = codec.convert(Deployment, {"metadata": {"creationTimestamp": iso_before(12 * 3600)}})
    base = {"attempt": attempt, "deployment": deployment, "completed_before": True}
    return scene(*pods, **base | {"report": report(execution_status="running", message="reading")} | changes)


WAITING = "TargetStarting"
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}
RULES: dict[str, tuple[Observations, str]] = {
    "without the command": (scene(preflight_pod({"state": ended(message=NO_COMMAND)})), "TargetUnsupported"),
    "without it, at the run before": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended(message=NO_COMMAND)})),
        "TargetUnsupported",
    ),
    "without it, and yet it ended well": (scene(preflight_pod({"state": ended(code=0, message=NO_COMMAND)})), WAITING),
    "without it, and yet it reported": (
        scene(preflight_pod({"state": ended(message=NO_COMMAND)}), report=report()),
        "NoRisksFound",
    ),
    "without another command": (scene(preflight_pod({"state": ended(message='unknown command "start"')})), WAITING),
    "with a word for it": (scene(preflight_pod({"state": ended(message="the preflight cannot read")})), WAITING),
    "killed for memory three times, and starting": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended("OOMKilled", 137), "restartCount": 3})),
        "OOMKilled",
    ),
    "killed for memory twice, and starting": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended("OOMKilled", 137), "restartCount": 2})),
        WAITING,
    ),
    "ended for another reason three times": (
        scene(preflight_pod({"state": ended(), "restartCount": 2})),
        WAITING,
    ),
    "crashed three times": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended(), "restartCount": 3})),
        "TargetCrashed",
    ),
    "crashed twice": (scene(preflight_pod({"state": BACK_OFF, "lastState": ended(), "restartCount": 2})), WAITING),
    "restarted, and nobody knows why": (scene(preflight_pod({"state": BACK_OFF, "restartCount": 9})), WAITING),
    "another container crashed": (
        scene(preflight_pod({"name": "sidecar", "state": BACK_OFF, "lastState": ended(), "restartCount": 3})),
        WAITING,
    ),
    "a container without a name crashed": (
        scene(preflight_pod({"name": "", "state": BACK_OFF, "lastState": ended(), "restartCount": 3})),
        "TargetCrashed",
    ),
    "the pod before crashed": (
        scene(
            preflight_pod({"state": BACK_OFF, "lastState": ended(), "restartCount": 3}, age_s=50, name="preflight-2"),
            preflight_pod({"state": {"running": {}}}, age_s=40),
        ),
        WAITING,
    ),
    "of two pods of one second the last by name crashed": (
        scene(
            preflight_pod({"state": BACK_OFF, "lastState": ended(), "restartCount": 3}, name="preflight-2"),
            preflight_pod({"state": {"running": {}}}),
        ),
        "TargetCrashed",
    ),
    "a second before its time is over": (scene(timeout_s=61.0), "TargetPending"),
    "when its time is over": (scene(timeout_s=60.0), "DeadlineExceeded"),
    "when its time is over, and the report is complete": (scene(timeout_s=60.0, report=report()), "NoRisksFound"),
    "when its time is over, and the report was complete once": (
        scene(timeout_s=60.0, completed_before=True, report=report(execution_status="running")),
        "ChecksRunning",
    ),
    "restarted, a second before its time is over": (restarted(599), "ChecksRunning"),
    "restarted, and its time is over": (restarted(600), "DeadlineExceeded"),
    "restarted, and it has written nothing": (restarted(600, report=None), "DeadlineExceeded"),
    "restarted, and it is complete again": (restarted(600, report=report()), "NoRisksFound"),
    "restarted, and silent until its time is over": (restarted(600, unchanged_s=599.0), "DeadlineExceeded"),
    "restarted, and silent before": (restarted(599, unchanged_s=598.0), "ReportStale"),
    "restarted, and it cannot be pulled for long": (
        restarted(600, preflight_pod({"state": {"waiting": {"reason": "ImagePullBackOff"}}})),
        "ImagePullFailed",
    ),
    "silent for less than ninety seconds": (scene(report=report(), unchanged_s=89.9), "NoRisksFound"),
    "silent for ninety seconds": (scene(report=report(), unchanged_s=90.0), "ReportStale"),
    "without a Deployment": (scene(deployment=None), WAITING),
}


@pytest.mark.parametrize(("seen", "reason"), RULES.values(), ids=RULES.keys())
def test_how_an_attempt_stands(seen: Observations, reason: str) -> None:
    """The first rule that fits, and none that only nearly does."""
    assert outcome(seen).reason == reason


TEXTS: dict[str, tuple[Observations, str]] = {
    "a crash in the target's words": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended(message="Traceback", code=3), "restartCount": 3})),
        "the target ended 3 times, last with exit code 3: Traceback",
    ),
    "a crash without words": (
        scene(preflight_pod({"state": BACK_OFF, "lastState": ended("ContainerStatusUnknown"), "restartCount": 4})),
        "the target ended 4 times, last with exit code 1: ContainerStatusUnknown",
    ),
    "killed for memory": (
        scene(preflight_pod({"state": ended("OOMKilled", 137), "restartCount": 3})),
        "the target ended 4 times, the last time killed for memory",
    ),
    "a failure in the target's words": (
        scene(report=report(execution_status="failed", message="No check could run.")),
        "No check could run",
    ),
    "a failure without words": (
        scene(report=report(execution_status="failed")),
        "the target says that its checks failed",
    ),
    "too late, with what was done": (
        scene(timeout_s=60.0, report=report(execution_status="running", message="1 of 3 checks done")),
        "no complete report within 60 s; 1 of 3 checks done",
    ),
    "restarted and too late, with what was done": (
        restarted(600, report=report(execution_status="running", message="reading pods")),
        "no complete report within 600 s of the target's restart; reading pods",
    ),
    "silent": (
        scene(report=report(), unchanged_s=90.0),
        "the target has not written its report for 90 s or longer",
    ),
}


@pytest.mark.parametrize(("seen", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_what_is_told_of_it(seen: Observations, text: str) -> None:
    """In the words of whoever knows, or in ours where nobody says any."""
    assert outcome(seen).message == text


PULL = preflight_pod({"state": {"waiting": {"reason": "ImagePullBackOff"}}})


@pytest.mark.parametrize(
    ("seen", "seconds_ago"),
    [
        pytest.param(restarted(60), 60, id="as recorded"),
        pytest.param(scene(completed_before=True), 0, id="since now"),
        pytest.param(restarted(-60), 0, id="a clock was set back: not later than now"),
        pytest.param(restarted(300, unchanged_s=90.0), 300, id="silence does not end it"),
        pytest.param(restarted(300, PULL), None, id="it fails, and holds nothing up"),
        pytest.param(
            restarted(300, bad=outcomes.BadReportSeen("ReportInvalid", "x"), report=None), None, id="no report"
        ),
        pytest.param(restarted(300, report=report()), None, id="it is complete"),
        pytest.param(restarted(300, report=report(), unchanged_s=90.0), None, id="complete, and silent"),
        pytest.param(scene(report=report(execution_status="running")), None, id="a first run has its own limit"),
    ],
)
def test_since_when_a_restarted_target_is_unfinished(seen: Observations, seconds_ago: float | None) -> None:
    """While an update waits for it; what heals after that has the whole time again."""
    expected = None if seconds_ago is None else NOW - timedelta(seconds=seconds_ago)
    assert outcomes.unfinished_since(seen, outcome(seen)) == expected


@pytest.mark.parametrize(
    ("timeout_s", "message_with_remedy"),
    [
        pytest.param(600.0, "its pod is restarted after 600 s; see the log of the pod, or end it", id="the limit"),
        pytest.param(30.0, "its pod is restarted after 90 s; see the log of the pod, or end it", id="never sooner"),
    ],
)
def test_when_a_silent_target_is_restarted(timeout_s: float, message_with_remedy: str) -> None:
    """After the limit, and never before the report counts as stale."""
    seen = scene(report=report(), unchanged_s=90.0, timeout_s=timeout_s, completed_before=True)
    assert outcome(seen).way_out == message_with_remedy


@pytest.mark.parametrize(
    ("unchanged_s", "timeout_s", "expected"),
    [
        pytest.param(0.0, 600.0, 90.0, id="new: until it is stale"),
        pytest.param(60.0, 600.0, 30.0, id="until it is stale"),
        pytest.param(89.5, 600.0, 1.0, id="never less than a second"),
        pytest.param(90.0, 600.0, 510.0, id="stale: until the pod's time is over"),
        pytest.param(599.0, 600.0, 1.0, id="a second before that"),
        pytest.param(600.0, 600.0, 600.0, id="over: until another pod has had its time"),
        pytest.param(90.0, 30.0, 90.0, id="over, where the limit is short"),
    ],
)
def test_when_to_look_for_a_report_again(unchanged_s: float, timeout_s: float, expected: float) -> None:
    """At the next moment at which silence means something else."""
    assert scene(report=report(), unchanged_s=unchanged_s, timeout_s=timeout_s).until_stale_s == expected


@pytest.mark.parametrize(
    ("unchanged_s", "made", "hung"),
    [
        pytest.param(600.0, {"age_s": 600}, True, id="it has had the whole limit"),
        pytest.param(600.0, {"age_s": 599}, False, id="a second less"),
        pytest.param(599.0, {"age_s": 600}, False, id="it was heard a second later"),
        pytest.param(600.0, {"age_s": 600, "deletionTimestamp": iso_before(1)}, False, id="it is being deleted"),
        pytest.param(600.0, {"age_s": 600, "creationTimestamp": None}, False, id="nobody knows since when it is"),
    ],
)
def test_which_pod_has_hung(unchanged_s: float, made: dict[str, Any], hung: bool) -> None:
    """One that had the whole time limit and said nothing in it."""
    there = preflight_pod({"state": {"running": {}}}, **made)
    assert scene(there, unchanged_s=unchanged_s).hung == ((there,) if hung else ())


def check(result: str) -> ReportedCheck:
    """A check that came to that."""
    return ReportedCheck(name="A", result=result)  # type: ignore[arg-type]


def risk(applies: str) -> ReportedRisk:
    """A risk of that verdict."""
    return ReportedRisk(name="R", message="It is.", applies=applies)  # type: ignore[arg-type]


COUNTS: dict[str, tuple[Report, Tally | None, str]] = {
    "nothing at all": (report(), None, "0 checks done, 0 risks apply"),
    "one of each": (
        report(checks=(check("Applies"),), risks=(risk("True"),)),
        None,
        "1 check done, 1 risk applies",
    ),
    "two of each": (
        report(checks=(check("Applies"), check("Clear")), risks=(risk("True"), risk("True"))),
        None,
        "2 checks done, 2 risks apply",
    ),
    "one is not for this update": (
        report(checks=(check("Skipped"), check("Clear"), check("Clear"))),
        None,
        "3 checks done, 1 not for this update, 0 risks apply",
    ),
    "one could not be told": (
        report(checks=(check("Unknown"),), risks=(risk("Unknown"),)),
        None,
        "1 check done, 0 risks apply, 1 unknown",
    ),
    "the update's risks count, not the report's": (
        report(checks=(check("Clear"),), risks=(risk("True"),)),
        Tally(2, 3, 4),
        "1 check done, 2 risks apply, 3 unknown, 4 accepted",
    ),
    "it runs, and has judged nothing": (
        report(execution_status="running", message="reading the cluster", risks=(risk("True"),)),
        None,
        "reading the cluster",
    ),
    "it runs, and says nothing": (
        report(execution_status="running", checks=(check("Clear"),)),
        None,
        "1 check done, 0 risks apply",
    ),
    "it has completed, and still has words": (report(message="all is well"), None, "0 checks done, 0 risks apply"),
}


@pytest.mark.parametrize(("found", "tally", "text"), COUNTS.values(), ids=COUNTS.keys())
def test_how_far_it_is(found: Report, tally: Tally | None, text: str) -> None:
    """Checks, then risks; what there is none of is left out, except for those that apply."""
    assert counts_text(found, tally) == text


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        pytest.param({"preflight_id": "x"}, "preflightID 'x' instead of 'preflight-2-0123456789'", id="the ID"),
        pytest.param({"source_version": "4.9.0"}, "sourceVersion '4.9.0' instead of '5.0.0'", id="an older source"),
        pytest.param({"source_version": "5.0.1"}, "sourceVersion '5.0.1' instead of '5.0.0'", id="a newer source"),
        pytest.param(
            {"source_version": "5.0.1", "target_version": "5.1.0"},
            "sourceVersion '5.0.1' instead of '5.0.0', targetVersion '5.1.0' instead of '5.2.0'",
            id="both",
        ),
    ],
)
def test_whose_a_report_is(changes: dict[str, str], wrong: str) -> None:
    """What lies in the attempt's folder and says that it is another's is reported by what differs."""
    found, bad = usable_report(ATTEMPT, ReportSeen(preflight_id=ATTEMPT.id, content=report(**changes), read_at=NOW))
    assert found is None
    assert bad == outcomes.BadReportSeen("ReportMismatch", f"the report belongs to another preflight: {wrong}")


def test_the_request_supplies_what_a_report_lacks() -> None:
    """A report with only the fields of the proposal is for the target that was asked for, as of when it was read."""
    seen = Report(format=FORMAT, preflight_id=ATTEMPT.id, target_version="", execution_status="completed")
    found, bad = usable_report(ATTEMPT, ReportSeen(preflight_id=ATTEMPT.id, content=seen, read_at=NOW))
    assert (found is not None, bad) == (True, None)
    assert found is not None
    assert (found.source_version, found.target_version, found.target_image, found.observed_time) == (
        ATTEMPT.source_version,
        ATTEMPT.target_version,
        ATTEMPT.target_image,
        NOW,
    )


_STARTED, _READ = NOW - timedelta(minutes=10), NOW


@pytest.mark.parametrize(
    ("message_with_remedy", "shown"),
    [
        pytest.param((-9, -2, -1, 0), (-9, -2, -1, 0), id="times of the attempt are the target's"),
        pytest.param((-9, None, None, None), (-9, None, 0, None), id="no time of the findings"),
        pytest.param((1440, -1440, 1440, None), (-10, 0, 0, None), id="findings of tomorrow"),
        pytest.param((1440, -1440, -1440, None), (-10, 0, 0, None), id="findings of yesterday"),
        pytest.param((-9, -1, -2, 5), (-9, -2, -2, 0), id="complete before its findings, and a heartbeat to come"),
        pytest.param((-1, -3, -2, -4), (-10, -3, -2, 0), id="in the wrong order"),
    ],
)
def test_the_times_of_a_report_are_those_that_the_operator_saw(
    message_with_remedy: tuple[int | None, ...], shown: tuple[int | None, ...]
) -> None:
    """Minutes from when it was read: start, completion, findings, heartbeat; none before the attempt's start."""
    fields = ("started_time", "completion_time", "observed_time", "heartbeat_time")

    def at(minutes: int | None) -> datetime | None:
        return None if minutes is None else _READ + timedelta(minutes=minutes)

    seen = report(**dict(zip(fields, map(at, message_with_remedy), strict=True)))
    found, _ = usable_report(
        structs.replace(ATTEMPT, started_time=_STARTED),
        ReportSeen(preflight_id=ATTEMPT.id, content=seen, read_at=_READ),
    )
    assert found is not None
    assert tuple(getattr(found, name) for name in fields) == tuple(map(at, shown))


@pytest.mark.parametrize("folder", ["preflight-1-0000000000", "preflight-9-0000000000"])
def test_what_lies_in_another_folder_is_nothing(folder: str) -> None:
    """Neither a report nor a bad one."""
    assert usable_report(ATTEMPT, ReportSeen(preflight_id=folder, content=report(), read_at=NOW)) == (None, None)
    assert usable_report(ATTEMPT, None) == (None, None)


def test_an_object_that_is_not_taken() -> None:
    """Nothing runs; it may heal, and the way out says how."""
    found = outcomes.rejected_object("Deployment x: exceeded quota.")
    assert (found.state, found.reason, found.final) == (AttemptState.FAILED, start_failures.FAILED_CREATE, False)
    assert found.message_with_remedy == (
        "the API server does not take Deployment x: exceeded quota; it is tried again: change what refuses it "
        "(a quota, an admission rule, a right, a setting, a flag)"
    )
