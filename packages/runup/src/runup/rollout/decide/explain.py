"""Explains at which openings of the next two weeks a policy could start an update, and what prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from runup.api.update_policy_v1alpha1 import ALWAYS, UpdateCalendar, UpdatePolicy, UpdateRun
from runup.rollout.decide.assemble import ClusterObjects, observe
from runup.rollout.decide.calendar import Period, opening_at
from runup.rollout.decide.candidate import choose
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.gates.gate import Gate
from runup.rollout.decide.gates.observed import Observed
from runup.rollout.decide.policy import failed_run

AHEAD = timedelta(days=14)
# Gates whose state at a later time follows from what is known now.
_OF_TIME = ("hold", "window", "forecast")
_MAX_OPENINGS = 100


class ExplainedOpening(msgspec.Struct, frozen=True):
    """A time at which all calendars are open, and the gates about time that are not open when it begins.

    `start` is the first time in it at which nothing about time prevents a start, None if there is none.
    """

    period: Period
    closed: tuple[Gate, ...]
    start: datetime | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The openings of the next two weeks, and the gates that are not open now whatever the time is."""

    openings: tuple[ExplainedOpening, ...]
    closed_now: tuple[Gate, ...]
    open_now: bool

    @property
    def first(self) -> datetime | None:
        """The first time at which an update starts if the other gates are open then."""
        return next((each.start for each in self.openings if each.start is not None), None)


class StartPreview(msgspec.Struct, frozen=True, kw_only=True):
    """When a policy starts the update to `version`. `stopped` says why it starts nothing, whatever the openings are."""

    version: str
    stopped: str
    explanation: Explanation

    @property
    def starts(self) -> bool:
        """Reports whether an update may start now or within two weeks."""
        return not self.stopped and (self.explanation.open_now or self.explanation.first is not None)


def preview(
    policy: UpdatePolicy,
    objects: ClusterObjects,
    runs: Sequence[UpdateRun],
    calendars: Sequence[UpdateCalendar],
    *,
    now: datetime,
    version: str = "",
) -> StartPreview:
    """Returns what a policy would start in the next two weeks: `version`, else the release that it chooses."""
    spec = policy.spec
    choice = choose(spec.target, objects.cluster, now, policy.status.offered, plain=objects.plain)
    version = version or (choice.candidate.version if choice.candidate is not None else "")
    failed = failed_run(runs)
    stopped = f"Run {failed.metadata.name} failed and is not acknowledged." if failed is not None else ""
    if spec.remote == "Only":
        stopped = "Nothing will start by the policy itself: spec.remote is Only."
    if not version:
        stopped = f"No release is chosen: {choice.message}"
    if not stopped and not spec.calendars:
        stopped = "Nothing will start: spec.calendars is empty. Add the name of an UpdateCalendar, or Always."
    observed = observe(objects, spec, calendars, now, version=version)
    return StartPreview(version=version, stopped=stopped, explanation=explain(observed, now))


def explain(observed: Observed, now: datetime) -> Explanation:
    """Returns what would happen in the next two weeks. Nothing is written."""
    verdict = evaluate(observed, now)
    openings = tuple(
        ExplainedOpening(period, _closed_at(observed, period.start), _start_in(observed, period))
        for period in _openings(observed, now)
    )
    closed_now = tuple(gate for gate in verdict.gates if gate.state != "Open" and gate.name not in _OF_TIME)
    return Explanation(openings=openings, closed_now=closed_now, open_now=verdict.open)


def _closed_at(observed: Observed, moment: datetime) -> tuple[Gate, ...]:
    return tuple(gate for gate in evaluate(observed, moment).gates if gate.name in _OF_TIME and gate.state != "Open")


def _start_in(observed: Observed, period: Period) -> datetime | None:
    """Returns the first time of the period at which the gates about time are open: a pause may end in its middle."""
    at = period.start
    for _ in range(_MAX_OPENINGS):
        closed = _closed_at(observed, at)
        changes = [gate.until for gate in closed if gate.until is not None and at < gate.until < period.end]
        if not closed:
            return at
        if len(changes) < len(closed):
            return None
        at = max(changes)
    return None


def _openings(observed: Observed, now: datetime) -> Iterator[Period]:
    """Yields the periods in which all calendars are open, the one that is open now first."""
    if observed.calendar_names == (ALWAYS,):
        yield Period(now, now + AHEAD)
        return
    at: datetime | None = now
    for _ in range(_MAX_OPENINGS):
        if at is None or at > now + AHEAD or observed.calendar_errors:
            return
        opening = opening_at(observed.calendars, at)
        if opening.period is not None:
            yield Period(max(at, opening.period.start), opening.period.end)
            # The end is not part of the period; the next one may follow at once.
            at = opening.period.end
        else:
            at = opening.next_opening
