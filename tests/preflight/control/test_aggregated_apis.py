"""An API whose server is down is there, and cannot be read: what checks ask of it is Unknown, not absent.

A kube-apiserver names it in `/apis` all the same, on which the target relies. The sandbox's serves no such APIs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.servers import api_server

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig, load
from kubekit.kube.watch import FirstReads
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.model import Snapshot
from runup.facts.watched_kinds import WatchedKinds
from runup.process.read_only_client import ReadOnlyClient

VERSIONS = resource_of(ClusterVersion)
API_SERVICES = Resource(
    group="apiregistration.k8s.io", version="v1", kind="APIService", plural="apiservices", namespaced=False
)
DOWN = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": f"{VERSIONS.version}.{VERSIONS.group}"},
    "spec": {
        "group": VERSIONS.group,
        "version": VERSIONS.version,
        "groupPriorityMinimum": 1000,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": "nobody"},
        "insecureSkipTLSVerify": True,
    },
}
DEADLINE_S = 60


@pytest.fixture(params=SERVERS)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, ClusterConfig]]:
    """Each server, and its administrator."""
    if request.param == "sandbox":
        with api_server(tmp_path / "data") as kubeconfig:
            yield request.param, load(str(kubeconfig))
    else:
        with ControlPlane(tmp_path, programs()) as plane:
            yield request.param, load(str(plane.kubeconfig))


@pytest.mark.slow
async def test_an_api_whose_server_is_down_is_not_absent(server: tuple[str, ClusterConfig]) -> None:
    """What no server has is; both as the target's first reads find it."""
    name, config = server
    assert (await _read(config)).absent == {VERSIONS}
    if name == "sandbox":
        return
    async with Client(config) as admin, asyncio.timeout(DEADLINE_S):
        await admin.send(calls.create(API_SERVICES, DOWN))
        while await FirstReads(SystemClock(), admin).lacks(VERSIONS):  # noqa: ASYNC110 -- the server tells nobody
            await asyncio.sleep(0.05)
    found = await _read(config)
    assert found.absent == frozenset()
    assert "503" in found.unreadable[VERSIONS] or "unavailable" in found.unreadable[VERSIONS]


async def _read(config: ClusterConfig) -> Snapshot:
    """What the first reads of a target that has just been started have come to."""
    shown, clock = asyncio.Event(), SystemClock()
    async with ReadOnlyClient(config, namespace="own") as client:
        reads = WatchedKinds(client, [VERSIONS], clock=clock, changed=shown.set, first_reads=FirstReads(clock, client))
        running = asyncio.create_task(reads.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not reads.caches[VERSIONS].error:
                    await shown.wait()
                    shown.clear()
            return reads.snapshot()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
