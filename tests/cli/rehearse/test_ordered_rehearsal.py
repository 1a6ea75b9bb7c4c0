"""The rehearsal that a preflight in a cluster starts: its process, its answer, its errors, and its limit of memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, STATUS
from tests.servers import CLUSTER_VERSIONS, Server, serve

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from runup.checks.decide.engine import CheckOutcome
from runup.target.rehearsal_process import RehearsalOrder, RehearsalProcess

# Each starts a process that reads a cluster and applies a release.
pytestmark = pytest.mark.slow
GONE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "gone",
        "namespace": "default",
        "annotations": {
            "include.release.openshift.io/self-managed-high-availability": "true",
            "release.openshift.io/delete": "true",
        },
    },
}
RELEASE = Path(__file__).parents[3] / "examples" / "rehearsal" / "release"


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose ClusterVersion runs 5.0.0, and which has nothing else of a release, or what must go."""
    servers = serve(tmp_path_factory.mktemp("updated"), "Default")
    server = next(servers)
    server.client.send(calls.create(CLUSTER_VERSIONS, CLUSTER_VERSION))
    server.client.send(calls.merge_patch(CLUSTER_VERSIONS, "version", {"status": STATUS}, subresource="status"))
    server.client.send(calls.create(resource_of(ConfigMap), GONE))
    yield server
    servers.close()


async def rehearsed(kubeconfig: Path, memory_mib: int, release: Path = RELEASE) -> tuple[CheckOutcome, ...]:
    """The outcomes of a rehearsal that may have that much memory."""
    order = RehearsalOrder(release_dir=str(release), kubeconfig=str(kubeconfig), memory_mib=memory_mib)
    process = RehearsalProcess(order, 240.0, lambda: None)
    await process.run()
    return process.outcomes or ()


async def test_the_outcomes_of_a_rehearsal(updated: Server, tmp_path: Path) -> None:
    """They are those of the command: nobody defines the kind of the release's ClusterOperator here.

    That the release deletes something, of which an operator writes to its log, is no part of them.
    """
    release = tmp_path / "release"
    shutil.copytree(RELEASE, release)
    (release / "release-manifests" / "0000_25_gone.yaml").write_text(json.dumps(GONE))
    outcomes = await rehearsed(updated.kubeconfig, 0, release)
    names = {finding.name for outcome in outcomes for finding in outcome.findings}
    assert "RehearsalKindNotServed-ClusterOperator-b" in names
    assert {outcome.check.name for outcome in outcomes} >= {"RehearsalApply", "RehearsalStoredObjects"}


@pytest.mark.parametrize("memory_mib", [10, 64])
async def test_a_copy_that_needs_more_memory(memory_mib: int, updated: Server) -> None:
    """The process ends by itself at its limit, whatever it is about to do there, and what follows is Unknown."""
    (outcome,) = await rehearsed(updated.kubeconfig, memory_mib)
    assert f"needs more than the {memory_mib} MiB that it may have; raise `memoryLimit`" in outcome.message


ERRORS = {
    "a kubeconfig that is not there": (None, "kubeconfig: no such file or directory"),
    "nobody at the address": (
        "https://127.0.0.1:1",
        "its process ended with code 1: could not reach https://127.0.0.1:1",
    ),
}


@pytest.mark.parametrize(("address", "shown"), ERRORS.values(), ids=ERRORS)
async def test_what_is_told_of_an_error(address: str | None, shown: str, tmp_path: Path) -> None:
    """One line that says what is wrong, without the name of a class."""
    kubeconfig = tmp_path / "kubeconfig"
    if address:
        cluster = {"name": "c", "cluster": {"server": address}}
        context = {"name": "c", "context": {"cluster": "c", "user": ""}}
        kubeconfig.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "c"}))
    (outcome,) = await rehearsed(kubeconfig, 0)
    assert shown in outcome.message
    assert "kubekit." not in outcome.message
