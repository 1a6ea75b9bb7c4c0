"""Alerts over HTTP, and the pods of nodes that are being drained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.factories import obj
from tests.updatestatus.control.world import DEADLINE_S, PODS, World, cluster_with_definitions

from kubekit.api.scheme import Resource
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.process import monitoring
from runup.updatestatus.control import alert_queries as asking
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.controller import NODES_AT_MOST, PATIENCE_S, REFRESH_S, DrainingPods
from runup.updatestatus.decide.alerts import Alert, Unreadable

GOOD = """{"status": "success", "data": {"alerts": [
  {"labels": {"alertname": "KubePodNotReady", "severity": "warning"}, "annotations": {"summary": "A pod is not ready."},
   "state": "firing", "activeAt": "2026-11-21T06:00:00.123456111Z", "value": "1e+00"}]}}"""
EXPECTED = Alert(
    labels={"alertname": "KubePodNotReady", "severity": "warning"},
    annotations={"summary": "A pod is not ready."},
    state="firing",
    active_at=datetime(2026, 11, 21, 6, 0, 0, 123456, tzinfo=UTC),
)


@asynccontextmanager
async def prometheus(answer: Callable[[web.Request], web.Response]) -> AsyncGenerator[str, None]:
    """Its address."""

    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    app = web.Application()
    app.router.add_get("/api/v1/alerts", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def asked(url: str) -> tuple[Alert, ...] | Unreadable | None:
    """What is known after the first answer."""
    changed = asyncio.Event()
    alerts = Alerts(url, Static(bearer_credential("secret")), ManualClock(), changed.set)
    running = asyncio.create_task(alerts.run())
    async with asyncio.timeout(DEADLINE_S):
        await changed.wait()
    running.cancel()
    return alerts.state


async def test_alerts_are_read_as_prometheus_lists_them() -> None:
    """Times of nanoseconds included."""
    async with prometheus(lambda _: web.Response(text=GOOD)) as url:
        assert await asked(url) == (EXPECTED,)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(lambda _: web.Response(status=403, text="no"), "unexpected HTTP status: 403", id="forbidden"),
        pytest.param(lambda _: web.Response(text="<html>"), "malformed", id="no JSON"),
        pytest.param(
            lambda _: web.Response(text='{"status": "error", "error": "query timed out"}'),
            "query timed out",
            id="an error of its own",
        ),
        pytest.param(lambda _: web.Response(text=" " * 2000 + GOOD), "longer than 1000 bytes", id="an endless answer"),
    ],
)
async def test_what_is_no_answer_is_unreadable(
    answer: Callable[[web.Request], web.Response], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not knowing the alerts is not the same as there being none."""
    monkeypatch.setattr(monitoring, "MAX_BYTES", 1000)
    async with prometheus(answer) as url:
        found = await asked(url)
    assert isinstance(found, Unreadable)
    assert says in found.why
    assert found.why.startswith(url)


async def test_nobody_who_listens_is_unreadable() -> None:
    """The reason names the address."""
    found = await asked("http://127.0.0.1:1")
    assert isinstance(found, Unreadable)
    assert "127.0.0.1:1" in found.why


async def test_certificate_authorities_that_are_not_there_are_named(tmp_path: Path) -> None:
    """Else the reason would be a file that nobody can guess."""
    changed = asyncio.Event()
    missing = str(tmp_path / "service-ca.crt")
    alerts = Alerts("https://127.0.0.1:1", Static(), ManualClock(), changed.set, ca_file=missing)
    running = asyncio.create_task(alerts.run())
    await asyncio.wait_for(changed.wait(), DEADLINE_S)
    running.cancel()
    assert isinstance(alerts.state, Unreadable)
    assert f"the certificate authorities {missing} cannot be read" in alerts.state.why


