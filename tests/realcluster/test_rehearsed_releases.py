"""A rehearsed release next to the real one, on real nodes: `python -m bench real_releases` has more seeds."""

from __future__ import annotations

import pytest
from tests.realcluster import release_truth
from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube
from tests.realcluster.release_truth import Agreement
from tests.rehearse.reference.seeded_release import seeded_release

SEEDS = (1,)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_release_goes_as_it_was_rehearsed(cluster: RealCluster, kube: Kube, seed: int) -> None:
    """The same objects are refused in the same words, the same fields of the others change, and they stay so."""
    agreement = Agreement()
    release_truth.compare(cluster, kube, seeded_release(seed), agreement)
    assert min(agreement.verdicts["refused"], agreement.verdicts["changed"]) > 1, agreement.verdicts
    assert (agreement.different, agreement.not_known) == ([], [])
