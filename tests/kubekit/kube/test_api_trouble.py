"""Tests a cache while the API changes under it: a dropped version, a restored store."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import Hurried

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.watch import Reflector
from kubesandbox.apiserver.server import ApiServer

CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
OLD, NEW = (
    Resource(group="example.com", version=version, kind="Thing", plural="things", namespaced=False)
    for version in ("v1alpha1", "v1")
)
MAPS = resource_of(ConfigMap)
DEADLINE_S = 90.0


def definition(*, old_served: bool) -> dict[str, Any]:
    """Things in two versions, of which one may be gone."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": "v1alpha1", "served": old_served, "storage": False, "schema": schema},
        {"name": "v1", "served": True, "storage": True, "schema": schema},
    ]
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return kind | {"metadata": {"name": "things.example.com"}, "spec": spec}


async def until(condition: Callable[[], Any]) -> None:
    """Wait until `condition` holds; fails after a deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 -- what a server brings
            await asyncio.sleep(0.02)


def thing(resource: Resource, name: str) -> dict[str, Any]:
    """A thing in one of its versions."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}


async def until_served(client: Client, obj: dict[str, Any], resource: Resource) -> None:
    """Create an object of a kind that was defined just now."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await client.send(calls.create(resource, obj))
            except NotFound:
                await asyncio.sleep(0.02)
            else:
                return


@asynccontextmanager
async def following(reflector: Reflector[Any]) -> AsyncIterator[None]:
    """`reflector` at work."""
    task = asyncio.create_task(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_version_that_is_dropped_while_it_is_watched(tmp_path: Path) -> None:
    """It is reported as a kind that cannot be read any more; when it is served again, the cache equals the cluster."""
    async with ApiServer(tmp_path) as server, Client(config.load(str(server.kubeconfig))) as client:
        await client.send(calls.create(CRDS, definition(old_served=True)))
        await until_served(client, thing(OLD, "a"), OLD)
        cache = Cache(Object)
        async with following(Reflector(client, Object, cache, clock=Hurried(20), resource=OLD)):
            await until(lambda: cache.ready)
            versions = definition(old_served=False)["spec"]["versions"]
            await client.send(calls.merge_patch(CRDS, "things.example.com", {"spec": {"versions": versions}}))
            await until(lambda: not cache.ready)
            assert "the server has no API things.example.com/v1alpha1" in (cache.error or "")
            await client.send(calls.create(NEW, thing(NEW, "b")))
            versions = definition(old_served=True)["spec"]["versions"]
            await client.send(calls.merge_patch(CRDS, "things.example.com", {"spec": {"versions": versions}}))
            await until(lambda: cache.ready)
            assert sorted(each.metadata.name for each in cache.all()) == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("written_since", [0, 3], ids=["nothing", "less than was lost"])
async def test_a_store_that_is_restored_to_an_older_revision(tmp_path: Path, written_since: int) -> None:
    """Lost objects disappear, and newer writes appear even though their versions were used before."""
    data = tmp_path / "apiserver"
    async with ApiServer(data) as server:
        port = int(server.url.rpartition(":")[2])
        async with Client(config.load(str(server.kubeconfig))) as client:
            await _write(client, "kept", "before")
    shutil.copytree(data, tmp_path / "backup")
    async with Client(config.load(str(server.kubeconfig))) as client:
        cache = Cache(ConfigMap)
        server = ApiServer(data, port=port)
        await server.start()
        try:
            reflector = Reflector(client, ConfigMap, cache, namespace="default", clock=Hurried(60), watch_s=3)
            async with following(reflector):
                for number in range(10):
                    await _write(client, f"lost-{number}", "lost")
                await _write(client, "kept", "lost")
                await until(lambda: cache.ready and len(_read(cache)) == 11)
                await server.stop()
                shutil.rmtree(data)
                shutil.copytree(tmp_path / "backup", data)
                server = ApiServer(data, port=port)
                await server.start()
                for number in range(written_since):
                    await _write(client, "kept", f"since {number}")
                expected = {"kept": f"since {written_since - 1}" if written_since else "before"}
                await until(lambda: cache.ready and _read(cache) == expected)
        finally:
            await server.stop()


async def _write(client: Client, name: str, text: str) -> None:
    obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"text": text}}
    await client.send(calls.apply(MAPS, obj, field_manager="test", force=True))


def _read(cache: Cache[ConfigMap]) -> dict[str, str]:
    named = {each.metadata.name: each.data.get("text", "") for each in cache.all()}
    return {name: text for name, text in named.items() if name != "kube-root-ca.crt"}
