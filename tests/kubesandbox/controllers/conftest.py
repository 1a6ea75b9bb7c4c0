"""A cluster of an API server in this process and the controllers at work on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.controlplane.plane import ControlPlane
from tests.kubesandbox.controllers import real

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load
from kubesandbox import cluster as assembly
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.controllers.namespaces import ACCOUNTS
from kubesandbox.node.agent import NodeAgent
from kubesandbox.node.runners import ProcessRunner
from kubesandbox.node.settings import NodeSettings
from kubesandbox.node.unpacked_images import ImageStore

JSON = dict[str, Any]
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
# Cluster-scoped, without a separate controller.
CLASSES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)
DEADLINE_S = 90.0


def reference(owner: JSON, *, blocks: bool = False) -> JSON:
    """What makes `owner` an owner."""
    metadata = owner["metadata"]
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**found, "blockOwnerDeletion": True} if blocks else found


@dataclass
class Cluster:
    """Changes and queries the cluster for a test."""

    client: Client
    namespace: str = "default"

    async def create(
        self,
        name: str,
        *,
        resource: Resource = CONFIG_MAPS,
        owners: Sequence[JSON] = (),
        finalizers: Sequence[str] = (),
        namespace: str = "",
        **content: Any,
    ) -> JSON:
        """An object, by default a ConfigMap in the test's namespace."""
        metadata = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
        if resource.namespaced:
            metadata["namespace"] = namespace or self.namespace
        content |= {"value": 1} if resource == CLASSES else {}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
        return await self.client.send(calls.create(resource, body))

    async def delete(
        self,
        name: str,
        propagation: Any = "Background",
        *,
        resource: Resource = CONFIG_MAPS,
        namespace: str = "",
    ) -> None:
        """Ask for the object's end."""
        place = (namespace or self.namespace) if resource.namespaced else ""
        await self.client.send(calls.delete(resource, name, place, propagation=propagation))

    async def find(self, name: str, resource: Resource = CONFIG_MAPS, namespace: str = "") -> JSON | None:
        """The object, or None."""
        try:
            place = (namespace or self.namespace) if resource.namespaced else ""
            return await self.client.send(calls.get_raw(resource, name, place))
        except NotFound:
            return None

    async def release(self, name: str, *, resource: Resource = CONFIG_MAPS, namespace: str = "") -> None:
        """Remove the object's own finalizers `example.com/*`, whoever else changes it meanwhile."""
        while (found := await self.find(name, resource, namespace)) is not None:
            metadata = found["metadata"]
            left = [each for each in metadata.get("finalizers", ()) if not each.startswith("example.com/")]
            patch = {"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}}
            with contextlib.suppress(Conflict, NotFound):
                place = (namespace or self.namespace) if resource.namespaced else ""
                await self.client.send(calls.merge_patch(resource, name, patch, place))
                return

    async def until(
        self,
        holds: Callable[[JSON | None], Any],
        name: str,
        resource: Resource = CONFIG_MAPS,
        namespace: str = "",
    ) -> JSON:
        """The object once `holds` is true of it (or of None)."""
        found: JSON | None = None
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(found := await self.find(name, resource, namespace)):
                    await SystemClock().sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{resource} {name} stayed {found}") from None
        return found or {}

    async def until_gone(self, *names: str, resource: Resource = CONFIG_MAPS, namespace: str = "") -> None:
        """Wait until there are no such objects."""
        for name in names:
            await self.until(lambda found: found is None, name, resource, namespace)

    async def clear(self) -> None:
        """Remove what the test made in a cluster that outlives it."""
        for name in (self.namespace, "ns", "other", "new"):
            with contextlib.suppress(NotFound, Conflict):
                await self.delete(name, resource=NAMESPACES)
        for name in ("owner", "child", "class"):
            with contextlib.suppress(NotFound):
                await self.delete(name, resource=CLASSES)
        await self.until_gone("ns", "other", "new", resource=NAMESPACES)

    async def settled(self, resource: Resource = CONFIG_MAPS) -> None:
        """Wait until the garbage collector has worked off what was before: a canary and its owner are gone."""
        owner = await self.create("canary-owner", resource=resource)
        await self.create("canary", owners=[reference(owner)], resource=resource)
        await self.delete("canary-owner", resource=resource)
        await self.until_gone("canary-owner", "canary", resource=resource)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane | None]:
    """Kubernetes' own control plane where one is asked for (see `real`), shared by all tests."""
    if not real.PROGRAM:
        yield None
        return
    with real.real_plane(tmp_path_factory.mktemp("plane") / "data") as made:
        yield made


