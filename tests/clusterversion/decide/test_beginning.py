"""A ClusterVersion without history, new or recreated: what the cluster's operators say about it, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.clusterversion.decide.world import OWN, World, image
from tests.factories import cluster_operator

from kubekit.api.conditions import find
from runup.api.config_v1 import ClusterOperator, Release

WELL = {"Available": "True", "Progressing": "False", "Failing": "False"}
NOTHING = {"Available": None, "Progressing": None, "Failing": None}


@pytest.mark.parametrize(
    ("operators", "error", "state", "expected"),
    [
        pytest.param((cluster_operator(), cluster_operator("dns")), "", "Completed", WELL, id="all of them are at it"),
        pytest.param((), "", "Partial", NOTHING, id="there is none yet"),
        pytest.param(None, "not allowed", "Partial", NOTHING, id="they cannot be listed"),
        pytest.param((cluster_operator(),), "cut off", "Partial", NOTHING, id="what is known of them is old"),
        pytest.param(
            (cluster_operator(), cluster_operator("dns", version="4.21.0")), "", "Partial", NOTHING, id="one is behind"
        ),
        pytest.param((cluster_operator(progressing="True"),), "", "Partial", NOTHING, id="one is still busy"),
        pytest.param((cluster_operator(progressing=None),), "", "Partial", NOTHING, id="one does not say"),
        pytest.param((cluster_operator(available="False"),), "", "Partial", NOTHING, id="one is down"),
    ],
)
def test_a_history_that_begins(
    operators: tuple[ClusterOperator, ...] | None, error: str, state: str, expected: dict[str, Any]
) -> None:
    """Completed, with the conditions of that, where every operator says so; a second look changes nothing."""
    world = World.new(conditions=(), history=())
    world.observed = replace(world.observed, operators=operators, operators_error=error)
    status = world.settle().observed.cluster_version.status
    (entry,) = status.history
    assert (entry.version, entry.image, entry.state) == ("5.0.0", OWN, state)
    assert (entry.completion_time is not None) == (state == "Completed")
    found = {name: find(status.conditions, name) for name in expected}
    assert {name: condition.status if condition else None for name, condition in found.items()} == expected


def test_what_was_not_known_at_the_beginning_is_not_claimed_later() -> None:
    """An operator that was behind has come after: who brought it there, nobody knows."""
    world = World.new(conditions=(), history=())
    world.observed = replace(world.observed, operators=(cluster_operator(version="4.21.0"),))
    world.settle()
    world.observed = replace(world.observed, operators=(cluster_operator(),))
    (entry,) = world.settle().observed.cluster_version.status.history
    assert (entry.state, entry.completion_time) == ("Partial", None)


@pytest.mark.parametrize(("version", "state"), [("5.0.0", "Completed"), ("4.21.0", "Partial")])
def test_a_history_that_somebody_removed(version: str, state: str) -> None:
    """That another release was desired proves nothing: the cluster's operators say whether it is at this one."""
    world = World.new(conditions=(), history=(), desired=Release(version="5.0.3", image=image("5.0.3")))
    world.observed = replace(world.observed, operators=(cluster_operator(version=version),))
    (entry,) = world.settle().observed.cluster_version.status.history
    assert (entry.version, entry.state, entry.completion_time is not None) == ("5.0.0", state, state == "Completed")


def test_what_somebody_else_said_stays() -> None:
    """Conditions that are there are not written over."""
    world = World.new(history=())
    before = find(world.observed.cluster_version.status.conditions, "Progressing")
    world.observed = replace(world.observed, operators=(cluster_operator(),))
    status = world.settle().observed.cluster_version.status
    assert find(status.conditions, "Progressing") == before
