"""A cluster for the update status controller, on the sandbox's API server in this process: small and healthy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import programs
from tests.documents import documents
from tests.factories import node_json

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call
from kubesandbox.apiserver.server import ApiServer
from runup.api.update_v1alpha1 import NAME, UpdateStatus, UpdateStatusStatus
from runup.sandbox import crds

JSON = dict[str, Any]
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
STATUSES = resource_of(UpdateStatus)
NODES = resource_of(Node)
PODS = resource_of(Pod)
DEADLINE_S = 90.0
SINCE = "2026-11-21T06:00:00Z"
MC = "machineconfiguration.openshift.io"


def condition(type_: str, status: str, reason: str = "AsExpected", message: str = "fine") -> JSON:
    """A condition that has held since SINCE."""
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def node(name: str, role: str = "worker", **annotations: str) -> JSON:
    """A ready node at 5.0.0; `annotations` are the machine-config daemon's."""
    daemon = {"currentConfig": f"rendered-{role}-old", "desiredConfig": f"rendered-{role}-old", "state": "Done"}
    return node_json(
        name,
        role=role,
        annotations={f"{MC}/{key}": value for key, value in (daemon | annotations).items()},
        conditions={"DiskPressure": "False", "MemoryPressure": "False"},
    )


class World:
    """What a test does to the cluster, and asks of it."""

    def __init__(self, client: Client, config_of_it: ClusterConfig, kubeconfig: Path) -> None:
        self.client = client
        self.config = config_of_it
        self.kubeconfig = kubeconfig

    async def create(self, resource: Resource, body: JSON) -> JSON:
        """Create an object and its status, once its kind is served."""
        made = await self._once_served(calls.create(resource, body))
        if "status" in body and made.get("status") != body["status"]:
            made = {**made, "status": body["status"]}
            made = await self._once_served(calls.replace(resource, made, subresource="status"))
        return made

    async def _once_served(self, call: Call[JSON]) -> JSON:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    return await self.client.send(call)
                except NotFound:
                    await asyncio.sleep(0.02)

    async def annotate(self, name: str, **annotations: str) -> None:
        """What the machine-config daemon does to its node."""
        patch = {"metadata": {"annotations": {f"{MC}/{key}": value for key, value in annotations.items()}}}
        await self.client.send(calls.merge_patch(NODES, name, patch))

    async def status(self) -> UpdateStatusStatus | None:
        """What the object says; None while it does not exist."""
        try:
            return (await self.client.send(calls.get(UpdateStatus, NAME))).status
        except NotFound:
            return None

    async def until(self, holds: Callable[[UpdateStatusStatus], Any]) -> UpdateStatusStatus:
        """The status as soon as `holds` does; fails after a deadline with the last one seen."""
        last = None
        try:
            async with asyncio.timeout(DEADLINE_S):
                while last is None or not holds(last):
                    await asyncio.sleep(0.02)
                    last = await self.status()
        except TimeoutError:
            raise AssertionError(f"never came about; last: {last}") from None
        return last


@asynccontextmanager
async def cluster_with_definitions(tmp_path: Path, server: str = "sandbox") -> AsyncGenerator[World, None]:
    """An API server with the definitions of a release, and nothing else."""
    async with _running(tmp_path, server) as kubeconfig:
        loaded = config.load(str(kubeconfig))
        async with Client(loaded) as client:
            for file in crds.definition_files(generally_available=True):
                for body in documents(file):
                    await client.send(calls.create(CRDS, body))
            yield World(client, loaded, kubeconfig)


@asynccontextmanager
async def _running(tmp_path: Path, server: str) -> AsyncGenerator[Path, None]:
    """The kubeconfig of the sandbox's server, or of a real one."""
    if server == "sandbox":
        async with ApiServer(tmp_path / "apiserver") as made:
            yield made.kubeconfig
    else:
        with ControlPlane(tmp_path / "controlplane", programs()) as plane:
            yield plane.kubeconfig
