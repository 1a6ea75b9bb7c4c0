"""One question at a time: what becomes of one that is given up, and of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import Handler, ScriptedApi, reply, scripted_api

from kubekit.kube.clock import ManualClock, SystemClock
from runup.advice.control.update_service import UpdateService
from runup.advice.decide.service import Query, ServiceState, is_due

DEADLINE_S = 90.0


def graph(version: str) -> Handler:
    """A graph of this one release."""
    return reply({"nodes": [{"version": version, "payload": f"registry.example/r@sha256:{'a' * 64}"}], "edges": []})


def held(handler: Handler, until: asyncio.Event) -> Handler:
    """The same answer, not before `until`."""

    async def wait(request: web.Request) -> web.StreamResponse:
        await until.wait()
        return await handler(request)

    return wait


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """An update service to script."""
    async with scripted_api() as found:
        yield found


def query(api: ScriptedApi, version: str) -> Query:
    """What to go to from this version."""
    return Query(
        url=api.url,
        channel="stable-5.0",
        architecture="amd64",
        cluster_id="6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11",
        version=version,
    )


async def asked_out() -> None:
    """Wait until nobody asks any more."""
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(
            *(t for t in asyncio.all_tasks() if t.get_name() == "update-service"), return_exceptions=True
        )


def versions(state: ServiceState) -> list[str]:
    """The releases of the graph that is held."""
    return [release.version for release in state.graph.releases] if state.graph else []


async def test_the_late_answer_to_a_superseded_question_is_not_heard(api: ScriptedApi) -> None:
    """The answer to the latest question counts, even if older answers arrive later."""
    late = asyncio.Event()
    heard: list[list[str]] = []
    answered = asyncio.Event()

    def hear() -> None:
        heard.append(versions(service.state))
        answered.set()

    service = UpdateService(SystemClock(), hear)
    api.answers(held(graph("5.0.0"), late), graph("5.0.3"))
    service.ask(query(api, "5.0.0"))
    await api.until_requests(1)
    service.ask(query(api, "5.0.3"))
    await api.until_requests(2)
    async with asyncio.timeout(DEADLINE_S):
        await answered.wait()
    late.set()
    await asked_out()
    assert heard == [["5.0.3"]]
    assert (service.state.query, service.state.asking) == (query(api, "5.0.3"), False)


async def test_the_same_question_is_asked_once_at_a_time(api: ScriptedApi) -> None:
    """Asking again while it is being asked changes nothing."""
    late = asyncio.Event()
    service = UpdateService(SystemClock(), lambda: None)
    api.answers(held(graph("5.0.0"), late))
    service.ask(query(api, "5.0.0"))
    await api.until_requests(1)
    service.ask(query(api, "5.0.0"))
    late.set()
    await asked_out()
    assert len(api.requests) == 1
    assert versions(service.state) == ["5.0.0"]


async def test_closing_gives_up_the_question(api: ScriptedApi) -> None:
    """Once closed nothing is being asked, and what would have come is not heard."""
    late = asyncio.Event()
    heard: list[int] = []
    service = UpdateService(SystemClock(), lambda: heard.append(1))
    api.answers(held(graph("5.0.0"), late))
    service.ask(query(api, "5.0.0"))
    await api.until_requests(1)
    await service.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "update-service"]
    late.set()
    await asked_out()
    assert (heard, service.state.graph) == ([], None)


async def test_closing_what_never_asked() -> None:
    """Nothing to give up is no error."""
    await UpdateService(SystemClock(), lambda: None).close()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"nodes":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="nested without end"),
        pytest.param(b'{"nodes":[{"version":"\xff"}]}', id="no UTF-8"),
    ],
)
async def test_after_an_answer_that_nobody_can_read_it_is_asked_again(api: ScriptedApi, body: bytes) -> None:
    """It is a failure like any other, and not a question that is being asked for ever."""
    heard = asyncio.Event()
    service = UpdateService(SystemClock(), heard.set)

    async def garbled(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    api.answers(garbled, graph("5.0.0"))
    service.ask(query(api, "5.0.0"))
    await asked_out()
    assert heard.is_set()
    assert service.state.failure is not None
    assert service.state.failure.reason == "ResponseInvalid"
    service.ask(query(api, "5.0.0"))
    await asked_out()
    assert versions(service.state) == ["5.0.0"]


LEADING_NOWHERE = {"edges": [{"from": "5.0.0", "to": "9.9.9"}], "risks": []}
INVALID = "ResponseInvalid"
NODE = {"version": "5.0.0", "payload": "registry.example/r"}


@pytest.mark.parametrize(
    ("document", "reason", "says"),
    [
        pytest.param(
            {"nodes": [NODE], "conditionalEdges": [LEADING_NOWHERE]},
            INVALID,
            "no node for conditional update 9.9.9",
            id="to nowhere",
        ),
        pytest.param(
            {"nodes": [NODE], "edges": [[0, 0]] * 150_001}, INVALID, "the limit is 150000", id="too many edges"
        ),
        pytest.param(
            {"nodes": [NODE], "x": "x" * (16 << 20)}, "RemoteFailed", "longer than 16777216 bytes", id="too many bytes"
        ),
        pytest.param({"nodes": [NODE], "x": [0] * 800_000}, INVALID, "the limit is 800000", id="too many values"),
    ],
)
async def test_an_answer_that_cannot_be_used_replaces_none_that_can(
    api: ScriptedApi, document: Any, reason: str, says: str
) -> None:
    """It is evaluated before it takes the place of the last good one."""
    service = UpdateService(SystemClock(), lambda: None)
    api.answers(graph("5.0.0"), reply(document))
    for _ in range(2):
        service.ask(query(api, "5.0.0"))
        await asked_out()
    failure = service.state.failure
    assert failure is not None
    assert (failure.reason, says in failure.message) == (reason, True)
    assert versions(service.state) == ["5.0.0"]


async def test_a_graph_without_the_current_release_is_one(api: ScriptedApi) -> None:
    """The reader of the answer decides its consequences."""
    service = UpdateService(SystemClock(), lambda: None)
    api.answers(graph("5.0.3"))
    service.ask(query(api, "5.0.0"))
    await asked_out()
    assert (service.state.failure, versions(service.state)) == (None, ["5.0.3"])


async def test_what_is_no_graph_is_a_failure_that_says_why(api: ScriptedApi) -> None:
    """An answer of another sort, and nobody there. The graph that was known stays, and since when it is known."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    clock = ManualClock(noon)
    service = UpdateService(clock, lambda: None)
    api.answers(graph("5.0.0"), reply({}, code=500))
    for asked, reason, says in (
        (query(api, "5.0.0"), "", ""),
        (query(api, "5.0.0"), "ResponseFailed", "unexpected HTTP status: 500 Internal Server Error"),
        (replace(query(api, "5.0.0"), url="http://127.0.0.1:1"), "RemoteFailed", "127.0.0.1:1"),
    ):
        service.ask(asked)
        await asked_out()
        failure = service.state.failure
        assert (failure.reason if failure else "") == reason
        assert says in (failure.message if failure else "")
        assert service.state.attempted_at == clock.now()
        await clock.advance(60)
        if asked.url == api.url:
            assert (versions(service.state), service.state.succeeded_at) == (["5.0.0"], noon)


async def test_a_service_that_begins_later_is_asked_again_within_seconds(api: ScriptedApi) -> None:
    """It was three minutes from the first failure on. Its answer ends the series; the next failure begins another."""
    clock = ManualClock(datetime(2026, 1, 1, 12, tzinfo=UTC))
    service = UpdateService(clock, lambda: None)
    later = query(api, "5.0.0")
    api.answers(*[reply({}, code=503)] * 3, graph("5.0.0"), reply({}, code=503))
    asked_at, began = [], clock.now()
    while len(asked_at) < 5:
        if is_due(service.state, later, now=clock.now()):
            asked_at.append((clock.now() - began).total_seconds())
            service.ask(later)
            await asked_out()
        await clock.advance(1)
    assert asked_at == [0, 5, 15, 35, 35 + 180]
    assert (service.state.failures, versions(service.state)) == (1, ["5.0.0"])
