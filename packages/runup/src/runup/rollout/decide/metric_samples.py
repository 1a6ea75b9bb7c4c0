"""Computes from runs and calendars what metrics and events of update policies show. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runup.api.update_policy_v1alpha1 import RunDecision, UpdateRun
from runup.rollout.decide.calendar import Calendar, next_opening, opening_at

# More missed openings are counted as this many.
MOST_OPENINGS = 10
# These gates depend on the time alone: during an opening another gate keeps the update from starting.
_TIME_GATES = ("window", "forecast")
_WARNINGS = frozenset(
    {
        "NotAccepted",
        "OtherUpdate",
        "PausedTooLong",
        "StartedUngated",
        "SucceededUngated",
        "WithdrawnBefore",
        "WithdrawnDuring",
    }
)
GATE_VALUES = {"Open": 1, "Closed": 0, "Unknown": -1}


def missed_openings(calendars: Sequence[Calendar], since: datetime, now: datetime) -> int:
    """Returns how many openings of all calendars together began and ended between `since` and `now`."""
    missed, at = 0, since
    while calendars and missed < MOST_OPENINGS:
        opening = next_opening(calendars, at)
        period = opening_at(calendars, opening).period if opening is not None else None
        if period is None or period.end > now:
            break
        missed, at = missed + 1, period.end
    return missed


def closing_gate(run: UpdateRun) -> str:
    """Returns the gate that keeps a run from starting: the first one that is not open, time gates last; or ""."""
    closed = [gate.name for gate in run.status.gates if gate.state != "Open"]
    return next((name for name in closed if name not in _TIME_GATES), closed[0] if closed else "")


def is_warning(decision: RunDecision) -> bool:
    """Reports whether a decision is one that a person has to look at."""
    return decision.step == "Failed" or decision.reason in _WARNINGS


def outcome_of(run: UpdateRun) -> str:
    """Returns the outcome of a finished run: the reason of its last decision."""
    return run.status.decisions[-1].reason if run.status.decisions else run.status.step
