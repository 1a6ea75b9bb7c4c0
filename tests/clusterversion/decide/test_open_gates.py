"""Gates that are open for the operator alone: what the FeatureGate says, or its absence, does not close them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.clusterversion.decide.world import World
from tests.factories import feature_gate

GATES = frozenset({"ClusterUpdatePreflight", "ClusterUpdateAcceptRisks"})


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(None, id="no FeatureGate, as in a dump that has none"),
        pytest.param(feature_gate(enabled=("Other",)), id="a FeatureGate that closes them"),
        pytest.param(feature_gate(enabled=tuple(GATES), version="4.9.0"), id="no entry for the running version"),
    ],
)
def test_a_preflight_starts(said: Any) -> None:
    """And the FeatureGate stays what it is."""
    world = World.new()
    facts = replace(world.observed.facts, gates=GATES)
    world = world.change(feature_gate=said, facts=facts).settle().ask_preflight().settle()
    assert world.observed.deployment is not None
    assert world.condition("PreflightFailed") != ("True", "InvalidRequest")
    assert world.observed.feature_gate == said
