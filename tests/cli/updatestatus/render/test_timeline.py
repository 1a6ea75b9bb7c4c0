"""The drawing of an update: what is a dot, what a bar, what is only counted, and where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.cli.render.reading import read
from tests.cli.updatestatus.render.test_html import condition, insight, status, updating, version, worker

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.update_v1alpha1 import (
    ClusterOperatorInsight,
    Insight,
    OperatorProgress,
    ResourceRef,
    UpdateStatusStatus,
)
from runup.cli.updatestatus.render.timeline import UpdateTimes, timeline

STARTED = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
NOW = STARTED + timedelta(minutes=100)
"""A hundred minutes: a minute is a percent."""


def after(minutes: float) -> datetime:
    """So long after the update began."""
    return STARTED + timedelta(minutes=minutes)


@dataclass(frozen=True)
class Shown:
    """A lane as it is read and seen: `drawn` is the class of the dot or bar, `place` where it is."""

    name: str
    drawn: str
    place: str
    state: str
    tone: str


def lanes(found: UpdateStatusStatus, now: datetime = NOW) -> list[Shown]:
    """The lanes of the drawing, from top to bottom."""
    pattern = (
        r'<div class="name">([^<]*)</div><svg class="lane" width="100%" height="16" role="img" aria-label="([^"]*)">'
        r'(?:<(circle|rect) class="([^"]*)" (?:cx|x)="([\d.]+%)"(?: width="([\d.]+%)")?[^<]*</\3>)?</svg>'
        r'<div class="(\w+)">([^<]*)</div>'
    )
    rows = re.findall(pattern, timeline(found, now) or "")
    assert all(label == f"{name}: {state}" for name, label, *_, state in rows)
    return [
        Shown(name, f"{'dot ' if shape == 'circle' else ''}{fill}", f"{place} {width}".strip(), state, tone)
        for name, _, shape, fill, place, width, tone, state in rows
    ]


def axis(found: UpdateStatusStatus, now: datetime = NOW) -> list[tuple[str, float]]:
    """The words on the axis, and where they stand."""
    marks = re.findall(r'<text x="([\d.]+)%" [^>]*>([^<]*)</text>', timeline(found, now) or "")
    return [(word, float(place)) for place, word in marks]


def operator_insight(
    name: str, reason: str, moved: datetime | None, *, healthy: ConditionStatus = "True", since: datetime = STARTED
) -> Insight:
    """An operator in a state since `moved`; unhealthy since `since`."""
    status: ConditionStatus = "True" if reason == "Progressing" else "False"
    well = condition("Healthy", healthy, "Degraded" if healthy == "False" else "AsExpected", at=since)
    return insight(
        cluster_operator=ClusterOperatorInsight(
            name=name,
            resource=ResourceRef(resource="clusteroperators", name=name),
            progressing=OperatorProgress(status=status, last_transition_time=moved) if moved else None,
            conditions=(condition("Updating", status, reason), well),
        )
    )


def host(name: str, reason: str, moved: datetime, *others: Condition, version: str = "5.0.0") -> Insight:
    """A node in a phase since `moved`."""
    return worker(name, updating(reason, moved), *others, version=version)


WATCHED = host("watched", "Pending", after(-5))
"""A node that was seen before the update began: whatever happens in it is seen to."""


@pytest.mark.parametrize(
    ("when", "first_look", "seen"),
    [
        pytest.param(None, -5, False, id="no moment"),
        pytest.param(-1, -5, False, id="before the update"),
        pytest.param(0, -5, True, id="as the update began, somebody had looked before"),
        pytest.param(0, 0, False, id="as the update began, at the first look"),
        pytest.param(10, 10, False, id="at the first look"),
        pytest.param(10.1, 10, True, id="after the first look"),
        pytest.param(10, -5, True, id="somebody had looked before"),
    ],
)
def test_what_was_seen_to_happen(when: float | None, first_look: float, seen: bool) -> None:
    """A moment of this update after the first look; a watcher from before the update saw all of it."""
    since = UpdateTimes(NOW, STARTED, after(first_look))
    assert since.seen(None if when is None else after(when)) is seen


@pytest.mark.parametrize(
    ("seconds", "seen", "said"),
    [
        pytest.param(59, False, "draining", id="less than a minute since the first look says nothing"),
        pytest.param(60, False, "draining, 1 min or more", id="a minute does"),
        pytest.param(59, True, "draining, 59 s", id="its beginning was seen"),
    ],
)
def test_for_how_long(seconds: int, seen: bool, said: str) -> None:
    """A state that existed at the first look has an unknown start."""
    since = UpdateTimes(NOW, STARTED, STARTED)
    assert since.going_on("draining", NOW - timedelta(seconds=seconds), observed_start=seen) == said


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        pytest.param(
            operator_insight("etcd", "Updated", after(25)),
            Shown("etcd", "dot fill-good", "25.00%", "updated 06:25", "good"),
            id="done: a dot where it was done",
        ),
        pytest.param(
            operator_insight("etcd", "Updated", STARTED),
            Shown("etcd", "dot fill-good", "0.00%", "updated 06:00", "good"),
            id="done in the moment in which the update began",
        ),
        pytest.param(
            operator_insight("etcd", "Updated", after(-1)),
            Shown("etcd", "dot fill-good", "0.00%", "updated before 06:00", "good"),
            id="done earlier: before the update began",
        ),
        pytest.param(
            operator_insight("etcd", "Updated", after(25), healthy="False"),
            Shown("etcd", "dot fill-bad", "25.00%", "updated 06:25, degraded", "bad"),
            id="done and not well",
        ),
        pytest.param(
            operator_insight("etcd", "Updated", after(25), healthy="Unknown"),
            Shown("etcd", "dot fill-good", "25.00%", "updated 06:25", "good"),
            id="done, and nobody knows how well it is",
        ),
        pytest.param(
            operator_insight("etcd", "Progressing", after(60)),
            Shown("etcd", "fill-busy", "60.00% 40.00%", "updating, 40 min", "busy"),
            id="at it: a bar from its beginning to now",
        ),
        pytest.param(
            operator_insight("etcd", "Progressing", after(60), healthy="False"),
            Shown("etcd", "fill-bad", "60.00% 40.00%", "updating, 40 min, degraded", "bad"),
            id="at it and not well",
        ),
        pytest.param(
            operator_insight("etcd", "Progressing", None),
            Shown("etcd", "fill-busy", "0.00% 100.00%", "updating, 1 h 40 min or more", "busy"),
            id="at it, it does not say since when: since the first look",
        ),
        pytest.param(
            operator_insight("etcd", "Pending", None, healthy="False", since=after(70)),
            Shown("etcd", "fill-bad", "70.00% 30.00%", "degraded", "bad"),
            id="its turn has not come, and it is not well",
        ),
    ],
)
def test_how_an_operator_is_drawn(found: Insight, shown: Shown) -> None:
    """By what it says about itself."""
    assert lanes(status((version(), found))) == [shown]


BAD_SINCE_80 = (
    condition("Available", "False", "NotReady", at=after(80)),
    condition("Degraded", "False", "AsExpected", at=after(80)),
)


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        pytest.param(
            host("w", "Completed", after(30)),
            Shown("w", "dot fill-good", "30.00%", "updated 06:30", "good"),
            id="done",
        ),
        pytest.param(
            host("w", "Completed", after(-1)),
            Shown("w", "dot fill-good", "0.00%", "updated before 06:00", "good"),
            id="done before the update began",
        ),
        pytest.param(
            host("w", "Rebooting", after(90)),
            Shown("w", "fill-busy", "90.00% 10.00%", "rebooting, 10 min", "busy"),
            id="at it",
        ),
        pytest.param(
            host("w", "Rebooting", after(90), condition("Degraded", "True", "Degraded", at=after(50))),
            Shown("w", "fill-bad", "50.00% 50.00%", "degraded, 50 min", "bad"),
            id="degraded since then, whatever it does",
        ),
        pytest.param(
            host("w", "Pending", after(10), *BAD_SINCE_80),
            Shown("w", "fill-bad", "80.00% 20.00%", "unavailable, 20 min", "bad"),
            id="unavailable since then",
        ),
        pytest.param(
            host("w", "Pending", after(10), Condition(type="Degraded", status="True")),
            Shown("w", "fill-bad", "10.00% 90.00%", "degraded, 1 h 30 min", "bad"),
            id="degraded, and nobody says since when: since it is in its phase",
        ),
    ],
)
def test_how_a_node_is_drawn(found: Insight, shown: Shown) -> None:
    """By its conditions, seen from before the update began."""
    assert [lane for lane in lanes(status((version(),), (found, WATCHED))) if lane.name == "w"] == [shown]


def test_what_has_nothing_to_draw_is_named_by_state() -> None:
    """Who waits, who is paused, and of whom nothing is known; no word of a state that nobody is in."""
    nodes = (host("a", "Pending", STARTED), host("b", "Paused", STARTED), host("c", "Hibernating", STARTED))
    text = read(timeline(status((version(), operator_insight("dns", "Postponed", None)), nodes), NOW) or "").text
    assert "Operators 1 not known: dns Worker pool worker 1 waiting: a 1 paused: b 1 not known: c" in text
    assert "Control plane nodes" not in text


def test_the_order_of_lanes() -> None:
    """Completed steps in their order, then running ones, then waiting ones; simultaneous ones by name."""
    found = (
        operator_insight("waits", "Pending", None),
        operator_insight("began-late", "Progressing", after(50)),
        operator_insight("began-early", "Progressing", after(10)),
        operator_insight("second", "Updated", after(30)),
        operator_insight("b-first", "Updated", after(20)),
        operator_insight("a-first", "Updated", after(20)),
    )
    drawn = lanes(status((version(), *found)))
    assert [lane.name for lane in drawn] == ["a-first", "b-first", "second", "began-early", "began-late"]


@pytest.mark.parametrize(("count", "more"), [(40, ""), (41, "1 more"), (43, "3 more")])
def test_lanes_beyond_the_fortieth_are_counted(count: int, more: str) -> None:
    """A drawing of a hundred lanes shows nothing."""
    found = status(
        (version(), *(operator_insight(f"o{number:02}", "Updated", after(number)) for number in range(count)))
    )
    assert len(lanes(found)) == 40
    assert re.findall(r'<div class="more">([^<]*)</div>', timeline(found, NOW) or "") == ([more] if more else [])


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        pytest.param(["a.x.example", "b.x.example"], ["a", "b"], id="one domain"),
        pytest.param(["a.x.example", "b.y.example"], ["a.x.example", "b.y.example"], id="two domains"),
        pytest.param(["a.x.example", "b"], ["a.x.example", "b"], id="one host has none"),
    ],
)
def test_domains_of_hosts(names: list[str], shown: list[str]) -> None:
    """Parts that distinguish nothing are omitted."""
    nodes = tuple(host(name, "Rebooting", after(50)) for name in names)
    assert [lane.name for lane in lanes(status((version(),), nodes))] == shown


def test_without_a_beginning_there_is_no_drawing() -> None:
    """Nor without anything that could are in it."""
    etcd = operator_insight("etcd", "Updated", after(1))
    assert timeline(UpdateStatusStatus(), NOW) is None
    assert timeline(status((etcd,)), NOW) is None
    assert timeline(status((version(started_at=None), etcd)), NOW) is None
    assert timeline(status((version(),)), NOW) is None
    assert timeline(status((version(), etcd)), NOW) is not None


@pytest.mark.parametrize(
    ("completed", "found", "end"),
    [
        pytest.param(None, [operator_insight("etcd", "Updated", after(10))], "07:40", id="the update goes on: now"),
        pytest.param(62, [operator_insight("etcd", "Updated", after(10))], "07:02", id="it is over: when it was"),
        pytest.param(
            62, [operator_insight("etcd", "Updated", after(75))], "07:15", id="the last one was done after it"
        ),
        pytest.param(
            62, [operator_insight("etcd", "Progressing", after(10))], "07:40", id="something goes on after it: now"
        ),
        pytest.param(62, [operator_insight("etcd", "Pending", None)], "07:02", id="something waits after it"),
        pytest.param(
            62,
            [operator_insight("etcd", "Updated", after(10)), host("m", "Completed", after(90))],
            "07:02",
            id="somebody began to look after it: what was so then is no end",
        ),
        pytest.param(
            62,
            [operator_insight("etcd", "Updated", after(300))],
            "07:40",
            id="a clock that runs ahead: no later than now",
        ),
    ],
)
def test_where_the_drawing_ends(completed: float | None, found: list[Insight], end: str) -> None:
    """Days of rest after an update say nothing."""
    done = version(completed_at=None if completed is None else after(completed))
    seen = [replace_looked(each) for each in found]
    assert axis(status((done, *seen)))[-1] == (end, 100.0)


def replace_looked(found: Insight) -> Insight:
    """An operator without the time of a look: then nodes alone say since when somebody looks."""
    operator = found.cluster_operator
    if operator is None:
        return found
    updating = tuple(replace(each, last_transition_time=None) for each in operator.conditions)
    return insight(cluster_operator=replace(operator, conditions=updating))


def test_an_update_that_has_just_begun_is_drawn_a_minute_long() -> None:
    """A span of nothing has no places."""
    found = status((version(), operator_insight("etcd", "Updated", STARTED)))
    assert axis(found, STARTED) == [("06:00", 0.0), ("06:01", 100.0)]


STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200)
"""Minutes between marks: what people count in."""
SIX = [0.0, 16.67, 33.33, 50.0, 66.67, 83.33, 100.0]


@pytest.mark.parametrize("minutes", STEPS)
def test_six_steps_are_as_many_as_fit(minutes: int) -> None:
    """Of the epoch, at which every step has a mark; a minute more takes the next step, so fewer marks."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = status((version(started_at=epoch), operator_insight("etcd", "Progressing", epoch)))
    assert [place for _, place in axis(found, epoch + timedelta(minutes=6 * minutes))] == SIX
    longer = axis(found, epoch + timedelta(minutes=6 * minutes + 1))
    assert len(longer) < len(SIX) or minutes == STEPS[-1]


