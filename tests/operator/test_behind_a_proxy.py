"""A cluster whose only way out is a forward proxy with a private authority."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.applied_world import eventually
from tests.operator.operator_world import CRDS, GRAPH, VERSION_RESOURCE, Cluster, any_crd, cluster, running
from tests.process.forward_proxy import Authority, behind, forward_proxy

from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.process.cluster_egress import BUNDLE, PROXY

CONFIG_MAPS = resource_of(ConfigMap)


async def define_proxy(world: Cluster, **status: str) -> None:
    """Proxy `cluster` with that status."""
    await world.client.send(calls.create(CRDS, any_crd("Proxy", "proxies")))
    body = {"apiVersion": PROXY.api_version, "kind": "Proxy", "metadata": {"name": "cluster"}, "spec": {}}

    async def create() -> bool:
        try:
            await world.client.send(calls.create(PROXY, body))
        except NotFound:
            return False
        return True

    await eventually(create, "the definition is served")
    await set_proxy(world, **status)


async def set_proxy(world: Cluster, **status: str) -> None:
    """Changes the status of Proxy `cluster`, as OpenShift's network operator does."""
    await world.client.send(calls.merge_patch(PROXY, "cluster", {"status": status}, subresource="status"))


async def trust(world: Cluster, pem: str) -> None:
    """The bundle of the platform, with its comments."""
    metadata = {"name": BUNDLE.name, "namespace": BUNDLE.namespace}
    data = {"ca-bundle.crt": f"# Főtanúsítvány\n{pem}"}
    await world.client.send(calls.apply(CONFIG_MAPS, {"metadata": metadata, "data": data}, field_manager="test"))


async def retrieved(world: Cluster, status: str, words: str = "") -> str:
    """The message of RetrievedUpdates once it has that status and says `words`."""

    def holds(version: Any) -> bool:
        found = find(version.status.conditions, "RetrievedUpdates")
        return found is not None and found.status == status and words in found.message

    version = await world.until(holds)
    found = find(version.status.conditions, "RetrievedUpdates")
    assert found is not None
    return found.message


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["plain", "over TLS"])
async def test_updates_are_retrieved_through_the_cluster_s_proxy(tmp_path: Path, tls: bool) -> None:
    """With its password and the private authority; each change of Proxy or bundle counts at once."""
    authority = Authority()
    async with (
        cluster(tmp_path) as (world, make),
        forward_proxy(tmp_path, authority, tls=tls, login="ann:word") as proxy,
        behind(authority, tmp_path, "updates.test", {"/graph": GRAPH}) as service,
    ):
        upstream = {"spec": {"upstream": f"{service}/graph"}}
        await world.client.send(calls.merge_patch(VERSION_RESOURCE, "version", upstream))
        await define_proxy(world, httpsProxy=proxy.url, noProxy=".cluster.local")
        await trust(world, authority.pem)
        async with running(make()):
            await retrieved(world, "True")
            # Around the proxy there is no such name.
            await set_proxy(world, noProxy="*.test,10.0.0.0/8")
            assert "updates.test" in await retrieved(world, "False")
            await set_proxy(world, noProxy="updates.test:1")
            await retrieved(world, "True")
            await set_proxy(world, httpsProxy=proxy.url.replace("ann:word@", ""))
            assert "ann" not in await retrieved(world, "False", "407")
            await set_proxy(world, httpsProxy=proxy.url)
            await retrieved(world, "True")
            await trust(world, Authority().pem)
            await retrieved(world, "False", "certificate verify failed")
            await trust(world, "no certificate")
            await retrieved(world, "False", "the cluster's certificate authorities cannot be used")
            await trust(world, authority.pem)
            await retrieved(world, "True")
