"""Events about ClusterVersion: which kind, under which reason, and each of them once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.clusterversion.decide.world import World, risk

from runup.api.config_v1 import Update


def _completes(world: World) -> None:
    world.ask_preflight("5.2.0").settle().report(risk("PoolPaused"))


def _fails(world: World) -> None:
    world.ask_preflight("5.2.0").settle().report(execution_status="failed", message="boom")


def _is_refused(world: World) -> None:
    world.ask(Update(version="5.1.0"))


def _is_accepted(world: World) -> None:
    world.ask(Update(version="5.0.3"))


@pytest.mark.parametrize(
    ("happens", "kind", "reason", "condition"),
    [
        pytest.param(_completes, "Normal", "PreflightCompleted", "PreflightCompleted", id="a preflight completes"),
        pytest.param(_fails, "Warning", "PreflightFailed", "PreflightFailed", id="a preflight fails"),
        pytest.param(_is_refused, "Warning", "UnacceptedRisks", "ReleaseAccepted", id="an update is refused"),
        pytest.param(_is_accepted, "Normal", "PayloadLoaded", "ReleaseAccepted", id="an update is accepted"),
    ],
)
def test_what_is_told(happens: Callable[[World], None], kind: str, reason: str, condition: str) -> None:
    """Events about a release use the reason of ReleaseAccepted, those of a preflight the name of its condition."""
    world = World.new().settle()
    before = len(world.events)
    happens(world)
    world.settle().pass_time(61).settle()
    (shown,) = world.events[before:]
    assert (shown.type, shown.reason, shown.message) == (kind, reason, world.message(condition))
