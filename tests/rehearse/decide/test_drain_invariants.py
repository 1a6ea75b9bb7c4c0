"""What must hold for the drains of any cluster: clusters from seeds, of every kind of constraint."""

from __future__ import annotations

from random import Random

import pytest
from tests.rehearse.drain_invariants import faults, random_cluster, random_settings

COUNT = 40


@pytest.mark.parametrize("seed", range(8))
def test_holds_for_random_clusters(seed: int) -> None:
    """No exception; remove and add leave every filter as it was; no pod is lost; no budget is exceeded.

    `python -m bench fuzz_drains` tries as many others as there is time for.
    """
    for number in range(COUNT):
        random = Random(f"{seed}/{number}")
        assert faults(random_cluster(random), random_settings(random)) == [], f"seed {seed}/{number}"
