"""The explanation of the next two weeks agrees with what the gates then do. Case 46."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from tests.rollout.decide.test_run_steps import run_of, situation
from tests.rollout.observed_cluster import NIGHTS, NOW, observed, parsed_calendar

from runup.rehearse.decide.update_forecast import Forecast, Range
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.explain import AHEAD, explain
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Holds, Observed
from runup.rollout.decide.gates.permission import evaluate_forecast, evaluate_holds, evaluate_window
from runup.rollout.decide.run_steps import decide

STEP = timedelta(minutes=30)
STEPS = AHEAD // STEP


@pytest.mark.parametrize(
    ("calendars", "hours", "first"),
    [
        pytest.param((NIGHTS,), 2, 2, id="a pause ends in the middle of a window"),
        pytest.param((NIGHTS,), 5, 47, id="a pause ends with the window"),
        pytest.param((), 2, 2, id="a pause ends, and updates may start at any time"),
    ],
)
def test_46_a_start_after_a_pause(calendars: tuple[Calendar, ...], hours: int, first: int) -> None:
    """The first start is not the next opening, but the end of the pause; the window of `NOW` has 5 hours left."""
    names = tuple(each.name for each in calendars) or ("Always",)
    holds = Holds(paused_until=NOW + timedelta(hours=hours))
    explanation = explain(observed(calendars=calendars, calendar_names=names, holds=holds), NOW)
    assert (explanation.open_now, explanation.first) == (False, NOW + timedelta(hours=first))


def test_46_a_pause_without_an_end() -> None:
    """No opening is one at which the update starts."""
    explanation = explain(observed(holds=Holds(paused=True, paused_until=NOW + timedelta(hours=1))), NOW)
    assert (explanation.first, {each.closed[0].reason for each in explanation.openings}) == (None, {"Held"})


def test_46_a_duration_that_is_not_known() -> None:
    """Unknown is not open: no opening is one at which the update starts."""
    explanation = explain(observed(forecast=Forecast(total=Range(60, 60), parts=(), guessed=True)), NOW)
    assert (explanation.first, {each.closed[0].reason for each in explanation.openings}) == (None, {"FitUnknown"})


def schedule(rng: random.Random) -> Observed:
    """Calendars, freezes, pauses and forecasts, all of whose times are multiples of `STEP`."""
    calendars = []
    for _ in range(rng.choice([1, 1, 2])):
        windows = []
        for _ in range(rng.randint(1, 3)):
            days = rng.choice(["*", "TUE,THU", "SAT", "SUN#1", "MON-FRI"])
            length = rng.choice([1, 3, 8, 12])
            remaining = rng.choice(["0s", "30m"])
            opens = f"{rng.choice([0, 30])} {rng.randrange(24)} * * {days}"
            windows.append({"opens": opens, "for": f"{length}h", "minRemaining": remaining})
        start = NOW.date() + timedelta(days=rng.randrange(10))
        freeze = {"from": f"{start}T{rng.randrange(24):02}:30", "to": f"{start + timedelta(days=rng.randint(1, 4))}"}
        zone = rng.choice(["Europe/Berlin", "UTC", "America/New_York"])
        calendars.append(parsed_calendar(*windows, zone=zone, freezes=[freeze] if rng.random() < 0.5 else []))
    low = rng.choice([60, 3000, 10000])
    total = Range(low, rng.choice([low, low * 2, None]))

    holds = Holds(paused_until=NOW + rng.randrange(STEPS // 2) * STEP if rng.random() < 0.5 else None)
    return observed(
        calendars=tuple(calendars), holds=holds, forecast=Forecast(total=total, parts=(), guessed=rng.random() < 0.1)
    )


def start_of(seen: Observed) -> datetime | None:
    """When a run that is evaluated in each step commits its update; the gates that are not about time are open."""
    for number in range(STEPS):
        now = NOW + number * STEP
        if any(each.open_at(now) is None for each in seen.calendars):
            continue
        gates: list[Gate] = []
        for evaluated in (evaluate_holds, evaluate_window, evaluate_forecast):
            gate = evaluated(seen, now)
            gates += [gate] if gate is not None else []
            if gates[-1].state != "Open":
                break
        committing = decide(run_of(), situation(verdict=Verdict(tuple(gates))), now).status
        if committing.step == "Committing":
            return now
    return None


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_46_explains_random_schedules() -> None:
    """In 100 schedules the explained start is the one at which the update begins."""
    starts = []
    for seed in range(100):
        seen = schedule(random.Random(seed))
        expected = start_of(seen)
        first = explain(seen, NOW).first
        assert (first if first is not None and first < NOW + AHEAD else None) == expected, seed
        starts.append(expected)
    # The schedules differ: some never start, some start at once, most later.
    assert starts.count(None) > 5
    assert len(set(starts)) > 30
