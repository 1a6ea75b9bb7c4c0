"""The looks of `--wait` at a ClusterVersion whose server has forgotten every version that it gives."""

from __future__ import annotations

import asyncio
from itertools import islice

from aiohttp import web
from tests.kubekit.kube.apiscript import failure, reply, scripted_api

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.api.config_v1 import ClusterVersion
from runup.clusterversion.control.upgrade_wait import changes

READS = 5


async def test_a_version_that_is_gone_at_once_is_asked_for_at_intervals() -> None:
    """The first is read again at once; from then on a second uses between two reads."""
    body = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    body["metadata"]["resourceVersion"] = "7"  # type: ignore[index]

    async def handler(request: web.Request) -> web.StreamResponse:
        return await (failure(410, "Expired") if "watch" in request.query else reply(body))(request)

    clock = ManualClock()
    start = ClusterVersion(metadata=ObjectMeta(name="version", resource_version="1"))
    async with scripted_api() as api:
        api.answers(handler)
        with SyncClient(ClusterConfig(server=api.url), clock=clock) as client:
            looks = (look for look in changes(client, start, clock) if look.cluster is not None)
            before = clock.monotonic()
            # The start, and so many reads.
            found = await asyncio.to_thread(lambda: list(islice(looks, READS + 1)))
            assert [look.cluster.metadata.resource_version for look in found if look.cluster] == ["1"] + READS * ["7"]
            assert clock.monotonic() - before == READS - 1