async def test_the_token_is_not_sent_in_the_clear() -> None:
    """Plain HTTP gets no credential."""
    headers: list[str | None] = []

    def answer(request: web.Request) -> web.Response:
        headers.append(request.headers.get("Authorization"))
        return web.Response(text=GOOD)

    async with prometheus(answer) as url:
        await asked(url)
    assert headers == [None]


async def test_without_an_address_nobody_is_asked() -> None:
    """That stays None: not asked is neither none nor unreadable."""
    alerts = Alerts("", Static(), ManualClock(), lambda: None)
    await alerts.run()
    assert alerts.state is None


async def test_an_old_answer_is_no_answer() -> None:
    """When the next question fails, what was known is not kept."""
    answers = [web.Response(text=GOOD), web.Response(status=500)]
    clock, changed = ManualClock(), asyncio.Event()
    async with prometheus(lambda _: answers.pop(0)) as url:
        alerts = Alerts(url, Static(), clock, changed.set)
        running = asyncio.create_task(alerts.run())
        await asyncio.wait_for(changed.wait(), DEADLINE_S)
        assert alerts.state == (EXPECTED,)
        changed.clear()
        await clock.until_sleeping(1)
        await clock.advance(asking.REFRESH_S)
        await asyncio.wait_for(changed.wait(), DEADLINE_S)
        assert isinstance(alerts.state, Unreadable)
        running.cancel()


async def pods(cluster: World, *names: str, on: str) -> None:
    """Pods bound to a node."""
    for name in names:
        spec = {"nodeName": on, "containers": [{"name": "c", "image": "i"}]}
        await cluster.create(PODS, obj("v1", "Pod", name, "default", spec=spec))


async def test_pods_are_read_of_nodes_that_drain_for_long(tmp_path: Path) -> None:
    """Not at once, then again and again, and no longer when the drain is over."""
    async with cluster_with_definitions(tmp_path) as cluster:
        accounts = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
        await cluster.create(accounts, obj("v1", "ServiceAccount", "default", "default"))
        await pods(cluster, "one", "two", on="worker-0")
        await pods(cluster, "other", on="worker-1")
        clock, changed = ManualClock(), asyncio.Event()
        drains = DrainingPods(cluster.client, clock, changed.set)
        running = asyncio.create_task(drains.run())
        drains.follow(["worker-0"])
        await clock.until_sleeping(1)
        await clock.advance(PATIENCE_S - 10)
        assert drains.state == {}
        await clock.advance(10)
        await asyncio.wait_for(changed.wait(), DEADLINE_S)
        found = drains.pods()
        assert isinstance(found, tuple)
        assert [pod.metadata.name for pod in found] == ["one", "two"]
        await pods(cluster, "three", on="worker-0")
        changed.clear()
        await clock.until_sleeping(1)
        await clock.advance(REFRESH_S)
        await asyncio.wait_for(changed.wait(), DEADLINE_S)
        found = drains.pods()
        assert isinstance(found, tuple)
        assert len(found) == 3
        drains.follow([])
        assert drains.pods() == ()
        running.cancel()


async def test_few_nodes_are_asked_about_at_a_time() -> None:
    """Hundreds drain at once on a big cluster; a server that cannot be reached makes them unreadable, not empty."""
    clock, changed = ManualClock(), asyncio.Event()
    async with Client(ClusterConfig(server="http://127.0.0.1:1"), clock=clock) as client:
        drains = DrainingPods(client, clock, changed.set)
        drains.follow(f"worker-{number:03}" for number in range(200))
        running = asyncio.create_task(drains.run())
        await clock.until_sleeping(1)
        await clock.advance(PATIENCE_S)
        async with asyncio.timeout(DEADLINE_S):
            while len(drains.state) < NODES_AT_MOST:
                await changed.wait()
                changed.clear()
        assert len(drains.state) == NODES_AT_MOST
        found = drains.pods()
        assert isinstance(found, Unreadable)
        assert "worker-000" in found.why
        running.cancel()