def test_the_longest_step_serves_for_whatever_is_longer() -> None:
    """A year has a mark every thirty days, except for the first and the last, which would run into the ends."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = status((version(started_at=epoch), operator_insight("etcd", "Progressing", epoch)))
    words = [word for word, _ in axis(found, epoch + timedelta(days=365))]
    assert words[:3] == ["01 Jan 00:00", "02 Mar 00:00", "01 Apr 00:00"]
    assert words[-2:] == ["27 Nov 00:00", "01 Jan 00:00"]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        pytest.param(5, ["06:05", "06:20", "06:30", "06:40", "06:50", "07:05"], id="a twelfth away: no room"),
        pytest.param(4, ["06:04", "06:10", "06:20", "06:30", "06:40", "06:50", "07:04"], id="more on one side alone"),
    ],
)
def test_marks_keep_away_from_both_ends(start: int, words: list[str]) -> None:
    """By more than a twelfth of an hour's drawing, which is five minutes."""
    found = status((version(started_at=after(start)), operator_insight("etcd", "Progressing", after(start))))
    assert [word for word, _ in axis(found, after(start + 60))] == words


@pytest.mark.parametrize(
    ("seconds", "first"),
    [pytest.param(0, "06:00", id="twenty hours"), pytest.param(1, "21 Nov 06:00", id="and a second")],
)
def test_a_long_drawing_names_days(seconds: int, first: str) -> None:
    """After twenty hours a time of day may be yesterday's."""
    found = status((version(), operator_insight("etcd", "Progressing", STARTED)))
    assert axis(found, STARTED + timedelta(hours=20, seconds=seconds))[0][0] == first
