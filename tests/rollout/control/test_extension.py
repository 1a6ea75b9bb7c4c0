"""Case 36: the extension as a process with TLS, while its API server answers and after it has gone."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.documents import document
from tests.process.tls_world import certificate
from tests.rollout.control.policy_world import FOLDER, RUNS
from tests.rollout.decide.test_hooks import body
from tests.servers import CRD, api_server, eventually

from kubekit.api.codec import Undecodable
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client_sync import SyncClient
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.rollout.control.extension import LONGEST_BODY, Options, Process
from runup.rollout.decide.hooks import API
from runup.rollout.decide.plain_cluster import release_of

HOOK = "BeforeControlPlaneUpgrade"


BOOLS = ("false", "true")
NOT_READ = "UpdateRuns are not read yet"
ODD = Undecodable("", "odd", "Object missing required field `target`")


def read(cache: Cache[UpdateRun], *undecoded: Undecodable, incomplete: tuple[str, ...] = ()) -> None:
    """Fills the cache with the server's answer to a list."""
    cache.replace([], "7", undecoded, incomplete)


@pytest.mark.parametrize(
    ("happened", "lacking", "problem"),
    [
        pytest.param((), NOT_READ, NOT_READ, id="nothing yet"),
        pytest.param((lambda cache: cache.fail("forbidden"),), "forbidden", "forbidden", id="the first list failed"),
        pytest.param((read,), "", "", id="the runs are read"),
        pytest.param((read, lambda cache: cache.fail("gone")), "", "gone", id="the watch ended"),
        pytest.param((read, lambda cache: cache.fail("gone"), Cache.recover), "", "", id="the watch is back"),
        pytest.param((lambda cache: read(cache, incomplete=("half",)),), "", "half", id="a part is hidden"),
        pytest.param((lambda cache: read(cache, ODD),), "", "UpdateRun odd cannot be read", id="one is not decoded"),
        pytest.param(
            (lambda cache: read(cache, ODD, incomplete=("half",)), lambda cache: cache.fail("gone")),
            "",
            "gone; half; UpdateRun odd cannot be read",
            id="all at once",
        ),
    ],
)
def test_says_why_the_runs_in_memory_may_be_wrong(
    happened: tuple[Callable[[Cache[UpdateRun]], None], ...], lacking: str, problem: str
) -> None:
    """It is unready only until the first list; the gates close for each reason (`Cache`: unread is not empty)."""
    process = Process(config.ClusterConfig(server="http://127.0.0.1:9"), Options(cluster=("clusters", "harbour")))
    for step in happened:
        step(process.cache)
    assert (process.not_ready(), process.known.problem) == (lacking, problem)


