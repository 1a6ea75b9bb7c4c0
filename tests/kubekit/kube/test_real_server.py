"""Both transports over TLS against the sandbox's API server: certificates, tokens, and what the calls are for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.kubekit.kube.test_transports import Transport, transport

from kubekit.api.core_v1 import ConfigMap, Namespace, Node, Pod, ServiceAccount
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import resource_of
from kubekit.kube import api_errors, calls, config, reviews
from kubekit.kube.auth import Credential, Static, bearer_credential
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import Reflector
from kubesandbox.apiserver.server import ApiServer

__all__ = ["transport"]

MAPS, ACCOUNTS = resource_of(ConfigMap), resource_of(ServiceAccount)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server with the namespace `ns`."""
    async with ApiServer(data=tmp_path) as running:
        async with Client(config.load(str(running.kubeconfig))) as client:
            await client.send(calls.create(resource_of(Namespace), {"metadata": {"name": "ns"}}))
        yield running


@pytest.fixture
def admin(server: ApiServer) -> ClusterConfig:
    """The administrator's configuration."""
    return config.load(str(server.kubeconfig))


def config_map(**data: str) -> dict[str, Any]:
    """The ConfigMap `a` with that data."""
    return {"metadata": {"name": "a", "namespace": "ns"}, "data": data}


async def test_tls(transport: Transport, admin: ClusterConfig) -> None:
    """The server's certificate is checked against the authority and the name, unless told otherwise."""
    version = calls.get_path("/version")
    assert b"gitVersion" in await transport.use(admin).send(version)
    assert await transport.use(replace(admin, tls_server_name="localhost")).send(version)
    with pytest.raises(api_errors.Unreachable, match=r"not trusted: .*elsewhere"):
        await transport.use(replace(admin, tls_server_name="elsewhere")).send(version)
    with pytest.raises(api_errors.Unreachable, match="not trusted"):
        await transport.use(replace(admin, ca_data=b"")).send(version)
    assert await transport.use(replace(admin, ca_data=b"", insecure=True)).send(version)
    with pytest.raises(api_errors.ConfigError, match="is not PEM"):
        await transport.use(replace(admin, ca_data=b"nonsense")).send(version)
    with pytest.raises(api_errors.ConfigError, match="cannot be used"):
        await transport.use(replace(admin, client_cert=b"nonsense", client_key=b"nonsense")).send(version)


async def test_a_plugins_certificate_goes_before_the_kubeconfigs(
    transport: Transport, admin: ClusterConfig, server: ApiServer, tmp_path: Path
) -> None:
    """And when it changes, the connection is recreated with it."""
    other = tmp_path / "other"
    other.write_bytes(server.kubeconfig_for("nobody-in-particular"))
    weak = config.load(str(other))
    plugin = Static(Credential(client_cert=weak.client_cert, client_key=weak.client_key))
    await transport.use(admin).send(calls.list_page(Node))
    with pytest.raises(api_errors.Forbidden, match='User "nobody-in-particular" cannot list'):
        await transport.use(replace(admin, auth=plugin)).send(calls.list_page(Node))


async def test_writes(transport: Transport, admin: ClusterConfig) -> None:
    """A trial changes nothing; applies conflict by field and manager; preconditions hold; what is gone is gone."""
    transport.use(admin)
    await transport.send(calls.create(MAPS, config_map(k="1"), dry_run=True))
    with pytest.raises(api_errors.NotFound, match='configmaps "a" not found'):
        await transport.send(calls.get(ConfigMap, "a", "ns"))
    await transport.send(calls.apply(MAPS, config_map(k="1"), field_manager="one"))
    with pytest.raises(api_errors.Conflict, match="one"):
        await transport.send(calls.apply(MAPS, config_map(k="2"), field_manager="two"))
    forced = await transport.send(calls.apply(MAPS, config_map(k="2"), field_manager="two", force=True))
    assert forced["data"] == {"k": "2"}
    with pytest.raises(api_errors.AlreadyExists):
        await transport.send(calls.create(MAPS, config_map()))
    with pytest.raises(api_errors.Conflict):
        stale = {"metadata": {"resourceVersion": "1"}, "data": {"k": "3"}}
        await transport.send(calls.merge_patch(MAPS, "a", stale, "ns"))
    patched = await transport.send(calls.json_patch(MAPS, "a", [{"op": "remove", "path": "/data/k"}], "ns"))
    assert patched.get("data", {}) == {}
    with pytest.raises(api_errors.Invalid, match="unknown field"):
        await transport.send(calls.merge_patch(MAPS, "a", {"dta": {}}, "ns", field_validation="Strict"))
    with pytest.raises(api_errors.Conflict):
        await transport.send(calls.delete(MAPS, "a", "ns", uid="another"))
    await transport.send(calls.delete(MAPS, "a", "ns", uid=forced["metadata"]["uid"]))
    with pytest.raises(api_errors.NotFound):
        await transport.send(calls.get_raw(MAPS, "a", "ns"))


async def test_tokens_and_rights(transport: Transport, admin: ClusterConfig) -> None:
    """A service account's token is one that the server knows; it may do less than we."""
    transport.use(admin)
    await transport.send(calls.create(ACCOUNTS, {"metadata": {"name": "sa", "namespace": "ns"}}))
    token = await transport.send(reviews.token_request("sa", "ns", expiration_s=3600))
    assert token.expiration_timestamp is not None
    assert (await transport.send(reviews.may_i("list", resource_of(Pod)))).allowed is True
    weak = replace(admin, client_cert=b"", client_key=b"", auth=Static(bearer_credential(token.token)))
    assert (await transport.use(weak).send(reviews.may_i("list", resource_of(Pod)))).allowed is False
    refused = replace(weak, auth=Static(bearer_credential("nonsense")))
    with pytest.raises(api_errors.Unauthorized):
        await transport.use(refused).send(calls.list_page(Pod))


@pytest.mark.slow
async def test_a_reflector_follows_the_metadata_of_any_resource(admin: ClusterConfig) -> None:
    """Changes, additions and deletions are seen, however the list was paged."""
    async with Client(admin) as client:
        for index in range(3):
            body = {"metadata": {"name": f"m{index}", "namespace": "ns"}, "data": {"k": "v"}}
            await client.send(calls.create(MAPS, body))
        cache = Cache(Object)
        changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        reflector = Reflector(client, Object, cache, namespace="ns", clock=SystemClock(), resource=MAPS)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(cache.until_synced(), 90)
        assert {item.metadata.name for item in cache.all()} >= {"m0", "m1", "m2"}
        cache.add_listener(lambda change, old, new: changes.put_nowait((change, (new or old).metadata.name)))  # type: ignore[union-attr]
        while not changes.empty():
            changes.get_nowait()
        await client.send(calls.merge_patch(MAPS, "m1", {"metadata": {"labels": {"a": "b"}}}, "ns"))
        await client.send(calls.delete(MAPS, "m2", "ns"))
        assert await asyncio.wait_for(changes.get(), 90) == ("MODIFIED", "m1")
        assert await asyncio.wait_for(changes.get(), 90) == ("DELETED", "m2")
        changed = cache.get(NamespacedName("ns", "m1"))
        assert changed is not None
        assert changed.metadata.labels == {"a": "b"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
