"""A rehearsed drain next to the real one, on seeded workloads: `python -m bench real_drains` has more seeds."""

from __future__ import annotations

import sys

import pytest
from bench.releases_world import events
from tests.realcluster.cluster import RealCluster
from tests.realcluster.drain_truth import Agreement, DrainTruth
from tests.realcluster.kube import Kube
from tests.realcluster.seeded_drain import SeededDrain

# In seed 2 two workloads compete for the last room on a node: a race (docs/how-to/drains.md).
SEEDS = (1,)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drain_goes_as_it_was_rehearsed(cluster: RealCluster, kube: Kube, python_image: str, seed: int) -> None:
    """The same pods are refused by the same budgets, the same wait for a place, in the scheduler's words."""
    agreement = Agreement()
    DrainTruth(cluster, kube, SeededDrain(seed, python_image)).compare(agreement)
    print(f"\n{agreement.pods} pods, {dict(agreement.same)}, seconds {agreement.seconds}", file=sys.stderr)
    assert agreement.pods
    assert agreement.different == []


def test_a_rehearsed_drain_only_reads(cluster: RealCluster, kube: Kube, python_image: str) -> None:
    """The API server's audit log has nothing else of it."""
    log = cluster.plane.audit_log
    since = log.stat().st_size
    DrainTruth(cluster, kube, SeededDrain(1, python_image)).rehearsed()
    ours = [event for event in events(log, since) if event["userAgent"].startswith("runup")]
    assert ours
    assert {event["verb"] for event in ours} <= {"get", "list"}
