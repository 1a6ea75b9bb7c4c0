"""Outcomes -> report: unique names, limits that ClusterVersion has, and the same bytes for the same findings."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.factories import NOW, SINCE

from runup.checks.decide import results
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Check, Finding
from runup.report.report import MAX_BYTES, MAX_RISKS, ReportedResource, ReportedRisk, Severity, encode, read

HEADER = results.Header(
    source_version="5.0.0", target_version="5.2.0", started_time=SINCE, preflight_id="p1", engine_version="0.1.0"
)


def outcome(*findings: Finding, name: str = "Example") -> CheckOutcome:
    """An outcome with these findings."""
    return CheckOutcome(
        check=Check(name=name, component="tests", reads=(), run=lambda _snapshot, _context: ()),
        result="Applies",
        findings=findings,
    )


def risk(*findings: Finding) -> ReportedRisk:
    """The one risk that these findings come to."""
    (only,) = results.risks([outcome(*findings)])
    return only


def test_findings_of_one_name_become_one_risk() -> None:
    """It applies if any does, is as severe as the worst, and says what all say, what applies first."""
    node, pod = ReportedResource(kind="Node", name="a"), ReportedResource(kind="Pod", name="b")
    merged = risk(
        Finding(
            name="X",
            message="Unclear.",
            applies=Applies.UNKNOWN,
            severity="info",
            resources=(pod, node),
            remediation="Look.",
        ),
        Finding(
            name="X", message="Broken.", severity="critical", resources=(node,), remediation="Mend it.", reason="Broken"
        ),
        Finding(name="X", message="Broken.", severity="warning", remediation="Mend it."),
    )
    assert merged == ReportedRisk(
        name="X",
        message="Broken. Unclear.",
        url="https://docs.runup.example/checks/X",
        applies="True",
        reason="Broken",
        severity="critical",
        resources=(node, pod),
        remediation="Mend it. Look.",
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("critical", "warning", "critical", id="critical and warning"),
        pytest.param("warning", "critical", "critical", id="warning and critical"),
        pytest.param("info", "warning", "warning", id="info and warning"),
        pytest.param("info", "info", "info", id="info alone"),
    ],
)
def test_a_risk_is_as_grave_as_its_worst(one: Severity, other: Severity, expected: str) -> None:
    """Whichever comes first."""
    assert (
        risk(Finding(name="X", message="A.", severity=one), Finding(name="X", message="B.", severity=other)).severity
        == expected
    )


@pytest.mark.parametrize(
    ("name", "url", "expected"),
    [
        ("NodeNotReady", "", "https://docs.runup.example/checks/NodeNotReady"),
        ("ClusterOperatorDegraded-kube-apiserver", "", "https://docs.runup.example/checks/ClusterOperatorDegraded"),
        ("X", "https://example.com/x", "https://example.com/x"),
    ],
    ids=["our page", "one page for a family", "its own"],
)
def test_link(name: str, url: str, expected: str) -> None:
    """A risk without a link has the page of our documentation for its name."""
    assert expected == risk(Finding(name=name, message="Something.", url=url)).url


def test_links_lead_to_the_releases_own_documentation() -> None:
    """The report says where that is, and its pages are there; a link of a check's own stays."""
    found = outcome(
        Finding(name="X-one", message="Something."),
        Finding(name="Y", message="Something.", url="https://example.com/y"),
    )
    report = results.completed_report(replace(HEADER, documentation_base="https://docs.example"), [found], NOW)
    assert [risk.url for risk in report.risks] == ["https://docs.example/checks/X", "https://example.com/y"]
    assert report.documentation_base == "https://docs.example"


def test_order_does_not_matter() -> None:
    """The same findings in another order give the same report."""
    findings = [
        Finding(name=f"R{index % 7}", message=f"Message {index}.", applies=Applies.UNKNOWN) for index in range(40)
    ]
    findings += [
        Finding(name="R3", message="It applies.", reason="B"),
        Finding(name="R3", message="It applies, really.", reason="A"),
    ]
    shuffled = findings.copy()
    random.Random(5).shuffle(shuffled)
    assert results.risks([outcome(*findings)]) == results.risks([outcome(*shuffled)])


def _many(number: int) -> list[Finding]:
    return [
        Finding(name=f"R{index:04}", message="Something.", applies=Applies.UNKNOWN if index % 2 else Applies.YES)
        for index in range(number)
    ]


@pytest.mark.parametrize(
    ("number", "shown", "applying", "more"),
    [
        pytest.param(199, 199, 100, [], id="fewer than an update can carry"),
        pytest.param(200, 200, 100, [], id="as many as an update can carry"),
        pytest.param(
            201,
            200,
            101,
            ["2 more risks were found than an update can carry: R0197, R0199."],
            id="one more: the last two that are unknown stand in one",
        ),
        pytest.param(
            1000,
            200,
            199,
            [
                "801 more risks were found than an update can carry: R0001, R0003, R0005, R0007, R0009, R0011, R0013, "
                "R0015, R0017, R0019 and 791 more."
            ],
            id="what applies is kept before what is unknown",
        ),
    ],
)
def test_at_most_200_risks(number: int, shown: int, applying: int, more: list[str]) -> None:
    """Risks that exceed the limit are counted in one additional risk; every second of these applies."""
    found = results.risks([outcome(*_many(number))])
    assert len(found) == shown
    assert [risk.message for risk in found if risk.name == "PreflightRisksOmitted"] == more
    kept = [risk for risk in found if risk.name != "PreflightRisksOmitted"]
    assert sum(risk.applies == "True" for risk in kept) == applying
    assert [risk.name for risk in found] == sorted(risk.name for risk in found)


