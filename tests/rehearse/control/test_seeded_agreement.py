"""Seeded releases on a cluster and on its copy: the same are refused, and the same changes (`bench rehearsals`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.controlplane.rows import SERVERS
from tests.rehearse.control.test_as_the_server_has_it import cluster_on
from tests.rehearse.reference.beside_the_server import Agreement, compare
from tests.rehearse.reference.seeded_release import seeded_release
from tests.rehearse.rehearsed_world import CLUSTER_VERSION

from kubekit.kube import calls

# Each applies a dozen objects four times.
pytestmark = pytest.mark.slow
SEEDS = (2, 7)


@pytest.mark.parametrize("server", SERVERS)
async def test_the_copy_judges_as_the_cluster(server: str, tmp_path: Path) -> None:
    """Whatever the release brings, the copy refuses it if the cluster does, and what changes is the same."""
    agreement = Agreement()
    async with cluster_on(server, tmp_path) as cluster:
        found = await cluster.client.send(calls.get_raw(await cluster.resource(CLUSTER_VERSION), "version"))
        for seed in SEEDS:
            await compare(cluster, seeded_release(seed), agreement, found["metadata"]["uid"])
    counts = {what: (agreement.same[what], agreement.asked[what]) for what in ("the same verdict", "changed alike")}
    assert all(same == asked > 0 for same, asked in counts.values()), agreement.different
    assert agreement.asked["the same verdict"] == 12 * len(SEEDS)
