"""Windows and freezes of calendars, on days on which clocks change and on all others.

The instants of Europe/Berlin in 2027 follow from the zone's rules in tzdata: clocks go forward on 28 March at 01:00 UTC
and back on 31 October at 01:00 UTC. The numbers are those of the acceptance cases.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rollout.observed_cluster import parsed_calendar

from kubekit.error_types import InputError
from runup.rollout.decide.calendar import HORIZON, Calendar, UnknownTimeZone, next_opening, opening_at

NIGHT = {"opens": "0 22 * * TUE", "for": "6h"}
FREEZE = {"from": "2026-12-18", "to": "2027-01-04", "reason": "year end"}


def utc(text: str) -> datetime:
    """A time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("calendar", "at", "is_open"),
    [
        # 12: 2027-02-02 is a Tuesday; Berlin is one hour ahead of UTC.
        pytest.param(parsed_calendar(NIGHT), "2027-02-03T01:00", True, id="12: Wednesday 02:00 belongs to Tuesday"),
        pytest.param(parsed_calendar(NIGHT), "2027-02-02T01:00", False, id="12: Tuesday 02:00 does not"),
        pytest.param(parsed_calendar(NIGHT), "2027-02-02T21:00", True, id="the opening is part of the window"),
        pytest.param(parsed_calendar(NIGHT), "2027-02-02T20:59:59", False, id="a second before is not"),
        pytest.param(parsed_calendar(NIGHT), "2027-02-03T02:59:59.999999", True, id="until the end"),
        pytest.param(parsed_calendar(NIGHT), "2027-02-03T03:00", False, id="the end is not part of the window"),
        pytest.param(
            parsed_calendar(NIGHT, freezes=[{"from": "2027-02-02", "to": "2027-02-03"}]),
            "2027-02-02T22:00",
            False,
            id="14: a freeze overrides a window",
        ),
        pytest.param(
            parsed_calendar(NIGHT, freezes=[{"from": "2027-02-02", "to": "2027-02-03"}]),
            "2027-02-02T23:00",
            True,
            id="14: a freeze ends at midnight of its zone, in the middle of a window",
        ),
        pytest.param(
            parsed_calendar({"opens": "0 22 * * TUE", "for": "6h", "minRemaining": "2h"}),
            "2027-02-03T01:00",
            False,
            id="fewer than minRemaining are left",
        ),
        pytest.param(
            parsed_calendar({"opens": "0 8 * * SAT#1", "for": "10h"}), "2027-02-06T08:00", True, id="first Saturday"
        ),
        pytest.param(
            parsed_calendar({"opens": "0 8 * * SAT#1", "for": "10h"}), "2027-02-13T08:00", False, id="second Saturday"
        ),
    ],
)
def test_a_window_is_open(calendar: Calendar, at: str, is_open: bool) -> None:
    """A window belongs to the day on which it opens."""
    assert (calendar.open_at(utc(at)) is not None) is is_open
    assert (opening_at([calendar], utc(at)).period is not None) is is_open


@pytest.mark.parametrize(
    ("after", "starts"),
    [
        pytest.param("2027-03-27T12:00", ["2027-03-28T01:00", "2027-03-29T00:30"], id="13: 02:30 does not exist"),
        pytest.param("2027-10-30T12:00", ["2027-10-31T00:30", "2027-11-01T01:30"], id="13: 02:30 exists twice"),
    ],
)
def test_openings_when_clocks_change(after: str, starts: list[str]) -> None:
    """A nightly window opens once on each day, and is as long as on every other day."""
    periods = parsed_calendar({"opens": "30 2 * * *", "for": "2h"}).openings(utc(after), 2)
    assert [period.start for period in periods] == list(map(utc, starts))
    assert {period.end - period.start for period in periods} == {timedelta(hours=2)}


def test_16_a_calendar_that_does_not_open_in_92_days() -> None:
    """29 February is further away than the horizon."""
    calendar = parsed_calendar({"opens": "0 3 29 2 *", "for": "2h"})
    assert calendar.openings(utc("2027-03-01T00:00"), 3) == []
    assert next_opening([calendar], utc("2027-03-01T00:00")) is None


@pytest.mark.parametrize(
    ("calendars", "at", "opens"),
    [
        pytest.param([parsed_calendar(NIGHT)], "2027-02-01T00:00", "2027-02-02T21:00", id="one"),
        pytest.param(
            [parsed_calendar(NIGHT), parsed_calendar({"opens": "0 0 * * *", "for": "4h"}, zone="UTC")],
            "2027-02-01T00:00",
            "2027-02-03T00:00",
            id="both must be open",
        ),
        pytest.param(
            [parsed_calendar(NIGHT, freezes=[{"from": "2027-02-01", "to": "2027-02-03T02:00"}])],
            "2027-02-01T00:00",
            "2027-02-03T01:00",
            id="a freeze ends in a window that opened during it",
        ),
        pytest.param(
            [parsed_calendar(NIGHT, freezes=[{"from": "2027-02-01", "to": "2027-02-03T02:00"}])],
            "2027-02-02T22:00",
            "2027-02-03T01:00",
            id="a freeze ends in a window that is open already",
        ),
        pytest.param(
            [parsed_calendar(NIGHT), parsed_calendar({"opens": "0 12 * * *", "for": "1h"})],
            "2027-02-01T00:00",
            None,
            id="never together",
        ),
    ],
)
def test_next_opening_of_all(calendars: list[Calendar], at: str, opens: str | None) -> None:
    """The next opening is the first time at which all calendars are open."""
    found = next_opening(calendars, utc(at))
    assert found == (utc(opens) if opens else None)


