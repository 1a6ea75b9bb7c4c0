"""The report as untrusted input: what every release of ours ever wrote is read, and what is bad is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from kubekit.lang.text import is_hazardous
from runup.report import documentation, report
from runup.report.report import BadReport, Report, ReportedRisk, encode, read
from runup.report.schema import report_schema

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"
SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "spec" / "preflight-v1.schema.json"
FILES = sorted(GOLDEN.rglob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_reports_are_read_for_ever(path: Path) -> None:
    """A report of any release of ours fits the schema, is read, and says the same when it is written again."""
    document = json.loads(path.read_text())
    if "null" not in path.read_text():
        jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).validate(document)
    found = read(path.read_bytes())
    assert found.target_version == document["targetVersion"]
    assert [risk.name for risk in found.risks] == [risk["name"] for risk in document.get("risks", [])]
    assert [check.result for check in found.checks] == [check["result"] for check in document.get("checks", [])]
    assert found == read(encode(found))


def test_a_golden_report_in_full() -> None:
    """Every member arrives under its name."""
    found = read((GOLDEN / "0.1.0" / "completed.json").read_bytes())
    assert found.preflight_id == "20260114-5.2.0-7f3a"
    assert found.started_time is not None
    assert found.started_time.isoformat() == "2026-01-14T10:00:00+00:00"
    assert [check.result for check in found.checks] == ["Applies", "Clear", "Unknown", "Skipped"]
    assert found.checks[0].duration_seconds == 0.002
    dual, budgets = found.risks
    assert (dual.applies, dual.severity, dual.resources[0].kind) == ("True", "critical", "Network")
    assert (budgets.applies, budgets.reason) == ("Unknown", "PreflightPartial")


def test_times_of_another_zone_are_the_same_moments_in_utc() -> None:
    """Whatever prints them says Z; a target may write them as it likes."""
    times = dict.fromkeys(
        ("startedTime", "completionTime", "observedTime", "heartbeatTime"), "2026-01-14T12:30:00+02:30"
    )
    found = read(json.dumps(_report(**times)).encode())
    for moment in (found.started_time, found.completion_time, found.observed_time, found.heartbeat_time):
        assert f"{moment:%Y-%m-%dT%H:%M:%SZ}" == "2026-01-14T10:00:00Z"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_a_time_that_no_calendar_has_in_utc(time: str) -> None:
    """Refused like any other value that does not fit: the operator's pass must not end of it."""
    with pytest.raises(report.BadReport, match="a time of the report is out of range"):
        read(json.dumps(_report(observedTime=time)).encode())


def test_the_schema_is_current() -> None:
    """`python tools/report_schema.py` writes it again."""
    assert json.loads(json.dumps(report_schema())) == json.loads(SCHEMA.read_text())


def _report(**changes: Any) -> dict[str, Any]:
    return {"format": report.FORMAT, "targetVersion": "5.2.0", "executionStatus": "completed"} | changes


def _risk(**changes: Any) -> dict[str, Any]:
    return _report(risks=[{"name": "X", "message": "Something."} | changes])


def _risks(number: int) -> dict[str, Any]:
    return _report(risks=[{"name": f"R{index}", "message": "Something."} for index in range(number)])


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


# The first seed's example, with a separate member that no reader knows.
SEED_RISK = {
    "name": "ConcerningThingA",
    "message": "Upgrade can get stuck on clusters that use multiple networks together with dual stack.",
    "url": "https://issues.redhat.com/browse/SDN-3996",
    "cacheTime": "2026-11-29T07:00:00Z",
}


