"""Releases by a Pod: the test plays the node, which copies, fails, or does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import Hurried
from tests.operator.operator_world import NAMESPACE, cluster

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded
from runup.applying.control.release_source import JOBS, PODS, FromPod
from runup.applying.decide import retrieval_pod

IMAGE = "registry.example/release@sha256:" + "52" * 32
RELEASE = Release(image=IMAGE, version="5.2.0")
MANIFEST = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, annotations: {a: b}}\n"
METADATA = '{"kind": "cincinnati-metadata-v0", "version": "5.2.0"}'
REFERENCES = '{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.2.0"}}'
FILES = {
    "manifests/0000_00_a_0.yaml": MANIFEST,
    "release-manifests/release-metadata": METADATA,
    "release-manifests/image-references": REFERENCES,
}
ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
PRIORITIES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)


class Node:
    """A node as far as the operator sees it: the folder, and Pods whose status somebody writes."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.seen: list[str] = []

    async def pods(self) -> list[dict[str, Any]]:
        """Pods that fetch releases."""
        listed = await self.client.send(calls.list_raw(PODS, NAMESPACE, label_selector=retrieval_pod.SELECTOR))
        return list(listed.items)

    def copy(self, files: dict[str, str] | None = None) -> None:
        """What the Pod would have done."""
        for name, text in (FILES if files is None else files).items():
            path = self.folder / retrieval_pod.folder_name(IMAGE) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    async def play(self, act: Callable[[], dict[str, Any]]) -> None:
        """Answer each new Pod with the status that `act` gives."""
        while True:
            for pod in await self.pods():
                name = pod["metadata"]["name"]
                if name not in self.seen:
                    self.seen.append(name)
                    body = {"status": act()}
                    await self.client.send(calls.merge_patch(PODS, name, body, NAMESPACE, subresource="status"))
            await asyncio.sleep(0.02)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A cluster with the account and the priority that the Pod has."""
    async with cluster(tmp_path / "cluster") as (world, _):
        account = {"metadata": {"name": retrieval_pod.SERVICE_ACCOUNT, "namespace": NAMESPACE}}
        await world.client.send(calls.apply(ACCOUNTS, account, field_manager="test"))
        priority = {"metadata": {"name": retrieval_pod.PRIORITY_CLASS}, "value": 1000}
        await world.client.send(calls.apply(PRIORITIES, priority, field_manager="test"))
        yield Node(world.client, tmp_path / "payloads")


def source(node: Node, within_s: float = 90.0) -> FromPod:
    """Returns the source under test."""
    return FromPod(node.client, Hurried(5), namespace=NAMESPACE, node="node-1", folder=node.folder, within_s=within_s)


@asynccontextmanager
async def playing(node: Node, act: Callable[[], dict[str, Any]]) -> AsyncIterator[None]:
    """The node at work."""
    task = asyncio.create_task(node.play(act))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_pod_brings_a_release(node: Node) -> None:
    """Its folder is read, the Pod is gone, and the next time none is needed, by another process neither."""

    def act() -> dict[str, Any]:
        node.copy()
        return {"phase": "Succeeded"}

    async with playing(node, act):
        found = await source(node).load(RELEASE)
        assert [manifest.identity.name for manifest in found.manifests] == ["a"]
        assert await node.pods() == []
        assert (await source(node).load(RELEASE)).version == "5.2.0"
        assert len(node.seen) == 1


async def test_what_earlier_retrievals_left_goes_first(node: Node) -> None:
    """Pods by their label, and the Jobs of operators of long ago; others stay."""
    for name, labels in (("version-old", {"k8s-app": retrieval_pod.APP}), ("version-mine", {})):
        container = {"name": "a", "image": "b"}
        pod = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"containers": [container]},
        }
        await node.client.send(calls.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}))
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name.replace("mine", "x") if labels else "other", "namespace": NAMESPACE},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        }
        await node.client.send(calls.create(JOBS, job))
    node.copy()
    await source(node).load(RELEASE)
    left = await node.client.send(calls.list_raw(PODS, NAMESPACE))
    assert [pod["metadata"]["name"] for pod in left.items] == ["version-mine"]
    jobs = await node.client.send(calls.list_raw(JOBS, NAMESPACE))
    assert [job["metadata"]["name"] for job in jobs.items] == ["other"]


@pytest.mark.parametrize(
    ("status", "files", "said"),
    [
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "message": "no disk"}, {}, 'reason "Evicted"', id="fails"
        ),
        pytest.param(
            {"phase": "Succeeded"}, {}, "is not there; does this operator see the node's", id="copies nothing"
        ),
        pytest.param(
            {"phase": "Succeeded"},
            {"manifests/a.yaml": MANIFEST},
            "release-manifests/ is missing",
            id="copies half",
        ),
    ],
)
async def test_a_pod_that_brings_none(node: Node, status: dict[str, Any], files: dict[str, str], said: str) -> None:
    """One error of retrieving that says why; asking again starts another Pod."""

    def act() -> dict[str, Any]:
        node.copy(files)
        return status

    loader = source(node)
    async with playing(node, act):
        with pytest.raises(NotLoaded) as raised:
            await loader.load(RELEASE)
    assert raised.value.reason == "RetrievePayload"
    assert said in raised.value.message
    node.copy()
    assert (await loader.load(RELEASE)).version == "5.2.0"


async def test_a_pod_that_nobody_starts(node: Node) -> None:
    """The time is up; what it waited for is reported, and it stays to be looked at."""
    with pytest.raises(NotLoaded, match=r"did not end within 0\.1 s: "):
        await source(node, within_s=0.1).load(RELEASE)
    assert len(await node.pods()) == 1


async def test_a_pod_that_somebody_else_deletes(node: Node) -> None:
    """Nobody fills the folder any more: that is reported at once, not when the time is up."""
    task = asyncio.create_task(source(node, within_s=3600.0).load(RELEASE))
    async with asyncio.timeout(90):
        while not (pods := await node.pods()):  # noqa: ASYNC110 -- asked of the API server
            await asyncio.sleep(0.02)
        name = pods[0]["metadata"]["name"]
        await node.client.send(calls.delete(PODS, name, NAMESPACE, grace_period_s=0))
        with pytest.raises(NotLoaded, match=f"pod {name} was deleted by somebody else"):
            await task


async def test_who_gives_up_takes_the_pod_along(node: Node) -> None:
    """The request went another way: nothing continues filling the folder."""
    task = asyncio.create_task(source(node).load(RELEASE))
    async with asyncio.timeout(90):
        while not await node.pods():  # noqa: ASYNC110 -- asked of the API server
            await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    # The node has its word before a Pod that it has is gone.
    assert [pod["metadata"]["name"] for pod in await node.pods() if "deletionTimestamp" not in pod["metadata"]] == []


async def test_an_image_must_be_named(node: Node) -> None:
    """As upstream says it."""
    with pytest.raises(NotLoaded, match="no payload image has been specified"):
        await source(node).load(Release(version="5.2.0"))
