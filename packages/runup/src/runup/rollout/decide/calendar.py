"""Evaluates UpdateCalendars: whether a window is open, until when, and when the next ones open.

A window is open in `[opening, opening + for)`. `for` is elapsed time, so that a window has the same length on the days
on which clocks change. Cron expressions are evaluated by cronsim, in the calendar's zone: an opening that its day does
not have moves to the end of the gap, and one that its day has twice counts once (docs/decisions/0120).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import CalendarFreeze, CalendarWindow, UpdateCalendar
from runup.rollout.decide.durations import parse

SHORTEST, LONGEST = timedelta(minutes=15), timedelta(days=7)
MAX_WINDOWS, MAX_FREEZES, MAX_EXPRESSION = 16, 64, 100
# A calendar without an opening in this time is reported as one that never opens.
HORIZON = timedelta(days=92)
# Windows that follow one another without a break are one period; more than this many are not joined.
_MAX_JOINED = 8
# Several calendars that hardly ever open together are compared at this many of their openings.
_MAX_STEPS = 500
_FIELDS = 5
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?", re.ASCII)
_MINUTE = timedelta(minutes=1)


class Period(NamedTuple):
    """The time from `start` to `end`, which is not part of it, in UTC."""

    start: datetime
    end: datetime
    reason: str = ""

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, datetime) and self.start <= moment < self.end


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed window; `closing_time` is the time before its end in which it counts as closed for a start."""

    expression: str
    length: timedelta
    closing_time: timedelta
    zone: ZoneInfo

    def period_at(self, moment: datetime) -> Period | None:
        """Returns the open period that contains `moment`, or None. Of several openings the newest one counts."""
        # cronsim looks for times before the one that it is given.
        local = (_whole_minute(moment) + _MINUTE).astimezone(self.zone)
        opening = next(CronSim(self.expression, local, reverse=True), None)
        if opening is None:
            return None
        period = self._period(opening)
        return period if moment in period else None

    def first_after(self, moment: datetime) -> Period | None:
        """Returns the first period that opens after `moment`, or None."""
        opening = next(CronSim(self.expression, moment.astimezone(self.zone)), None)
        return self._period(opening) if opening is not None else None

    def _period(self, opening: datetime) -> Period:
        start = opening.astimezone(UTC)
        return Period(start, start + self.length)


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed UpdateCalendar."""

    name: str
    zone: ZoneInfo
    windows: tuple[Window, ...]
    freezes: tuple[Period, ...]

    def frozen_at(self, moment: datetime) -> Period | None:
        """Returns the freeze that contains `moment` and ends last, or None."""
        return max((each for each in self.freezes if moment in each), key=lambda each: each.end, default=None)

    def open_at(self, moment: datetime) -> Period | None:
        """Returns the period of open windows that contains `moment`, cut where a freeze begins; None if closed."""
        if self.frozen_at(moment) is not None:
            return None
        usable = [
            period
            for window in self.windows
            if (period := window.period_at(moment)) is not None and moment < period.end - window.closing_time
        ]
        if not usable:
            return None
        start, end = min(period.start for period in usable), max(period.end for period in usable)
        for _ in range(_MAX_JOINED):
            later = max((p.end for window in self.windows if (p := window.period_at(end)) is not None), default=end)
            if later <= end or end - moment > LONGEST:
                break
            end = later
        return Period(start, min([end, *(freeze.start for freeze in self.freezes if freeze.start > moment)]))

    def next_open(self, moment: datetime) -> datetime | None:
        """Returns the first time after `moment` at which a start becomes possible: an opening, or a freeze's end."""
        opening = next((period.start for period in self.openings(moment, 1)), None)
        thaws = {freeze.end for freeze in self.freezes if moment < freeze.end and (not opening or freeze.end < opening)}
        return next((thaw for thaw in sorted(thaws) if self.open_at(thaw) is not None), opening)

    def openings(self, moment: datetime, most: int) -> list[Period]:
        """Returns the next `most` periods that open after `moment` within the horizon, freezes left out."""
        periods = {period for window in self.windows for period in self._next_periods(window, moment, most)}
        return sorted(periods)[:most]

    def _next_periods(self, window: Window, moment: datetime, most: int) -> Iterator[Period]:
        """Yields the next `most` periods of one window; an opening inside a freeze moves to the freeze's end."""
        after = moment
        while most and (period := window.first_after(after)) is not None and period.start - moment <= HORIZON:
            start, frozen = period.start, self.frozen_at(period.start)
            while frozen is not None and frozen.end < period.end:
                start, frozen = frozen.end, self.frozen_at(frozen.end)
            end = min([period.end, *(freeze.start for freeze in self.freezes if freeze.start > start)])
            if frozen is None and end - start > window.closing_time:
                most -= 1
                yield Period(start, end)
            # Openings whose whole period is frozen are skipped together.
            after = max(period.start, frozen.end - window.length) if frozen is not None else period.start


