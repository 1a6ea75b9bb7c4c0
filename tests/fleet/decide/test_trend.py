"""Tests which risks came and went in stored reports; an unknown result does not remove a risk."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from msgspec.structs import replace

from runup.fleet.decide.trend import Change, Day, ReportStep, steps_of_reports, summarize_days
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk

MONDAY, TUESDAY = datetime(2026, 11, 23, 6, tzinfo=UTC), datetime(2026, 11, 24, 6, tzinfo=UTC)


def report(*risks: str, target: str = "4.16.0", status: str = "completed", unknown: tuple[str, ...] = ()) -> Report:
    """A report with these risks, and checks that could not tell."""
    return Report(
        format=FORMAT,
        target_version=target,
        execution_status=status,  # type: ignore[arg-type]
        risks=tuple(
            ReportedRisk(name=name, message="so", applies="Unknown" if name.endswith("Unknown") else "True")
            for name in risks
        ),
        checks=(
            *(ReportedCheck(name=name, result="Unknown") for name in unknown),
            *(ReportedCheck(name=name, result="Clear") for name in {"Ack", "Paused", "Skew"} - set(unknown)),
        ),
    )


def test_a_risk_comes_and_goes() -> None:
    """Next to the last report of the same cluster and target; the first one says nothing of before."""
    found = steps_of_reports([("a", TUESDAY, report("Ack", "Skew")), ("a", MONDAY, report("Paused-x", "Ack"))])
    assert found == (
        ReportStep(cluster="a", observed=MONDAY, target="4.16.0", completed=True, applies=2, first=True),
        ReportStep(
            cluster="a",
            observed=TUESDAY,
            target="4.16.0",
            completed=True,
            applies=2,
            came=(Change("Skew", (), whole=True),),
            went=(Change("Paused-x", (), whole=True),),
        ),
    )
    assert (found[1].new, found[1].gone) == (("Skew",), ("Paused-x",))


def test_what_could_not_be_told_is_not_gone() -> None:
    """By the risk that says so, and by the check's own result."""
    by_risk = steps_of_reports([("a", MONDAY, report("Paused-x")), ("a", TUESDAY, report("PausedUnknown"))])[1]
    assert (by_risk.new, by_risk.gone, by_risk.unknown) == (("PausedUnknown",), (), 1)
    by_check = steps_of_reports([("a", MONDAY, report("Paused-x")), ("a", TUESDAY, report(unknown=("Paused",)))])[1]
    assert by_check.gone == ()
    other = steps_of_reports([("a", MONDAY, report("Paused-x")), ("a", TUESDAY, report(unknown=("Skew",)))])[1]
    assert other.gone == ("Paused-x",)
    cordoned = steps_of_reports([("a", MONDAY, report("Cordoned")), ("a", TUESDAY, report(unknown=("Skew",)))])[1]
    assert cordoned.gone == ()  # no check has its name: that of Skew may be the one that finds it


def test_a_report_that_failed_is_told_and_skipped() -> None:
    """The next one is next to the last that was completed."""
    wednesday = datetime(2026, 11, 25, 6, tzinfo=UTC)
    found = steps_of_reports(
        [("a", MONDAY, report("Ack")), ("a", TUESDAY, report(status="failed")), ("a", wednesday, report("Skew"))]
    )
    assert [step.completed for step in found] == [True, False, True]
    assert (found[2].new, found[2].gone) == (("Skew",), ("Ack",))


def test_two_targets_of_a_cluster_are_apart() -> None:
    """A risk of the further one is not new because the nearer one does not have it."""
    found = steps_of_reports([("a", MONDAY, report("Ack")), ("a", TUESDAY, report("Ack", "Skew", target="4.17.0"))])
    assert (found[1].new, found[1].first) == ((), True)


def test_a_day_counts_the_newest_report_of_each_cluster() -> None:
    """And all that came and went, each cluster once."""
    later = datetime(2026, 11, 24, 18, tzinfo=UTC)
    found = steps_of_reports(
        [
            ("a", MONDAY, report("Ack")),
            ("b", MONDAY, report("Ack")),
            ("a", TUESDAY, report("Ack", "Skew")),
            ("a", later, report("Skew")),
            ("b", TUESDAY, report("Skew")),
            ("c", TUESDAY, report(status="failed")),
        ]
    )
    assert summarize_days(found) == (
        Day(day=date(2026, 11, 23), clusters=2, failed=0, applies=2, unknown=0, new=(), gone=()),
        Day(day=date(2026, 11, 24), clusters=3, failed=1, applies=2, unknown=0, new=(("Skew", 2),), gone=(("Ack", 2),)),
    )


