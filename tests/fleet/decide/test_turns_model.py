"""The model of a stage with many seeds: never more updates in progress than the concurrency, and all of them end."""

from __future__ import annotations

import pytest
from tests.fleet.decide.turns_world import Model

from kubekit.api.conditions import find

MINUTES = 24 * 60


def play(seed: int) -> tuple[bool, str, set[str]]:
    """Whether the concurrency was exceeded, the reason of Failed, and the steps in which the runs ended."""
    model = Model(seed)
    for _ in range(MINUTES):
        model.minute()
        stage = model.fleet.status.stages[0] if model.fleet.status.stages else None
        if stage is not None and stage.phase == "Over":
            break
    failed = find(model.fleet.status.conditions, "Failed")
    steps = {each.run.status.step for each in model.clusters.values() if each.run is not None}
    return model.most > model.concurrency, failed.reason if failed else "", steps


@pytest.mark.parametrize("seed", range(3))
def test_55a_never_exceeds_the_concurrency(seed: int) -> None:
    """Gates that close while a turn exists, and agents that disconnect, never let one update too many begin."""
    assert play(seed) == (False, "AsExpected", {"Done"})


@pytest.mark.slow
def test_55a_never_exceeds_the_concurrency_with_many_seeds() -> None:
    """As above, with more seeds than anybody would look at."""
    assert {seed: found for seed in range(3, 103) if (found := play(seed)) != (False, "AsExpected", {"Done"})} == {}