def create_run(client: SyncClient, version: str, reason: str) -> None:
    """A run whose gates are open for this reason."""
    target = {"version": version, "image": release_of(version).image}
    name = version.replace("+", "-")
    identity = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}}
    created = client.send(calls.create(RUNS, {**identity, "spec": {"target": target}}))
    condition = {"type": "GatesOpen", "status": "True", "reason": reason, "message": ""}
    status = {"step": "Waiting", "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    client.send(calls.replace(RUNS, {**created, "status": status}, subresource="status"))


class Caller:
    """Calls hooks as Cluster API does."""

    def __init__(self, session: ClientSession, address: str, trusting: ssl.SSLContext) -> None:
        self._session, self._address, self._tls = session, address, trusting

    async def post(self, path: str, data: Any) -> tuple[int, Any]:
        """The status, and the answer as JSON or text."""
        url = f"{self._address}/{API}/{path}"
        kind = {"data": data} if isinstance(data, bytes) else {"json": data}
        async with self._session.post(url, ssl=self._tls, **kind) as response:
            is_json = response.content_type == "application/json"
            return response.status, await response.json() if is_json else await response.text()

    async def seconds(self, version: str) -> tuple[int, str, float]:
        """`retryAfterSeconds` and the message of a call about this version, and how long it took."""
        began = time.monotonic()
        path = f"{HOOK.lower()}/gate-{HOOK.lower()}"
        status, given = await self.post(path, body(HOOK, toKubernetesVersion=version))
        assert status == 200, given
        return given["retryAfterSeconds"], given["message"], time.monotonic() - began


async def test_answers_before_the_runs_are_read() -> None:
    """Without an API server: what it handles, an error for a request that it cannot read, and closed gates."""
    options = Options(listen="127.0.0.1:0", cluster=("clusters", "harbour"))
    process = Process(config.ClusterConfig(server="http://127.0.0.1:9"), options)
    task = asyncio.create_task(process.run())
    async with asyncio.timeout(60):
        while not process.endpoint.address:  # noqa: ASYNC110 (set when it serves)
            await asyncio.sleep(0.01)
    async with ClientSession() as session:
        caller = Caller(session, process.endpoint.address, ssl.create_default_context())
        assert (await caller.post("discovery", {}))[1]["kind"] == "DiscoveryResponse"
        for data in (b"{", b"[" * 5000, b"\xff", b"{}"):
            assert (await caller.post(f"{HOOK.lower()}/gate", data))[0] == 400
        assert (await caller.post("afterclusterupgrade/gate", {}))[0] == 400
        seconds, message, _ = await caller.seconds("v1.35.1")
        assert (seconds, "No UpdateRun leads to v1.35.1" in message) == (60, True)
    counted = process.metrics.registry.get_sample_value
    answers = [counted("runup_update_extension_answers_total", {"hook": HOOK, "open": each}) for each in BOOLS]
    assert answers == [1, 0]
    process.stop()
    await task


async def until_open(caller: Caller, version: str) -> None:
    """Waits until the runs are read."""
    async with asyncio.timeout(60):
        while (await caller.seconds(version))[0]:  # noqa: ASYNC110 (a server answers)
            await asyncio.sleep(0.1)


async def call_hooks(kubeconfig: Path, folder: Path, stop_server: Any) -> None:
    """Starts the extension, calls it, and calls it again without an API server."""
    files, trusting = certificate(folder)
    options = Options(listen="127.0.0.1:0", cluster=("clusters", "harbour"), **files)
    process = Process(config.load(str(kubeconfig)), options)
    task = asyncio.create_task(process.run())
    async with asyncio.timeout(60):
        while not process.endpoint.address:  # noqa: ASYNC110 (set when it serves)
            await asyncio.sleep(0.05)
    async with ClientSession() as session:
        caller = Caller(session, process.endpoint.address, trusting)
        status, found = await caller.post("discovery", {"apiVersion": API, "kind": "DiscoveryRequest"})
        assert (status, len(found["handlers"])) == (200, 3)
        await until_open(caller, "v1.35.1")
        assert (await caller.seconds("v1.36.0"))[:1] == (0,)
        assert (await caller.seconds("v1.37.0"))[:1] == (60,)
        path = f"{HOOK.lower()}/gate"
        for data in (b"{", b"[" * 5000, b"\xff", b"{}"):
            assert (await caller.post(path, data))[0] == 400
        assert (await caller.post(path, b" " * (LONGEST_BODY + 1)))[0] == 413
        assert (await caller.post("afterclusterupgrade/gate", {}))[0] == 400
        stop_server()
        async with asyncio.timeout(60):
            while not process.known.problem:  # noqa: ASYNC110 (the watch ends)
                await asyncio.sleep(0.1)
        seconds, message, took_s = await caller.seconds("v1.35.1")
        assert (seconds, "is not known" in message, took_s < 5) == (60, True, True)
        seconds, _, took_s = await caller.seconds("v1.36.0")
        assert (seconds, took_s < 5) == (0, True)
    process.stop()
    await task


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_36_the_extension_answers_from_memory(tmp_path: Path) -> None:
    """Open gates close when the API server is gone, those of an update that has begun stay open, within 5 s each."""
    with ExitStack() as stack:
        kubeconfig = stack.enter_context(api_server(tmp_path / "data"))
        with SyncClient(config.load(str(kubeconfig))) as client:
            client.send(calls.create(CRD, document(FOLDER / "01_updateruns.crd.yaml")))
            eventually(lambda: _serves(client), "the kind is served")
            create_run(client, "v1.35.1", "AllOpen")
            create_run(client, "v1.36.0", "Latched")
        asyncio.run(call_hooks(kubeconfig, tmp_path, stack.close))


def _serves(client: SyncClient) -> bool:
    try:
        return client.send(calls.list_raw(RUNS)) is not None
    except NotFound:
        return False
