"""Kinds that a cluster lacks: asked for ever more seldom, and at once when their definition appears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.operator.operator_world import any_crd

from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterVersion
from runup.facts.watched_kinds import WatchedKinds
from runup.process.read_only_client import ReadOnlyClient

DEADLINE_S = 90


async def test_a_definition_ends_the_wait_for_its_kind(tmp_path: Path) -> None:
    """The clock stands: nothing but the definition can end it. Another kind's definition does not."""
    definitions, versions = resource_of(CustomResourceDefinition), resource_of(ClusterVersion)
    clock, notified = ManualClock(), asyncio.Event()
    async with ApiServer(tmp_path / "data") as server:
        config = load(str(server.kubeconfig))
        async with Client(config) as admin, ReadOnlyClient(config, namespace="own") as client:
            reads = WatchedKinds(client, [definitions, versions], clock=clock, changed=notified.set)
            running = asyncio.create_task(reads.run())
            try:
                await _until(notified, lambda: reads.snapshot().absent == {versions})
                await _until(notified, lambda: definitions in reads.snapshot().objects)
                await clock.until_sleeping()
                waits = clock.sleeping
                await admin.send(calls.create(definitions, any_crd("Proxy", "proxies")))
                await _until(notified, lambda: len(reads.snapshot().objects[definitions]) == 1)
                assert (clock.sleeping, reads.snapshot().absent) == (waits, {versions})
                await admin.send(calls.create(definitions, any_crd("ClusterVersion", "clusterversions")))
                await _until(notified, lambda: reads.snapshot().objects.get(versions) == ())
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


async def _until(notified: asyncio.Event, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            notified.clear()
            await notified.wait()