def test_windows_without_a_break_are_one_period() -> None:
    """The end of the period is that of the last window that follows without a break, cut where a freeze begins."""
    windows = ({"opens": "0 22 * * TUE", "for": "6h"}, {"opens": "0 4 * * WED", "for": "2h"})
    assert parsed_calendar(*windows).open_at(utc("2027-02-02T22:00")) == (
        utc("2027-02-02T21:00"),
        utc("2027-02-03T05:00"),
        "",
    )
    frozen = parsed_calendar(*windows, freezes=[{"from": "2027-02-03T05:00", "to": "2027-02-04"}])
    period = frozen.open_at(utc("2027-02-02T22:00"))
    assert period is not None
    assert period.end == utc("2027-02-03T04:00")


@pytest.mark.parametrize(
    ("windows", "spec", "error"),
    [
        pytest.param([NIGHT], {"zone": "Europe/Berln"}, "spec.timeZone 'Europe/Berln' is not a known", id="15: zone"),
        pytest.param([NIGHT], {"zone": "../../etc/passwd"}, "is not a known time zone", id="15: a path"),
        pytest.param([NIGHT], {"zone": ""}, "is not a known time zone", id="15: no zone"),
        pytest.param([], {}, "spec.windows must have 1 to 16", id="no window"),
        pytest.param([NIGHT] * 17, {}, "spec.windows must have 1 to 16", id="64: too many windows"),
        pytest.param([NIGHT], {"freezes": [FREEZE] * 65}, "spec.freezes at most 64", id="64: too many freezes"),
        pytest.param([{"opens": "61 * * * *", "for": "1h"}], {}, "spec.windows[0].opens '61 * * * *'", id="minute 61"),
        pytest.param([{"opens": "0 0 31 2 *", "for": "1h"}], {}, "is not a valid cron expression", id="31 February"),
        pytest.param([{"opens": "* * * * * *", "for": "1h"}], {}, "must have the five fields", id="with seconds"),
        pytest.param([{"opens": "@daily", "for": "1h"}], {}, "must have the five fields", id="a nickname"),
        pytest.param([{"opens": f"{'1,' * 60}1 * * * *", "for": "1h"}], {}, "must have the five fields", id="too long"),
        pytest.param([{"opens": "0 22 * * TUE", "for": "14m"}], {}, "between 15m and 7d", id="too short"),
        pytest.param([{"opens": "0 22 * * TUE", "for": "7d1s"}], {}, "between 15m and 7d", id="too long a window"),
        pytest.param([{"opens": "0 22 * * TUE", "for": "six"}], {}, "must be a duration such as", id="no duration"),
        pytest.param([{**NIGHT, "minRemaining": "6h"}], {}, "must be shorter than for", id="never usable"),
        pytest.param(
            [NIGHT], {"freezes": [{"from": "2027-01-02", "to": "2027-01-02"}]}, "must be after from", id="order"
        ),
        pytest.param([NIGHT], {"freezes": [{"from": "2027-02-30", "to": "2027-03-02"}]}, "date or time", id="no date"),
        pytest.param(
            [NIGHT],
            {"freezes": [{"from": "2027-02-01T00:00Z", "to": "2027-03-02"}]},
            "date or time",
            id="with an offset",
        ),
    ],
)
def test_refuses_bad_calendars(windows: list[dict[str, str]], spec: dict[str, Any], error: str) -> None:
    """The error names the calendar and the field."""
    with pytest.raises(InputError) as raised:
        parsed_calendar(*windows, **spec)
    assert raised.value.message.startswith("calendar nights: ")
    assert error in raised.value.message
    assert isinstance(raised.value, UnknownTimeZone) is ("zone" in spec)


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/St_Johns", "UTC")
FIELDS = st.tuples(
    st.sampled_from(["0", "30", "15", "*/20"]),
    st.sampled_from(["2", "1", "0", "3", "22", "*/6"]),
    st.sampled_from(["*", "TUE,THU", "SUN", "SAT#1", "5L"]),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(FIELDS, st.sampled_from(ZONES), st.integers(0, 365 * 24 * 60), st.sampled_from(["15m", "6h", "7d"]))
def test_properties_of_windows(fields: tuple[str, str, str], zone: str, minutes: int, length: str) -> None:
    """Openings rise strictly, windows are as long as `for`, and the state agrees with the openings around it."""
    minute, hour, day = fields
    calendar = parsed_calendar({"opens": f"{minute} {hour} * * {day}", "for": length}, zone=zone)
    now = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    periods = calendar.openings(now - timedelta(days=8), 60)
    starts = [period.start for period in periods]
    assert starts == sorted(set(starts))
    assert len({period.end - period.start for period in periods}) == 1
    known = now < starts[-1]
    assert not known or (calendar.open_at(now) is not None) is any(now in period for period in periods)
    following = calendar.openings(now, 1)
    assert all(now < period.start <= now + HORIZON for period in following)


@pytest.mark.parametrize("expression", ["* * * * *", "0 22 * * TUE", "0 3 29 2 *", "*/7 */3 1,15 * *"])
def test_64_evaluation_is_bounded(expression: str) -> None:
    """A calendar at its limits costs milliseconds, with and without a freeze of months."""
    windows = [{"opens": expression, "for": "15m"}] * 16
    freeze = {"from": "2027-03-01", "to": "2027-05-20"}
    for calendar in (parsed_calendar(*windows), parsed_calendar(*windows, freezes=[freeze] * 64)):
        began = time.process_time()
        opening_at([calendar], utc("2027-03-02T12:00"))
        assert time.process_time() - began < 1