@pytest.mark.parametrize(
    ("members", "status"),
    [
        pytest.param({"risks": [SEED_RISK]}, "completed", id="the fields of the proposal alone"),
        pytest.param({"risks": []}, "completed", id="the proposal's, without a risk"),
        pytest.param({"executionStatus": "running"}, "running", id="no target"),
        pytest.param({"risks": [SEED_RISK], "executionStatus": "failed"}, "failed", id="no target, failed"),
    ],
)
def test_a_report_for_a_request_may_leave_out_what_the_request_says(members: dict[str, Any], status: str) -> None:
    """Only a reader that knows the request can do without the target and the status."""
    data = json.dumps({"format": report.FORMAT, "preflightID": "preflight-2-0123456789"} | members).encode()
    found = read(data, for_request=True)
    assert (found.target_version, found.execution_status) == ("", status)
    assert [risk.name for risk in found.risks] == [risk["name"] for risk in members.get("risks", ())]
    with pytest.raises(BadReport):
        read(data)


@pytest.mark.parametrize("members", [{}, {"risks": None}, {"risks": {}}])
def test_a_report_without_risks_and_status_is_not_complete(members: dict[str, Any]) -> None:
    """An empty report says nothing, so it is refused."""
    with pytest.raises(BadReport):
        read(json.dumps({"format": report.FORMAT, "preflightID": "x"} | members).encode(), for_request=True)


