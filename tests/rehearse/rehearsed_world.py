"""A small cluster as an update finds it: its release applied, users' own changes on top, and read like a live one.

It is a sandbox's API server of its own; a rehearsal then copies it by get and list, as it would a real cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.applying.control.release_folders import namespace, operator, write_release
from tests.operator.operator_world import DEADLINE_S, any_crd

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load as load_kubeconfig
from kubesandbox.apiserver.server import ApiServer
from runup.applying.control.loading import read_folder
from runup.applying.decide.rendering import ClusterValues, render
from runup.applying.decide.task import tasks_of
from runup.dump.documents import identity
from runup.rehearse.control import cluster_source
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.rehearsal import RehearsalTarget, rehearse
from runup.rehearse.decide.rehearsal_findings import outcomes_of
from runup.rehearse.decide.rehearsal_outcome import Rehearsal
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.payload import load_payload

JSON = dict[str, Any]
SOURCE, TARGET = "5.0.0", "5.1.0"
OPERATOR = "cluster-version-operator"
USER = "kubectl-edit"
KUBERNETES = "1.34.0"
# Kinds whose status a controller would write.
_WITH_STATUS = ("ResourceQuota",)
_PLATFORM = (
    ("ClusterVersion", "clusterversions"),
    ("ClusterOperator", "clusteroperators"),
    ("FeatureGate", "featuregates"),
    ("Infrastructure", "infrastructures"),
    ("Proxy", "proxies"),
)
CLUSTER_VERSION: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
    "spec": {"clusterID": "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"},
}
STATUS: JSON = {
    "desired": {"version": SOURCE, "image": "registry.example/release@sha256:" + "5" * 64},
    "history": [],
    "observedGeneration": 1,
    "versionHash": "",
    "availableUpdates": [],
}


def definitions() -> list[JSON]:
    """The definitions of the platform that a rehearsal reads."""
    return [any_crd(kind, plural) for kind, plural in _PLATFORM]


class World:
    """The cluster, as somebody with all rights reaches it."""

    def __init__(self, kubeconfig: Path, client: Client) -> None:
        self.kubeconfig = kubeconfig
        self.client = client

    async def resource(self, obj: JSON) -> Resource:
        """The resource of an object's kind, once it is served: a real server takes a moment after a definition."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                with suppress(NotFound, StopIteration):
                    served = await self.client.send(calls.list_kinds(obj["apiVersion"]))
                    found = next((each for each in served if each.kind == obj["kind"]), None)
                    if found is not None:
                        await self.client.send(calls.list_raw(found, limit=1))
                        return found
                await asyncio.sleep(0.02)

    async def apply(self, *objects: JSON, manager: str = OPERATOR) -> None:
        """Applies objects as an operator does, and sets the status that is given with one."""
        for obj in objects:
            resource, spec = await self.resource(obj), {key: value for key, value in obj.items() if key != "status"}
            await self.client.send(calls.apply(resource, spec, field_manager=manager, force=True))
            if obj["kind"] in _WITH_STATUS:
                name, status = obj["metadata"], {"status": obj["status"]}
                call = calls.merge_patch(
                    resource, name["name"], status, name.get("namespace", ""), subresource="status"
                )
                await self.client.send(call)

    async def apply_release(self, uid: str, *objects: JSON) -> None:
        """Applies objects as the operator renders them: with ClusterVersion as their owner."""
        identities = [Identity(*identity(obj)) for obj in objects]
        manifests = [Manifest.of("", each, obj) for each, obj in zip(identities, objects, strict=True)]
        await self.apply(*(render(task, ClusterValues(owner_uid=uid)).object for task in tasks_of(manifests)))

    async def owned_by(self, owner: JSON, obj: JSON) -> JSON:
        """The object as the owner's controller makes it."""
        metadata = owner["metadata"]
        found = await self.client.send(
            calls.get_raw(await self.resource(owner), metadata["name"], metadata.get("namespace", ""))
        )
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
        references = [{**reference, "uid": found["metadata"]["uid"]}]
        return {**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}

    async def edit(self, obj: JSON, patch: JSON, manager: str = USER) -> None:
        """Changes an object as a user does."""
        metadata = obj["metadata"]
        call = calls.merge_patch(
            await self.resource(obj), metadata["name"], patch, metadata.get("namespace", ""), field_manager=manager
        )
        await self.client.send(call)

    async def source(self) -> ClusterSource:
        """What a rehearsal reads of the cluster."""
        return await cluster_source.read_cluster_source(load_kubeconfig(str(self.kubeconfig)))


@asynccontextmanager
async def cluster_at_source(folder: Path, *objects: JSON) -> AsyncIterator[World]:
    """A cluster at SOURCE, with `objects` as its operator applied them."""
    async with ApiServer(data=folder / "cluster") as server, populated(server.kubeconfig, *objects) as made:
        yield made


@asynccontextmanager
async def populated(kubeconfig: Path, *objects: JSON) -> AsyncIterator[World]:
    """The cluster of a server that is running, and empty."""
    async with Client(load_kubeconfig(str(kubeconfig))) as client:
        made = World(kubeconfig, client)
        await made.apply(*definitions())
        await made.apply(CLUSTER_VERSION)
        version = await made.resource(CLUSTER_VERSION)
        answer = await client.send(calls.merge_patch(version, "version", {"status": STATUS}, subresource="status"))
        await made.apply_release(answer["metadata"]["uid"], namespace(), *objects)
        yield made


def release_files(*objects: JSON) -> dict[str, list[JSON]]:
    """The files of a release that has its namespace and an operator next to `objects`, in that order."""
    named = {f"release-manifests/0000_20_a_{number:02}.yaml": [obj] for number, obj in enumerate(objects)}
    return {
        "manifests/0000_00_cvo_00_namespace.yaml": [namespace()],
        **named,
        "release-manifests/0000_30_b_01_operator.yaml": [operator("b", TARGET)],
    }


def wanted(folder: Path, *objects: JSON, stuck: Sequence[str] = (), limit_s: float = 600.0) -> RehearsalTarget:
    """The update to a release of `objects`."""
    root = write_release(folder / "release", TARGET, release_files(*objects))
    payload = load_payload(read_folder(root), source=str(root))
    return RehearsalTarget(payload=payload, target=TARGET, kubernetes=KUBERNETES, stuck=tuple(stuck), limit_s=limit_s)


async def rehearsed(cluster: World, folder: Path, *objects: JSON, **options: Any) -> Rehearsal:
    """The rehearsal of an update of the cluster to a release of `objects`."""
    return await rehearse(await cluster.source(), wanted(folder, *objects, **options), SystemClock())


def findings(rehearsal: Rehearsal) -> dict[str, str]:
    """The findings of a rehearsal by name: True where they apply, else Unknown."""
    outcomes = outcomes_of(rehearsal, "https://docs.runup.example/rehearsal")
    return {finding.name: str(finding.applies.value) for one in outcomes for finding in one.findings}
