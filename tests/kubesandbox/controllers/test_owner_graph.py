"""Which kinds are followed, and when what is known about them is all there is."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.servers import CRD, api_server, eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import load
from kubesandbox import cluster as assembly
from kubesandbox.controllers.owner_graph import Graph
from kubesandbox.tasks import cancel_tasks

WIDGETS = Resource(group="example.org", version="v1", kind="Widget", plural="widgets", namespaced=True)
DEFINITION: dict[str, Any] = {
    "metadata": {"name": WIDGETS.name},
    "spec": {
        "group": WIDGETS.group,
        "names": {"kind": WIDGETS.kind, "plural": WIDGETS.plural, "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def served(client: SyncClient) -> bool:
    """Whether the kind can be listed."""
    try:
        client.send(calls.list_raw(WIDGETS))
    except NotFound:
        return False
    return True


@pytest.mark.slow
async def test_a_kind_that_goes_before_it_was_listed_is_waited_for_no_more(tmp_path: Path) -> None:
    """Else nothing would be collected, and no namespace emptied, ever after."""
    with api_server(tmp_path / "data") as path, SyncClient(load(str(path))) as admin:
        admin.send(calls.create(CRD, DEFINITION))
        eventually(lambda: served(admin), "widgets are served")
        async with Client(load(str(path))) as client:
            graph = Graph(client, SystemClock())
            try:
                await graph.discover()
                assert WIDGETS in graph.caches
                ready = asyncio.create_task(graph.until_ready())
                # Without a pause: nothing else runs in this loop until the kind is gone.
                admin.send(calls.delete(CRD, WIDGETS.name))
                eventually(lambda: not served(admin), "widgets are served no more")
                others = [cache for resource, cache in graph.caches.items() if resource != WIDGETS]
                async with asyncio.timeout(90):
                    await asyncio.gather(*(cache.until_synced() for cache in others))
                assert not ready.done()
                await graph.discover()
                assert WIDGETS not in graph.caches
                async with asyncio.timeout(90):
                    await ready
            finally:
                await graph.close()


@pytest.mark.slow
async def test_a_kind_that_comes_is_followed_without_a_pause(tmp_path: Path) -> None:
    """A namespace could be removed otherwise while it has objects of that kind. No pause ends here."""
    log = tmp_path / "data" / "audit.log"

    async def followed(plural: str) -> None:
        async with asyncio.timeout(90):
            while not any(f"/{plural}?" in line and '"verb":"watch"' in line for line in log.open()):  # noqa: ASYNC110 -- a file
                await asyncio.sleep(0.02)

    with api_server(tmp_path / "data") as path:
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(load(str(path))))
            tasks = assembly.start_controllers(stack, client, assembly.Watched(), ManualClock())
            stack.push_async_callback(cancel_tasks, tasks)
            await followed(CRD.plural)
            await client.send(calls.create(CRD, DEFINITION))
            await followed(WIDGETS.plural)
