"""The gates before and after a stage of a fleet update, each at its limit. Numbers are those of the cases."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.rollout.observed_cluster import IMAGE, NIGHTS, NOW, approval

from runup.api.fleet_update_v1alpha1 import FleetTarget, StageGate
from runup.rollout.decide.stage_gates import evaluate_stage_gates

TARGET = FleetTarget(version="5.1.0", image=IMAGE)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
SOAK = StageGate(type="Soak", for_="1h")


@pytest.mark.parametrize(
    ("gate", "since", "state"),
    [
        pytest.param(SOAK, None, "Closed", id="38: too few clusters are done"),
        pytest.param(SOAK, NOW - HOUR + SECOND, "Closed", id="38: a second is left"),
        pytest.param(SOAK, NOW - HOUR, "Open", id="38: soaked"),
        pytest.param(StageGate(type="NotBefore", at=NOW + SECOND), None, "Closed", id="a second before"),
        pytest.param(StageGate(type="NotBefore", at=NOW), None, "Open", id="at the time"),
        pytest.param(StageGate(type="Approval", name="cab"), None, "Open", id="38: approved"),
        pytest.param(StageGate(type="Approval", name="cab", count=2), None, "Closed", id="38: by one of two"),
        pytest.param(StageGate(type="Approval", name="storage"), None, "Closed", id="38: not approved"),
        pytest.param(StageGate(type="Calendar", name="nights"), None, "Open", id="a window is open"),
        pytest.param(StageGate(type="Calendar", name="days"), None, "Unknown", id="the calendar does not exist"),
    ],
)
def test_the_gate_of_a_stage(gate: StageGate, since: datetime | None, state: str) -> None:
    """Only what is known lets clusters of the stage start."""
    [found] = evaluate_stage_gates((gate,), TARGET, (approval(),), {"nights": NIGHTS}, soaking_since=since, now=NOW)
    assert found.state == state