def _huge(findings: int, resources: int, characters: int) -> Sequence[CheckOutcome]:
    things = tuple(
        ReportedResource(group="g", kind="Kind", namespace="namespace", name=f"n-{index:06}" * 5)
        for index in range(resources)
    )
    return [
        outcome(
            *(
                Finding(
                    name=f"R{index}", message="\u4e16" * characters, resources=things, remediation="\u754c" * characters
                )
                for index in range(findings)
            )
        )
    ]


@pytest.mark.parametrize(
    ("findings", "resources", "characters", "left"),
    [(1, 100, 100, 100), (1, 5000, 100, 100), (200, 100, 10, 20), (200, 100, 5000, 0)],
    ids=["small enough as it is", "many resources", "many risks with resources", "many long risks"],
)
def test_the_report_fits_its_limit(findings: int, resources: int, characters: int, left: int) -> None:
    """A report is never longer than its reader takes, and the risks themselves stay."""
    report = results.completed_report(HEADER, _huge(findings, resources, characters), NOW)
    data = encode(report)
    assert len(data) <= MAX_BYTES
    assert findings == len(read(data).risks)
    assert left == len(report.risks[0].resources)
    assert left + report.risks[0].resources_omitted == resources


@pytest.mark.parametrize(
    ("severities", "applying", "expected"),
    [
        pytest.param(("info", "warning"), True, ("True", "warning"), id="what applies, and the gravest of them"),
        pytest.param(("info", "info"), False, ("Unknown", "info"), id="nothing that applies"),
    ],
)
def test_what_stands_for_the_rest(severities: tuple[Severity, ...], applying: bool, expected: tuple[str, str]) -> None:
    """As grave as the gravest that it represents, and it applies where one of them does."""
    kept = [Finding(name=f"A{index:03}", message="It is.", severity="critical") for index in range(199)]
    applies = Applies.YES if applying else Applies.UNKNOWN
    others = [
        Finding(name=f"B{index}", message="It is.", applies=applies, severity=each)
        for index, each in enumerate(severities)
    ]
    found = results.risks([outcome(*others, *kept)])
    (rest,) = (risk for risk in found if risk.name == results.OMITTED)
    assert (rest.applies, rest.severity) == expected
    assert rest.message == "2 more risks were found than an update can carry: B0, B1."
    assert {risk.severity for risk in found if risk is not rest} == {"critical"}


@pytest.mark.parametrize(
    ("count", "shown"),
    [pytest.param(208, "R0208, R0209.", id="ten"), pytest.param(209, "R0208, R0209 and 1 more.", id="eleven")],
)
def test_how_many_of_the_rest_are_named(count: int, shown: str) -> None:
    """Ten."""
    findings = [Finding(name=f"R{index:04}", message="It is.") for index in range(1, count + 2)]
    (rest,) = (risk for risk in results.risks([outcome(*findings)]) if risk.name == results.OMITTED)
    assert rest.message.endswith(shown)


@pytest.mark.parametrize(
    ("length", "end"),
    [
        pytest.param(4000, "x" * 40, id="as long as is shown"),
        pytest.param(4001, " ... and 37 more characters", id="a character more"),
    ],
)
def test_how_much_of_a_text_is_told(length: int, end: str) -> None:
    """Omitted entries are counted."""
    (only,) = results.completed_report(HEADER, [outcome(Finding(name="X", message="x" * length))], NOW).risks
    assert only.message.endswith(end)
    assert len(only.message) <= 4000


def test_durations_are_in_milliseconds() -> None:
    """Nobody reads more of them."""
    report = results.completed_report(HEADER, [replace(outcome(), duration_seconds=1.23456)], NOW)
    assert report.checks[0].duration_seconds == 1.235


def test_only_printable_text_gets_out() -> None:
    """A check's text appears in an API object and on a terminal: control characters are escaped."""
    assert risk(Finding(name="X", message="a\x1b[31mb\x00c")).message != ""
    (only,) = results.completed_report(HEADER, [outcome(Finding(name="X", message="a\x1b[31mb\x00c\nd"))], NOW).risks
    assert only.message == "a\\x1b[31mb\\x00c\nd"


def test_three_states() -> None:
    """running counts, completed has its time, failed says why; each reads back as it was written."""
    outcomes = [outcome(Finding(name="X", message="Something."))]
    running = results.running_report(HEADER, outcomes, NOW, results.progress_text(1, 7))
    completed = results.completed_report(HEADER, outcomes, NOW)
    failed = results.failed(HEADER, outcomes, NOW, "the API server could not be reached")
    assert [
        (report.execution_status, report.message, report.completion_time) for report in (running, completed, failed)
    ] == [
        ("running", "1 of 7 checks done", None),
        ("completed", "", NOW),
        ("failed", "the API server could not be reached", NOW),
    ]
    for report in (running, completed, failed):
        assert report == read(encode(report))
        assert report.preflight_id == "p1"
        assert report.started_time == SINCE
        assert report.observed_time == NOW


def test_what_there_was_no_room_for_is_a_number() -> None:
    """Programs can read the report without parsing its sentences."""
    assert [
        results.completed_report(HEADER, [outcome(*_many(number))], NOW).risks_omitted for number in (200, 201, 300)
    ] == [
        0,
        2,
        101,
    ]


def test_a_release_s_own_risk_of_that_name_is_one_of_those_left_out() -> None:
    """Names are unique: a report with one twice would be refused whole."""
    found = results.completed_report(
        HEADER, [outcome(*_many(300), Finding(name=results.OMITTED, message="Mine."))], NOW
    )
    assert len(read(encode(found)).risks) == MAX_RISKS
    assert found.risks_omitted == 102