BAD: list[tuple[str, bytes | Callable[[], bytes], str, str]] = [
    ("an empty file", b"", "ReportInvalid", "is not a JSON object"),
    ("truncated", _json(_risks(3))[:-20], "ReportInvalid", "is not a JSON object"),
    (
        "documentation that no link can lead to",
        _json(_report(documentationBase="javascript:x")),
        "ReportInvalid",
        "documentationBase 'javascript:x' is not an http or https URL",
    ),
    ("a list", b"[]", "ReportInvalid", "is not a JSON object"),
    ("not UTF-8", b'{"format": "\xff\xfe"}', "ReportInvalid", "is not a JSON object"),
    ("NUL bytes", b"\0" * 4096, "ReportInvalid", "is not a JSON object"),
    ("two reports", _json(_report()) * 2, "ReportInvalid", "is not a JSON object"),
    ("deep nesting", b'{"x":' * 200_000, "ReportInvalid", "is not a JSON object"),
    ("2 MiB", b" " * (2 << 20), "ReportTooLarge", "has 2097152 bytes; at most 1048576 are read"),
    ("a byte too many", b" " * 1048577, "ReportTooLarge", "has 1048577 bytes; at most 1048576 are read"),
    ("no format", b"{}", "UnknownFormat", "format is None; this operator reads 'preflight-v1-json'"),
    ("another format", _json(_report(format="preflight-v2-json")), "UnknownFormat", "format is 'preflight-v2-json'"),
    ("a format that is not text", _json(_report(format=1)), "UnknownFormat", "format is 1"),
    ("no target", _json({"format": report.FORMAT, "executionStatus": "running"}), "ReportInvalid", "targetVersion"),
    ("a status that is none", _json(_report(executionStatus="done")), "ReportInvalid", "$.executionStatus"),
    ("risks that are no list", _json(_report(risks={})), "ReportInvalid", "$.risks"),
    ("a risk that is not an object", _json(_report(risks=["X"])), "ReportInvalid", "$.risks[0]"),
    ("a risk without a name", _json(_report(risks=[{"message": "x"}])), "ReportInvalid", "name"),
    ("a message that is not text", _json(_risk(message=5)), "ReportInvalid", "$.risks[0].message"),
    ("an empty message", _json(_risk(message="")), "ReportInvalid", "risk X has no message"),
    ("applies False", _json(_risk(applies="False")), "ReportInvalid", "$.risks[0].applies"),
    ("a result that is none", _json(_report(checks=[{"name": "x", "result": "Maybe"}])), "ReportInvalid", "result"),
    ("a time that is none", _json(_report(observedTime="yesterday")), "ReportInvalid", "$.observedTime"),
    ("a time without a zone", _json(_report(observedTime="2026-01-14T10:00:00")), "ReportInvalid", "has no time zone"),
    ("501 risks", _json(_risks(501)), "TooManyRisks", "has 501 risks; an update can carry 200"),
    ("201 risks", _json(_risks(201)), "TooManyRisks", "has 201 risks"),
    ("a bad name", _json(_risk(name="dual stack")), "InvalidRiskName", "'dual stack' does not match"),
    ("a name that ends in a newline", _json(_risk(name="X\n")), "InvalidRiskName", "does not match"),
    ("a name with a NUL", _json(_risk(name="X\0")), "InvalidRiskName", "does not match"),
    ("a name that is too long", _json(_risk(name="X" * 257)), "InvalidRiskName", "longer than 256"),
    (
        "a name twice",
        _json(_report(risks=[{"name": "X", "message": "x"}] * 2)),
        "DuplicateRisk",
        "risk X is reported twice",
    ),
    ("fewer objects than none", _json(_risk(resourcesOmitted=-1)), "ReportInvalid", "risk X has resourcesOmitted -1"),
    ("a link that is none", _json(_risk(url="javascript:alert(1)")), "InvalidRiskURL", "must be http or https"),
    ("a link with a blank", _json(_risk(url="https://x/ y")), "InvalidRiskURL", "must be http or https"),
    ("a link with half an escape", _json(_risk(url="https://x/%zz")), "InvalidRiskURL", "'https://x/%zz'"),
    ("a link with no host", _json(_risk(url="https://?x")), "InvalidRiskURL", "http or https with a host"),
    ("a link with no port", _json(_risk(url="https://x:port/")), "InvalidRiskURL", "http or https with a host"),
    ("a link with half an address", _json(_risk(url="http://[::1/")), "InvalidRiskURL", "with a host"),
    ("a link with two ports", _json(_risk(url="http://a:1:2/")), "InvalidRiskURL", "with a host"),
    (
        "a step with 51 lines",
        _json(_report(steps=[{"part": "nodes", "version": "1.36", "how": ["a"] * 51}])),
        "TooManySteps",
        "the step to 1.36 says too much: a part of its plan has 50 lines of 1024 characters at most",
    ),
    (
        "a step with a long way back",
        _json(_report(steps=[{"part": "nodes", "version": "1.36", "back": "a" * 1025}])),
        "TooManySteps",
        "the step to 1.36 says too much",
    ),
    (
        "eleven containers",
        _json(_report(containers=[{"check": "a", "image": "b"}] * 11)),
        "TooManyContainers",
        "wants 11 containers; 10 are run",
    ),
    (
        "a container's image that is a pull spec",
        _json(_report(containers=[{"check": "a", "image": "evil.example/x"}])),
        "ReportInvalid",
        "a container's image 'evil.example/x' does not match",
    ),
    (
        "a container that wants an hour",
        _json(_report(containers=[{"check": "a", "image": "b", "timeoutSeconds": 3600}])),
        "ReportInvalid",
        "wants run 1 within 3600 s; runs count from 1, and have 1 to 300 s",
    ),
    *(
        (
            f"a container that wants {seconds} s",
            _json(_report(containers=[{"check": "a", "image": "b", "timeoutSeconds": seconds}])),
            "ReportInvalid",
            f"the container of a wants run 1 within {seconds} s",
        )
        for seconds in (0, 301)
    ),
    (
        "a container of a check that is none",
        _json(_report(containers=[{"check": "-a", "image": "b"}])),
        "ReportInvalid",
        "a container's check '-a' does not match",
    ),
    (
        "a container's run before the first",
        _json(_report(containers=[{"check": "a", "image": "b", "run": 0}])),
        "ReportInvalid",
        "wants run 0",
    ),
    ("a blank message", _json(_risk(message=" \n")), "ReportInvalid", "risk X has no message"),
    ("a reason that is too long", _json(_risk(reason="R" * 1025)), "ReportInvalid", "a reason of 1025 characters"),
    (
        "too many checks",
        _json(_report(checks=[{"name": "x", "result": "Clear"}] * 2001)),
        "TooManyChecks",
        "has 2001 checks; 2000 are read",
    ),
    ("an ID that is a path", _json(_report(preflightID="../x")), "ReportInvalid", "preflightID '../x' does not match"),
    ("an image with an escape", _json(_report(targetImage="a\x1bb")), "ReportInvalid", "targetImage 'a\\x1bb'"),
    ("a version with a line end", _json(_report(sourceVersion="5\n")), "ReportInvalid", "sourceVersion '5\\n'"),
    ("fewer than none left out", _json(_report(risksOmitted=-1)), "ReportInvalid", "risksOmitted is -1"),
    ("a link that is too long", _json(_risk(url="https://" + "x" * 3000)), "InvalidRiskURL", "up to 2048 long"),
    ("a link a character too long", _json(_risk(url="https://" + "x" * 2041)), "InvalidRiskURL", "up to 2048 long"),
    (
        "a start without a zone",
        _json(_report(startedTime="2026-01-14T10:00:00")),
        "ReportInvalid",
        "the report's startedTime has no time zone",
    ),
]


