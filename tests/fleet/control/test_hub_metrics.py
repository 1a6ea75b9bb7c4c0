"""The metrics of fleet updates: counts, the fuse, and permits only where they should be renewed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.decide.fleet_updates import at, clusters, fleet_update, observed, run

from runup.fleet.control.hub_metrics import Metrics
from runup.fleet.decide.hub_update.stages import HubObserved, decide

RUNNING = {"name": "canary", "phase": "Running", "round": 1, "permitUntil": "2026-11-30T11:00:00Z"}
LABELS = {"fleet_update": "five-one", "stage": "canary"}


@pytest.mark.parametrize(
    ("spec", "step", "blown", "valid_s"),
    [
        ({}, "Waiting", 0, 2400),
        ({}, "Failed", 1, None),
        ({"control": "Hold"}, "Waiting", 0, None),
        ({"mutexes": [{"label": "rack"}]}, "Waiting", 0, None),
    ],
)
def test_shows_what_alerts_need(spec: dict[str, Any], step: str, blown: int, valid_s: float | None) -> None:
    """A permit that ended on purpose is not one that was not renewed."""
    fleet = fleet_update(status={"stages": [RUNNING]}, **spec)
    seen = HubObserved(clusters=clusters("a"), stages=[observed(("a",), {"a": run(step)})])
    outcome = decide(fleet, seen, at("10:20"))
    metrics = Metrics()
    metrics.observe({"five-one": outcome.status}, at("10:20"))
    value = metrics.registry.get_sample_value
    assert value("runup_fleet_update_fuse_blown", {"fleet_update": "five-one"}) == blown
    assert value("runup_fleet_permit_valid_seconds", LABELS) == valid_s
    state = "failed" if step == "Failed" else "ready"
    assert value("runup_fleet_update_clusters", {**LABELS, "state": state}) == 1
    metrics.observe({}, at("10:20") + timedelta(minutes=1))
    assert value("runup_fleet_update_clusters", {**LABELS, "state": state}) is None