def about(name: str, *nodes: str, applies: str = "True") -> Report:
    """A report whose one risk names these nodes."""
    resources = tuple(ReportedResource(kind="Node", name=node) for node in nodes)
    risk = ReportedRisk(name=name, message="so", applies=applies, resources=resources)  # type: ignore[arg-type]
    return replace(report(), risks=(risk,))


OBJECTS: dict[str, tuple[Report, Report, tuple[Change, ...], tuple[Change, ...]]] = {
    "another object of a risk": (
        about("Cordoned", "a", "b"),
        about("Cordoned", "b", "c"),
        (Change("Cordoned", ("Node c",), whole=False),),
        (Change("Cordoned", ("Node a",), whole=False),),
    ),
    "the same objects": (about("Cordoned", "a"), about("Cordoned", "a"), (), ()),
    "a risk with its objects": (report(), about("Cordoned", "a"), (Change("Cordoned", ("Node a",), whole=True),), ()),
    "a risk that went": (about("Cordoned", "a"), report(), (), (Change("Cordoned", ("Node a",), whole=True),)),
    "a check that could not tell": (
        about("Cordoned", "a"),
        report("CordonedUnknown"),
        (Change("CordonedUnknown", (), whole=True),),
        (),
    ),
    "lists that are cut, and one object more": (
        replace(about("Cordoned", "a"), risks=(replace(about("Cordoned", "a").risks[0], resources_omitted=3),)),
        replace(about("Cordoned", "b"), risks=(replace(about("Cordoned", "b").risks[0], resources_omitted=4),)),
        (Change("Cordoned", (), whole=False, more=1),),
        (),
    ),
    "fewer objects, and the check is unknown in part": (
        about("Cordoned", "a", "b"),
        replace(about("Cordoned", "a"), risks=(*about("Cordoned", "a").risks, *report("CordonedUnknown").risks)),
        (Change("CordonedUnknown", (), whole=True),),
        (),
    ),
    "fewer objects, unknown both times": (
        about("CordonedUnknown", "a", applies="Unknown"),
        about("CordonedUnknown", applies="Unknown"),
        (),
        (),
    ),
    "one that could not be told before": (about("Cordoned", applies="Unknown"), about("Cordoned", "a"), (), ()),
}


@pytest.mark.parametrize(("before", "after", "came", "went"), OBJECTS.values(), ids=list(OBJECTS))
def test_which_objects_came_and_went(
    before: Report, after: Report, came: tuple[Change, ...], went: tuple[Change, ...]
) -> None:
    """Also of a risk that stayed; nothing is concluded from what is unknown."""
    found = steps_of_reports([("a", MONDAY, before), ("a", TUESDAY, after)])[1]
    assert (found.came, found.went) == (came, went)


def test_a_day_says_what_has_grown() -> None:
    """Once for each cluster, however many of its reports have more objects."""
    later = datetime(2026, 11, 24, 18, tzinfo=UTC)
    reports = [
        (MONDAY, about("Cordoned", "a")),
        (TUESDAY, about("Cordoned", "b")),
        (later, about("Cordoned", "b", "c")),
    ]
    found = steps_of_reports([("x", when, found) for when, found in reports])
    assert [step.grown for step in found] == [(), ("Cordoned",), ("Cordoned",)]
    assert [(day.new, day.grown) for day in summarize_days(found)] == [((), ()), ((), (("Cordoned", 1),))]


def test_a_week_begins_on_monday() -> None:
    """Its counts are those of its newest reports, over a year's end, too."""
    sunday, new_year = datetime(2026, 11, 29, 23, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    found = steps_of_reports(
        [("a", MONDAY, report("Ack")), ("a", sunday, report("Ack", "Skew")), ("a", new_year, report("Skew"))]
    )
    assert summarize_days(found, weeks=True) == (
        Day(day=date(2026, 11, 23), clusters=1, failed=0, applies=2, unknown=0, new=(("Skew", 1),), gone=()),
        Day(day=date(2026, 12, 28), clusters=1, failed=0, applies=1, unknown=0, new=(), gone=(("Ack", 1),)),
    )


def test_counts_risks_that_the_report_records_as_accepted() -> None:
    """Names of risks that the report does not have are not counted; a day counts the newest reports."""
    accepting = replace(report("Ack", "Skew", unknown=()), accepted=("Ack", "Elsewhere"))
    steps = steps_of_reports([("a", MONDAY, accepting), ("b", MONDAY, report("Ack"))])
    assert [(step.applies, step.accepted_applies, step.accepted_unknown) for step in steps] == [(2, 1, 0), (1, 0, 0)]
    assert summarize_days(steps)[0].accepted == 1
