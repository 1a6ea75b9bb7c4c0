"""The risk for a preflight whose result is not known yet."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runup.api.config_v1 import Release
from runup.preflight.decide.published_risks import CheckedTarget, evaluated_risks

UNTIL = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAITS = "An update waits for the preflight to finish, until 2026-03-01T12:00:00Z at the latest."


@pytest.mark.parametrize(
    ("state", "holds_up"),
    [
        ({"running": "It runs."}, True),
        ({"running": "It runs.", "waits": False}, False),
        ({"stale": "It is old."}, True),
        ({"failed": "It failed."}, False),
    ],
    ids=["runs", "runs beyond its time limit", "is stale", "failed"],
)
def test_an_update_waits_only_for_a_preflight_that_holds_it_up(state: dict[str, object], *, holds_up: bool) -> None:
    """The message names the time only where the risk holds up an update."""
    checked = CheckedTarget(release=Release(version="5.1.0"), source_version="5.0.0", until=UNTIL, **state)  # type: ignore[arg-type]
    (risk,) = evaluated_risks(checked)
    assert risk.holds_up is holds_up
    assert (WAITS in risk.applies.message) is holds_up
