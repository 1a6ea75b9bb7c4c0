"""The rehearsal that a preflight in a cluster starts: its process, its answer, and its limit of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, STATUS
from tests.servers import CLUSTER_VERSIONS, Server, serve

from kubekit.kube import calls
from runup.checks.decide.engine import CheckOutcome
from runup.preflight.control.rehearsal_process import RehearsalOrder, RehearsalProcess

# Each starts a process that reads a cluster and applies a release.
pytestmark = pytest.mark.slow
RELEASE = Path(__file__).parents[3] / "examples" / "rehearsal" / "release"


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose ClusterVersion runs 5.0.0, and which has nothing else of a release."""
    servers = serve(tmp_path_factory.mktemp("updated"), "Default")
    server = next(servers)
    server.client.send(calls.create(CLUSTER_VERSIONS, CLUSTER_VERSION))
    server.client.send(calls.merge_patch(CLUSTER_VERSIONS, "version", {"status": STATUS}, subresource="status"))
    yield server
    servers.close()


async def rehearsed(server: Server, memory_mib: int) -> tuple[CheckOutcome, ...]:
    """The outcomes of a rehearsal that may have that much memory."""
    order = RehearsalOrder(
        str(RELEASE), kubeconfig=str(server.kubeconfig), namespace="openshift-cluster-version", memory_mib=memory_mib
    )
    process = RehearsalProcess(order, 240.0, lambda: None)
    await process.run()
    return process.outcomes or ()


async def test_the_outcomes_of_a_rehearsal(updated: Server) -> None:
    """They are those of the command: nobody defines the kind of the release's ClusterOperator here."""
    outcomes = await rehearsed(updated, 0)
    names = {finding.name for outcome in outcomes for finding in outcome.findings}
    assert "RehearsalKindNotServed-ClusterOperator-b" in names
    assert {outcome.check.name for outcome in outcomes} >= {"RehearsalApply", "RehearsalStoredObjects"}


async def test_a_copy_that_needs_more_memory(updated: Server) -> None:
    """The process ends by itself at its limit, and what follows is Unknown."""
    (outcome,) = await rehearsed(updated, 10)
    assert "needs more than the 10 MiB that it may have; raise `memoryLimit`" in outcome.message