@contextlib.asynccontextmanager
async def ours(data: Path, *, node: bool) -> AsyncIterator[Cluster]:
    """Every controller of a sandbox; with `node` also one whose agent declares every pod ready."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(data=data))
        client = await stack.enter_async_context(Client(load(str(server.kubeconfig))))
        watched = assembly.Watched()
        if node:
            await _add_node(stack, client, watched, data)
        tasks = assembly.start_controllers(stack, client, watched, SystemClock())
        yield Cluster(client)
        await _end(tasks)


@contextlib.asynccontextmanager
async def theirs(plane: ControlPlane, *, node: bool) -> AsyncIterator[Cluster]:
    """A namespace of a real cluster, cleared up afterwards; with `node` as `ours`."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(load(str(plane.kubeconfig))))
        cluster = await stack.enter_async_context(namespace_of(client))
        tasks: list[asyncio.Task[Any]] = []
        if node:
            watched = assembly.Watched()
            await _add_node(stack, client, watched, plane.data)
            tasks = assembly.start_scheduler(client, watched, SystemClock())
        yield cluster
        await _end(tasks)


@contextlib.asynccontextmanager
async def namespace_of(client: Client) -> AsyncIterator[Cluster]:
    """A namespace of a test's own in a cluster that outlives it."""
    cluster = Cluster(client, f"test-{uuid4()}")
    await cluster.create(cluster.namespace, resource=NAMESPACES)
    await cluster.until(lambda found: found is not None, "default", ACCOUNTS)
    yield cluster
    await cluster.clear()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _add_node(stack: contextlib.AsyncExitStack, client: Client, watched: assembly.Watched, data: Path) -> None:
    place = NodeSettings(
        data=data,
        runner=ProcessRunner(),
        images=ImageStore(data / "images", "127.0.0.1:1"),
        server=client.config.server,
        ca=data / "pki" / "ca.crt",
    )
    agent = NodeAgent(client, watched.pods, place, SystemClock())
    stack.push_async_callback(agent.close)
    with contextlib.suppress(AlreadyExists):
        await client.send(calls.create(assembly.NODES, {"metadata": {"name": "node-0"}}))


@pytest.fixture
async def cluster(tmp_path: Path, plane: ControlPlane | None) -> AsyncIterator[Cluster]:
    """Without nodes: pods wait for one."""
    async with theirs(plane, node=False) if plane else ours(tmp_path / "data", node=False) as made:
        yield made


@pytest.fixture
async def cluster_with_node(tmp_path: Path, plane: ControlPlane | None) -> AsyncIterator[Cluster]:
    """With a node on which every pod is ready as soon as it is there."""
    async with theirs(plane, node=True) if plane else ours(tmp_path / "data", node=True) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client_of_all(tmp_path_factory: pytest.TempPathFactory, plane: ControlPlane | None) -> AsyncIterator[Client]:
    """The administrator of one cluster without nodes for all tests of a file: to start its controllers is dear."""
    if plane:
        async with Client(load(str(plane.kubeconfig))) as client:
            yield client
        return
    async with ours(tmp_path_factory.mktemp("shared") / "data", node=False) as made:
        yield made.client