@pytest.mark.parametrize(("data", "reason", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_reports(data: bytes, reason: str, message: str) -> None:
    """A bad report is refused whole, with a word and a sentence that say why."""
    with pytest.raises(BadReport) as caught:
        read(data)
    assert reason == caught.value.reason
    assert message in caught.value.message


@pytest.mark.parametrize(
    "document",
    [
        _report(),
        _risks(200),
        _risk(url=""),
        _risk(name="X" * 256),
        _risk(url="https://" + "x" * 2040),
        _risk(reason="R" * 1024),
        _report(checks=[{"name": "x", "result": "Clear"}] * 2000),
        _report(containers=[{"check": "a", "image": "b"}] * 10),
        _report(containers=[{"check": "a", "image": "b", "timeoutSeconds": 1, "run": 1}]),
        _report(containers=[{"check": "a", "image": "b", "timeoutSeconds": 300}]),
        _report(risksOmitted=0),
        _report(message="m" * (1048576 - len(_json(_report(message=""))))),
        _report(unknown={"deeply": [1, None]}),
        _risk(url=None),
    ],
    ids=[
        "the least",
        "200 risks",
        "no link",
        "the longest name",
        "the longest link",
        "the longest reason",
        "2000 checks",
        "ten containers",
        "a container with the least time",
        "a container with the most time",
        "none left out",
        "a mebibyte",
        "a member that we do not know",
        "a null",
    ],
)
def test_reports_at_the_limits_are_read(document: dict[str, Any]) -> None:
    """Limits refuse what is beyond them, and nothing else."""
    assert isinstance(read(_json(document)), Report)


@pytest.mark.parametrize(
    "data",
    [
        _json(_report(format="f" * 1_000_000)),
        _json(_risk(name="x" * 1_000_000)),
        _json(_risk(url="x" * 1_000_000)),
        _json(_report(executionStatus="\x1b" * 100_000)),
        _json(_report(targetImage="\x9b" * 300_000)),
    ],
    ids=["format", "name", "url", "status", "image"],
)
def test_what_is_echoed_is_short_and_printable(data: bytes) -> None:
    """A megabyte of somebody else's text comes back as the part that shows its author which one it is."""
    with pytest.raises(BadReport) as caught:
        read(data)
    assert len(caught.value.message) < 700
    assert not is_hazardous(caught.value.message)


@pytest.mark.parametrize(
    ("length", "echoed"),
    [
        pytest.param(98, "'" + "f" * 98 + "';", id="as long as is echoed whole"),
        pytest.param(99, "'" + "f" * 99 + "... (101 characters);", id="a character more"),
    ],
)
def test_how_much_is_echoed(length: int, echoed: str) -> None:
    """A hundred characters with their quotes; beyond that how many there are."""
    with pytest.raises(BadReport) as caught:
        read(_json(_report(format="f" * length)))
    assert f"the report's format is {echoed}" in caught.value.message


def test_a_risk_without_a_link_has_a_page() -> None:
    """Families of risks share a page."""
    assert documentation.page("MachineConfigPoolPaused-worker").endswith("/checks/MachineConfigPoolPaused")
    assert ReportedRisk(name="X", message="x").url == ""
