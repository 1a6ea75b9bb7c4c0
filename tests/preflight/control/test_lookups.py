"""What is asked for by name: packages of the operators that are installed, out of an API that nobody can watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kubekit.api.scheme import resource_of
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from runup.api.olm_v1alpha1 import Subscription
from runup.checks.catalogue.olm.shared.installed_operators import PACKAGES
from runup.facts import watched_kinds as polled_objects
from runup.facts.watched_kinds import WatchedKinds
from runup.process.read_only_client import ReadOnlyClient

DEADLINE_S = 90
SUBSCRIPTIONS = resource_of(Subscription)


def subscription(name: str) -> dict[str, Any]:
    """That of an operator."""
    metadata = {"name": name, "namespace": "here", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"name": name, "source": "certified"}}


def package(name: str) -> dict[str, Any]:
    """What a catalog has of it; the description is as long as they are."""
    described = {"description": "x" * 10_000, "annotations": {"alm-examples": "y" * 10_000, "olm.properties": "[]"}}
    channels = [{"name": "stable", "currentCSV": f"{name}.v2", "currentCSVDesc": described}]
    metadata = {"name": name, "namespace": "here"}
    return {"metadata": metadata, "status": {"catalogSource": "certified", "channels": channels}}


class Cluster:
    """An API server with Subscriptions; `refusal` is how the API of packages answers, if not with them."""

    def __init__(self, *names: str) -> None:
        self.subscriptions = [subscription(name) for name in names]
        self.refusal: tuple[int, str] | None = None
        self.asked: list[str] = []
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def subscribed(self, request: web.Request) -> web.StreamResponse:
        """A list, or a watch that lasts."""
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": self.subscriptions})
        response = web.StreamResponse()
        await response.prepare(request)
        while line := await self.events.get():
            await response.write(line)
        return response

    async def packages(self, request: web.Request) -> web.StreamResponse:
        """By name, and never watched."""
        assert "watch" not in request.query
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        self.asked.append(f"{request.match_info['namespace']}/{name}")
        if self.refusal:
            code, reason = self.refusal
            status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "so it is"}
            return web.json_response(status, status=code)
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": [package(name)]})


class Following:
    """The reads of one check on that cluster."""

    def __init__(
        self, cluster: Cluster, reads: WatchedKinds, clock: ManualClock | SystemClock, notified: asyncio.Event
    ) -> None:
        self.cluster, self.reads, self.clock, self.notified = cluster, reads, clock, notified

    async def until(self, holds: Callable[[WatchedKinds], Any]) -> None:
        """Wait for it."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds(self.reads):
                self.notified.clear()
                await self.notified.wait()

    @property
    def known(self) -> list[str]:
        """Names of the packages that are known now."""
        return [each.metadata.name for each in self.reads.snapshot().objects.get(PACKAGES, ())]


@asynccontextmanager
async def following(cluster: Cluster) -> AsyncIterator[Following]:
    """The target's reads, and a clock that stands."""
    app = web.Application()
    app.router.add_get("/apis/operators.coreos.com/v1alpha1/subscriptions", cluster.subscribed)
    app.router.add_get(
        "/apis/packages.operators.coreos.com/v1/namespaces/{namespace}/packagemanifests", cluster.packages
    )
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    notified, clock = asyncio.Event(), ManualClock(SystemClock().now())
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with ReadOnlyClient(ClusterConfig(server=url), namespace="own") as client:
        reads = WatchedKinds(client, [PACKAGES, SUBSCRIPTIONS], clock=clock, changed=notified.set)
        running = asyncio.create_task(reads.run())
        try:
            yield Following(cluster, reads, clock, notified)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            cluster.events.put_nowait(b"")
            await runner.cleanup()


def known(reads: WatchedKinds) -> bool:
    """Whether nothing is waited for."""
    return not reads.waiting


async def test_those_that_are_installed_are_read_and_no_others() -> None:
    """A list of all has tens of megabytes; of each what nobody looks at is left out."""
    async with following(Cluster("logging", "tracing")) as here:
        await here.until(known)
        assert sorted(here.known) == ["logging", "tracing"]
        assert sorted(here.cluster.asked) == ["here/logging", "here/tracing"]
        (channel,) = here.reads.snapshot().objects[PACKAGES][0].status.channels
        assert channel.current_csv_desc.annotations == {"olm.properties": "[]"}


async def test_where_nothing_is_installed_nobody_is_asked() -> None:
    """Then it is known that there is none."""
    async with following(Cluster()) as here:
        await here.until(known)
        assert here.reads.snapshot().objects[PACKAGES] == ()
        assert here.cluster.asked == []


@pytest.mark.parametrize(
    ("refusal", "why", "absent"),
    [
        pytest.param((503, "ServiceUnavailable"), "cannot be read: so it is", False, id="its server is away"),
        pytest.param((404, "NotFound"), "the server has no API packagemanifests", True, id="there is no such API"),
        pytest.param(
            (403, "Forbidden"),
            'not allowed to list packagemanifests in API group "packages.operators.coreos.com"',
            False,
            id="no right",
        ),
    ],
)
async def test_what_cannot_be_had_is_not_waited_for(refusal: tuple[int, str], why: str, absent: bool) -> None:
    """It is said, and asked for again."""
    cluster = Cluster("logging")
    cluster.refusal = refusal
    async with following(cluster) as here:
        await here.until(lambda reads: not reads.waiting and why in reads.snapshot().unreadable.get(PACKAGES, ""))
        assert (PACKAGES in here.reads.snapshot().absent) is absent
        cluster.refusal = None
        await here.until(lambda _reads: jumped(here, polled_objects.RETRY_S) and here.known == ["logging"])


def jumped(here: Following, seconds: float) -> bool:
    """Time passes; whoever sleeps may not do so yet."""
    here.clock.jump(seconds)
    asyncio.get_running_loop().call_later(0.01, here.notified.set)
    return True


async def test_one_more_operator_is_asked_for_at_once() -> None:
    """Its Subscription is new."""
    async with following(Cluster("logging")) as here:
        await here.until(known)
        more = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"here","resourceVersion":"2"},'
        here.cluster.events.put_nowait(more + b'"spec":{"name":"tracing","source":"certified"}}}\n')
        await here.until(lambda _reads: sorted(here.known) == ["logging", "tracing"])
