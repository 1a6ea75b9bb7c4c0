"""The Deployment controller as far as the operator relies on it: it observes each spec, and there are the pods.

No pod is made. What a test says of a Deployment's status stays: only a generation that nobody has observed is observed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeDeployment
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.watch import Reflector
from runup.preflight.decide import preflight_deployment
from runup.process.leader_election import cancel

DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)


@asynccontextmanager
async def deployment_controller(client: Client, but: Sequence[str]) -> AsyncGenerator[None]:
    """Rolls out every Deployment but the preflight's and those of the names in `but`."""
    cache: Cache[WholeDeployment] = Cache(WholeDeployment)
    changed: asyncio.Queue[NamespacedName] = asyncio.Queue()

    def heard(_change: object, _old: WholeDeployment | None, new: WholeDeployment | None) -> None:
        if new is not None and new.metadata.name not in (preflight_deployment.NAME, *but):
            changed.put_nowait(key_of(new))

    cache.add_listener(heard)
    watching = Reflector(client, WholeDeployment, cache, clock=SystemClock(), resource=DEPLOYMENTS)
    tasks = [asyncio.create_task(watching.run()), asyncio.create_task(_observe(client, cache, changed))]
    try:
        yield
    finally:
        await cancel(tasks)


async def _observe(client: Client, cache: Cache[WholeDeployment], changed: asyncio.Queue[NamespacedName]) -> None:
    while True:
        key = await changed.get()
        found = cache.get(key)
        if found is None or found.status.observed_generation >= found.metadata.generation:
            continue
        status = {"observedGeneration": found.metadata.generation, "replicas": found.spec.replicas}
        patch = calls.merge_patch(DEPLOYMENTS, key.name, {"status": status}, key.namespace, subresource="status")
        try:
            await client.send(patch)
        except NotFound:
            continue  # deleted in between
