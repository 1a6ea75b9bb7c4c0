"""Asking Prometheus: at once within a budget, again in time, and with a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.prometheus import needed, prometheus
from tests.servers import eventually

from kubekit.kube.auth import Static
from kubekit.kube.clock import ManualClock
from runup.advice.control.prometheus import AT_ONCE, Prometheus
from runup.advice.decide.promql import evaluate

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Played:
    """A Prometheus whose answers the test holds back, and that counts how many are asked for at once."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = 0
        self.most = 0
        self.go = asyncio.Event()
        self.value = "1"
        self.alerts: list[Any] = []

    async def query(self, request: web.Request) -> web.Response:
        self.asked.append(request.query["query"])
        self.open += 1
        self.most = max(self.most, self.open)
        await self.go.wait()
        self.open -= 1
        result = [{"metric": {}, "value": [1, self.value]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    async def list_alerts(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": {"alerts": self.alerts}})


@asynccontextmanager
async def asking(*, hosted: bool = False) -> AsyncGenerator[tuple[Played, Prometheus, ManualClock, asyncio.Event]]:
    """Yields a played Prometheus, its client, the clock, and an event that is set where something changed."""
    played, clock, changed = Played(), ManualClock(START), asyncio.Event()
    app = web.Application()
    app.add_routes([web.get("/api/v1/query", played.query), web.get("/api/v1/alerts", played.list_alerts)])
    async with TestServer(app) as server:
        asks = Prometheus(str(server.make_url("")), Static(), clock, changed.set, hosted=hosted)
        try:
            yield played, asks, clock, changed
        finally:
            played.go.set()
            await asks.close()


def rounds() -> list[asyncio.Task[Any]]:
    """The rounds of queries that are under way."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "prometheus"]


def quiet() -> bool:
    """Whether nothing is being asked for."""
    return not rounds()


async def until(condition: Any) -> None:
    """Waits until it holds."""
    async with asyncio.timeout(90):
        while not condition():  # noqa: ASYNC110 -- what is waited for is no event
            await asyncio.sleep(0.001)


async def test_a_hundred_at_once_within_the_budget() -> None:
    """Never more than eight are open, and all are known in the end."""
    async with asking() as (played, asks, _clock, changed):
        queries = [f"q{number}" for number in range(100)]
        asks.want(queries)
        await until(lambda: played.open == AT_ONCE)
        played.go.set()
        await until(lambda: len(asks.state.answers) == 100 and changed.is_set())
        assert played.most == AT_ONCE
        assert sorted(played.asked) == sorted(queries)


async def test_what_is_closed_in_the_middle_asks_no_more() -> None:
    """Neither the queries that are open nor those that wait for their turn continue."""
    async with asking() as (played, asks, _clock, _changed):
        before = asyncio.all_tasks()
        asks.want([f"q{number}" for number in range(2 * AT_ONCE)])
        await until(lambda: played.open == AT_ONCE)
        of_queries = {task for task in asyncio.all_tasks() - before if "_run_query" in str(task.get_coro())}
        assert len(of_queries) == 2 * AT_ONCE
        await asks.close()
        await asyncio.wait(of_queries, timeout=90)
        assert all(task.cancelled() for task in of_queries)


async def test_nothing_is_asked_oftener_than_it_is_due() -> None:
    """Asks again after 30 s if a rule applies and after 5 minutes if not; unused queries are dropped."""
    async with asking() as (played, asks, clock, _changed):
        played.go.set()
        for _ in range(3):
            asks.want(["q"])
            await until(quiet)
        assert played.asked == ["q"]
        clock.jump(29)
        asks.want(["q"])
        await until(quiet)
        assert played.asked == ["q"]
        clock.jump(1)
        played.value = "0"
        asks.want(["q"])
        await until(quiet)
        assert played.asked == ["q", "q"]
        clock.jump(299)
        asks.want(["q"])
        await until(quiet)
        assert played.asked == ["q", "q"]
        asks.want([])
        assert asks.state.answers == {}


async def test_what_has_waited_longest_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without an answer comes before all others, and then the oldest answer."""
    monkeypatch.setattr("runup.advice.control.prometheus.AT_ONCE", 1)
    async with asking() as (played, asks, clock, _changed):
        played.go.set()
        for names in (["c"], ["c", "b"], ["c", "b", "a"]):
            asks.want(names)
            await until(quiet)
            clock.jump(10)
        played.asked.clear()
        clock.jump(30)
        asks.want(["a", "b", "c", "new"])
        await until(quiet)
        assert played.asked == ["new", "c", "b", "a"]


@pytest.mark.parametrize(
    ("hosted", "asked"),
    [(True, 'max(a{_id="4f1a"} * b{_id="4f1a",c=""})'), (False, 'max(a{_id=""} * b{_id="",c=""})')],
    ids=["many clusters share it", "it is the cluster's own"],
)
async def test_a_query_names_the_cluster(hosted: bool, asked: str) -> None:
    """Results are cached under the query as the update service wrote it."""
    query = 'max(a{_id=""} * b{_id="",c=""})'
    async with asking(hosted=hosted) as (played, asks, _clock, _changed):
        played.go.set()
        asks.want([query], "4f1a")
        await until(lambda: asks.state.answers)
        assert played.asked == [asked]
        assert list(asks.state.answers) == [query]


async def test_a_prometheus_that_is_away() -> None:
    """Each query says so, and alerts keep what was known with the reason."""
    clock, changed = ManualClock(START), asyncio.Event()
    asks = Prometheus("http://127.0.0.1:1", Static(), clock, changed.set)
    asks.want(["q"])
    await until(lambda: "q" in asks.state.answers and asks.state.alerting.error)
    assert str(evaluate("q", asks.state, START)).startswith("executing PromQL query: http://127.0.0.1:1: ")
    assert asks.state.alerting.at is None
    await asks.close()


async def test_closing_ends_the_queries_in_progress() -> None:
    """They have ended when it returns: the session that they use is closed next."""
    asks = Prometheus("http://127.0.0.1:1", Static(), ManualClock(START), lambda: None)
    asks.want(["q"])
    assert len(rounds()) == 1
    await asks.close()
    assert rounds() == []


async def test_nobody_is_asked_without_an_address() -> None:
    """And the rules say whose flag is missing."""
    asks = Prometheus("", Static(), ManualClock(START), lambda: None)
    asks.want(["q"])
    assert rounds() == []
    assert "--prometheus-url" in str(evaluate("q", asks.state, START))
    await asks.close()


DEEP = b'{"status":"success","data":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


async def test_answers_that_nobody_can_read_are_answers() -> None:
    """Not asked again before their time, and the rule and the alerts say why they are not known."""
    asked = []

    async def garbled(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(body=DEEP, content_type="application/json")

    app = web.Application()
    app.router.add_get("/{path:.*}", garbled)
    async with TestServer(app) as server:
        asks = Prometheus(str(server.make_url("")), Static(), ManualClock(START), lambda: None)
        for _ in range(3):
            asks.want(["q"])
            await until(quiet)
        await asks.close()
    assert sorted(asked) == ["/api/v1/alerts", "/api/v1/query"]
    assert "cannot be read" in str(evaluate("q", asks.state, START))
    assert asks.state.alerting.error


@needed
@pytest.mark.slow
def test_a_real_one(tmp_path: Path) -> None:
    """A query that is 1, 0, absent and no PromQL at all."""
    queries = ['max(up{job="test"})', "0 * group(some)", "absent_series", "max(", "group(some) or 0 * group(some)"]
    with prometheus(tmp_path, []) as real:
        real.series["some"] = 5
        eventually(lambda: real.get("/api/v1/query?query=some")["data"]["result"], "the series is scraped")

        async def ask() -> dict[str, Any]:
            clock = ManualClock(START)
            asks = Prometheus(real.url, Static(), clock, lambda: None)
            asks.want(queries)
            await until(lambda: len(asks.state.answers) == len(queries))
            await asks.close()
            return {query: evaluate(query, asks.state, START) for query in queries}

        found = asyncio.run(ask())
    assert found[queries[0]] is True
    assert found[queries[1]] is False
    assert found[queries[4]] is True
    assert "length must be one, but is 0" in found[queries[2]]
    assert "parse error" in found[queries[3]]
