"""The page of a history: each chart has the numbers of the table; what could not be evaluated is unknown."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec
from tests.cli.render.reading import read

from runup.cli.fleet.render.history_page import page
from runup.fleet.decide.trend import Change, ReportStep

MONDAY = datetime(2026, 11, 23, 6, tzinfo=UTC)
EVIL = "<script>x</script>\u202e"


def step(day: int, applies: int, *came: str, completed: bool = True, cluster: str = "a") -> ReportStep:
    """A report of a day, with risks that came."""
    return ReportStep(
        cluster=cluster,
        observed=MONDAY + timedelta(days=day),
        target="4.16.0",
        completed=completed,
        applies=applies,
        unknown=1 if completed else 0,
        came=tuple(Change(name, (), whole=True) for name in came),
        went=(Change("Old", (), whole=True),) if day == 2 else (),
    )


def titles(html: str) -> list[str]:
    """What the columns of the charts say."""
    return re.findall(r"<g><title>([^<]*)</title>", html)


def test_charts_a_fleet_by_day() -> None:
    """Open risks are those of the newest reports; changes are of all of them."""
    steps = [step(0, 2), step(0, 1, "X", cluster="b"), step(2, 3, "X", "Y")]
    html = page(steps, "", MONDAY, weeks=False, notes=())
    assert titles(html) == [
        "2026-11-23: 3 apply, 2 are unknown, 0 are accepted",
        "2026-11-25: 3 apply, 1 are unknown, 0 are accepted",
        "2026-11-23: 1 new, 0 grown, 0 gone",
        "2026-11-25: 2 new, 0 grown, 1 gone",
    ]
    failed = page([step(0, 0, completed=False)], "", MONDAY, weeks=False, notes=())
    assert titles(failed)[0].startswith("2026-11-23 (1 cluster not evaluated): ")
    by_week = page(steps, "", MONDAY, weeks=True, notes=("left out: 1.json",))
    assert titles(by_week)[0] == "2026-11-23: 4 apply, 2 are unknown, 0 are accepted"
    assert "left out: 1.json" in read(by_week).text


def test_charts_the_reports_of_a_cluster() -> None:
    """A report that failed has no numbers; it is never a zero."""
    html = page([step(0, 2), step(1, 0, completed=False), step(2, 1, "X")], "a", MONDAY, weeks=False, notes=())
    assert titles(html)[:3] == [
        "2026-11-23 06:00 UTC: 2 apply, 1 are unknown, 0 are accepted",
        "2026-11-24 06:00 UTC: unknown",
        "2026-11-25 06:00 UTC: 1 apply, 1 are unknown, 0 are accepted",
    ]
    assert "could not be evaluated" in read(html).text


def test_loads_nothing_and_escapes_names() -> None:
    """The file can be sent."""
    html = page([step(0, 1, EVIL, cluster=EVIL)], EVIL, MONDAY, weeks=False, notes=(EVIL,))
    tags = [tag for tag, _ in read(html).tags]
    assert {"script", "link", "img"}.isdisjoint(tags)
    assert tags.count("svg") == 2
    assert "\u202e" not in html


def test_charts_accepted_risks_apart() -> None:
    """A risk that the report records as accepted is counted once, and the page says what is not recorded."""
    accepted = msgspec.structs.replace(step(0, 3), accepted_applies=2, accepted_unknown=1)
    for cluster in ("", "a"):
        html = page([accepted], cluster, MONDAY, weeks=False, notes=())
        assert titles(html)[0].endswith(": 1 apply, 0 are unknown, 3 are accepted")
        assert "A report that --store of an earlier version kept records none" in read(html).text
