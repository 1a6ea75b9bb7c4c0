"""A token that the server refuses in the middle of the work: the clients of a pod continue with the one in its file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.kubekit.kube.apiscript import eventually
from tests.kubekit.kube.test_transports import Transport, transport
from tests.rotated_tokens import NAMESPACE, RotatedToken
from tests.servers import api_server

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.kube import api_errors, calls
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.watch import Reflector

__all__ = ["transport"]

pytestmark = pytest.mark.slow

MAPS = resource_of(ConfigMap)
LIST = calls.list_page(ConfigMap, NAMESPACE)


@pytest.fixture(scope="module", params=SERVERS)
def admin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The administrator's kubeconfig of each server."""
    folder = tmp_path_factory.mktemp("tokens")
    if request.param == "sandbox":
        with api_server(folder / "data") as kubeconfig:
            yield kubeconfig
    else:
        with ControlPlane(folder, programs()) as plane:
            yield plane.kubeconfig


@pytest.fixture(scope="module")
def token(admin: Path, tmp_path_factory: pytest.TempPathFactory) -> RotatedToken:
    """The folder of a pod, as a kubelet keeps it."""
    return RotatedToken(admin, tmp_path_factory.mktemp("pod"))


async def test_a_call_is_repeated_with_the_renewed_token(transport: Transport, token: RotatedToken) -> None:
    """Reads and writes, over the connection that there is; nobody hears of the refusal."""
    own = token.in_cluster
    transport.use(own)
    await transport.send(LIST)
    before = own.auth.cached(transport.clock.now())
    await asyncio.to_thread(token.rotate)
    assert own.auth.cached(transport.clock.now()) == before
    body = {"metadata": {"name": f"by-{transport.kind}", "namespace": NAMESPACE}}
    await transport.send(calls.create(MAPS, body))
    assert own.auth.cached(transport.clock.now()) != before
    await asyncio.to_thread(token.rotate)
    await transport.send(LIST)


async def test_a_token_that_is_renewed_too_late(transport: Transport, token: RotatedToken) -> None:
    """Until then each call is refused; the first one after it goes through, without a new client."""
    transport.use(token.in_cluster)
    await transport.send(LIST)
    await asyncio.to_thread(token.revoke)
    for _ in range(2):
        with pytest.raises(api_errors.Unauthorized):
            await transport.send(LIST)
    await asyncio.to_thread(token.renew)
    await transport.send(LIST)


async def test_a_watch_goes_on_after_its_token(token: RotatedToken) -> None:
    """The server ends a watch in time, not with its token; the next one is refused, and begins with the new token."""
    own, clock = token.in_cluster, ManualClock()
    async with Client(own, clock=clock) as client:
        cache = Cache(ConfigMap)
        reflector = Reflector(client, ConfigMap, cache, namespace=NAMESPACE, clock=SystemClock(), watch_s=1)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(cache.until_synced(), 90)
        before = own.auth.cached(clock.now())
        await asyncio.to_thread(token.rotate)
        await eventually(lambda: own.auth.cached(clock.now()) != before)
        async with Client(token.in_cluster) as other:
            body = {"metadata": {"name": "afterwards", "namespace": NAMESPACE}}
            await other.send(calls.create(MAPS, body))
        await eventually(lambda: cache.get(NamespacedName(NAMESPACE, "afterwards")) is not None)
        assert cache.error is None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