def read(source: UpdateCalendar) -> Calendar:
    """Parses an UpdateCalendar. Raises InputError that names the calendar and the field."""
    name, spec = source.metadata.name, source.spec
    try:
        zone = ZoneInfo(spec.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZone(
            f"calendar {name}: spec.timeZone {spec.time_zone!r} is not a known time zone; "
            "use an IANA name such as Europe/Berlin"
        ) from error
    if not 1 <= len(spec.windows) <= MAX_WINDOWS or len(spec.freezes) > MAX_FREEZES:
        raise InputError(
            f"calendar {name}: spec.windows must have 1 to {MAX_WINDOWS} entries, spec.freezes at most {MAX_FREEZES}"
        )
    try:
        windows = tuple(_window(window, f"spec.windows[{at}]", zone) for at, window in enumerate(spec.windows))
        freezes = tuple(_freeze(freeze, f"spec.freezes[{at}]", zone) for at, freeze in enumerate(spec.freezes))
    except InputError as error:
        raise InputError(f"calendar {name}: {error.message}") from error
    return Calendar(name=name, zone=zone, windows=windows, freezes=freezes)


class UnknownTimeZone(InputError):
    """The error that the machine does not know a calendar's time zone."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all calendars let a start happen: the open period, or why there is none and when that may change."""

    period: Period | None = None
    frozen: Period | None = None
    closed_by: str = ""
    next_opening: datetime | None = None


def opening_at(calendars: Sequence[Calendar], moment: datetime) -> Opening:
    """Returns whether every calendar has an open window at `moment`, and none a freeze."""
    for calendar in calendars:
        if (frozen := calendar.frozen_at(moment)) is not None:
            return Opening(frozen=frozen, closed_by=calendar.name, next_opening=next_opening(calendars, moment))
    periods = [(calendar, calendar.open_at(moment)) for calendar in calendars]
    for calendar, period in periods:
        if period is None:
            return Opening(closed_by=calendar.name, next_opening=next_opening(calendars, moment))
    found = [period for _, period in periods if period is not None]
    if not found:
        return Opening()
    return Opening(period=Period(max(period.start for period in found), min(period.end for period in found)))


def next_opening(calendars: Sequence[Calendar], moment: datetime) -> datetime | None:
    """Returns the first time from `moment` on at which all calendars are open, None if the horizon has none."""
    at = moment
    for _ in range(_MAX_STEPS):
        closed = [calendar for calendar in calendars if calendar.open_at(at) is None]
        if not closed:
            return at
        starts = [calendar.next_open(at) for calendar in closed]
        known = [start for start in starts if start is not None]
        if len(known) < len(starts):
            return None
        at = max(known)
        if at - moment > HORIZON:
            return None
    return None


def _window(source: CalendarWindow, field: str, zone: ZoneInfo) -> Window:
    length = parse(source.for_, f"{field}.for")
    closing_time = parse(source.min_remaining, f"{field}.minRemaining")
    if not SHORTEST <= length <= LONGEST:
        raise InputError(f"{field}.for must be between 15m and 7d, not {source.for_}")
    if closing_time >= length:
        raise InputError(f"{field}.minRemaining must be shorter than for")
    expression = source.opens
    if len(expression) > MAX_EXPRESSION or len(expression.split()) != _FIELDS or not expression.isascii():
        raise InputError(
            f"{field}.opens {expression[:MAX_EXPRESSION]!r} must have the five fields of cron: 0 22 * * TUE"
        )
    try:
        next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)))
    except (CronSimError, ValueError, AssertionError, StopIteration, OverflowError) as error:
        why = f": {error}" if isinstance(error, CronSimError) else ""
        raise InputError(f"{field}.opens {expression!r} is not a valid cron expression{why}") from error
    return Window(expression=expression, length=length, closing_time=closing_time, zone=zone)


def _freeze(source: CalendarFreeze, field: str, zone: ZoneInfo) -> Period:
    # Of a time that its day has twice, the first one begins a freeze and the second one ends it.
    start = _moment(source.from_, f"{field}.from", zone, fold=0)
    end = _moment(source.to, f"{field}.to", zone, fold=1)
    if end <= start:
        raise InputError(f"{field}.to {source.to} must be after from")
    return Period(start, end, source.reason)


def _moment(text: str, field: str, zone: ZoneInfo, *, fold: int) -> datetime:
    try:
        if not _MOMENT.fullmatch(text):
            raise ValueError(text)
        local = datetime.fromisoformat(text) if "T" in text else _midnight(date.fromisoformat(text))
        return local.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{field} {text[:40]!r} must be a date or time of the zone, such as 2026-12-18") from error


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 (the zone is set by the caller)


def _whole_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
