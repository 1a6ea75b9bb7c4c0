"""How long a reflector waits, what it asks for, and what it says is missing: each at its edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.kubekit.kube.apiscript import (
    Handler,
    ScriptedApi,
    event,
    eventually,
    failure,
    node,
    node_list,
    reply,
    scripted_api,
    stream,
)

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import NamespacedName, Status
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Job
from kubekit.kube import api_errors, client, watch
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Request
from kubekit.kube.watch import FirstReads, Reflector, why_unreadable

HOLD = stream(hold=True)


class Run:
    """A reflector at work, with a clock that stops."""

    def __init__(self, api: ScriptedApi, client: Client, kind: Any, options: dict[str, Any]) -> None:
        self.api = api
        self.clock = ManualClock()
        self.cache: Cache[Any] = Cache(kind)
        self.reflector = Reflector(client, kind, self.cache, clock=self.clock, **{"rand": lambda: 0.0} | options)
        self.task = asyncio.create_task(self.reflector.run())

    async def waits(self) -> float:
        """For how long it waits."""
        await self.clock.until_sleeping()
        return self.clock.sleeping[0]


@asynccontextmanager
async def running(*script: Handler, kind: Any = Node, **options: Any) -> AsyncIterator[Run]:
    """A reflector on that script."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(*script)
        run = Run(api, client, kind, options)
        try:
            yield run
        finally:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)


async def test_it_asks_for_what_it_was_made_for() -> None:
    """In the namespace and by the selectors, lists and watches alike; for as long as it was reported, and some more."""
    options = {"namespace": "ns", "label_selector": "a=b", "field_selector": "c=d", "watch_s": 100}
    async with running(node_list(version=5), HOLD, kind=Pod, rand=lambda: 0.5, **options) as run:
        await run.api.until_requests(2, 15)
        assert run.api.targets == [
            "GET /api/v1/namespaces/ns/pods?labelSelector=a%3Db&fieldSelector=c%3Dd&limit=500",
            "GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=150"
            "&labelSelector=a%3Db&fieldSelector=c%3Dd",
        ]


@pytest.mark.parametrize(("rand", "timeout_s"), [(0.0, 300), (0.5, 450), (0.999, 599)])
async def test_a_watch_lasts_five_to_ten_minutes(rand: float, timeout_s: int) -> None:
    """So that not all end at once."""
    async with running(node_list(version=5), HOLD, rand=lambda: rand) as run:
        await run.api.until_requests(2, 15)
        assert f"timeoutSeconds={timeout_s}" in run.api.targets[1]


async def test_a_list_may_be_read_as_less() -> None:
    """Changes are read as the whole."""

    class Less(Node, frozen=True):
        pass

    listed = node_list(node("a", 1), version=5)
    async with running(listed, stream(event("ADDED", node("b", 6)), hold=True), listed_as=Less) as run:
        await eventually(lambda: len(run.cache) == 2, 15)
        kinds = {obj.metadata.name: type(obj) for obj in run.cache.all()}
    assert kinds == {"a": Less, "b": Node}


@pytest.mark.parametrize(("rand", "seconds"), [(0.0, 0.8), (0.5, 1.2), (1.0, 1.6)])
async def test_a_pause_is_up_to_twice_as_long(rand: float, seconds: float) -> None:
    """So that not all come back at once."""
    async with running(failure(500, "InternalError"), rand=lambda: rand) as run:
        assert await run.waits() == pytest.approx(seconds)


@pytest.mark.parametrize(("asked", "seconds"), [("31", 31), ("0", 0.8)])
async def test_a_server_may_ask_for_a_longer_pause(asked: str, seconds: float) -> None:
    """A shorter one is ours."""
    async with running(failure(429, "TooManyRequests", Retry_After=asked)) as run:
        assert await run.waits() == pytest.approx(seconds)


async def test_whoever_knows_better_ends_a_pause() -> None:
    """And only a pause after trouble."""
    async with running(failure(404, "NotFound"), failure(404, "NotFound"), node_list(version=5), HOLD) as run:
        assert await run.waits() == pytest.approx(0.8)
        run.reflector.hurry()
        await run.api.until_requests(2, 15)
        await eventually(lambda: run.clock.sleeping == pytest.approx((1.6,)), 15)
        run.reflector.hurry()
        await eventually(lambda: run.cache.ready, 15)
        await run.api.until_requests(4, 15)
        assert run.clock.sleeping == ()


async def test_nobody_is_hurried_without_trouble() -> None:
    """The next pause is as long as any."""
    async with running(node_list(version=5), stream(event("ADDED", node("a", 6))), failure(403, "Forbidden")) as run:
        run.reflector.hurry()
        assert await run.waits() == pytest.approx(0.8)
        await asyncio.sleep(0)
        assert run.clock.sleeping == pytest.approx((0.8,))
        assert len(run.api.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "lists"),
    [
        pytest.param([failure(403, "Forbidden")], 1, id="not allowed"),
        pytest.param([failure(401, "Unauthorized")] * 2, 1, id="not known"),
        pytest.param([failure(500, "InternalError")], 1, id="once out of order"),
        pytest.param([failure(400, "BadRequest")], 2, id="a request that is not understood"),
        pytest.param([failure(404, "NotFound")], 2, id="an API that is gone"),
        pytest.param([stream(b"nonsense\n")], 2, id="a line that cannot be read"),
    ],
)
async def test_what_leads_to_a_new_list(trouble: list[Handler], lists: int) -> None:
    """An error may concern the version or one event; a new list does not help if lists are forbidden."""
    async with running(node_list(version=5), *trouble, *[node_list(version=5)] * (lists - 1), HOLD) as run:
        assert await run.waits() == pytest.approx(0.8)
        asked = len(run.api.requests)
        run.reflector.hurry()
        await run.api.until_requests(asked + lists, 15)
        assert sum("watch" not in target for target in run.api.targets) == lists


async def test_the_third_failure_in_a_row_leads_to_a_new_list() -> None:
    """Two are a server's restart; what was heard in between starts the count again."""
    broken = failure(500, "InternalError")
    heard = stream(event("ADDED", node("a", 6)))
    async with running(node_list(version=5), broken, broken, heard, broken, broken, broken, HOLD) as run:
        for wait in (0.8, 1.6, 0.8, 1.6, 3.2):
            await eventually(lambda wait=wait: run.clock.sleeping == pytest.approx((wait,)), 15)
            assert (run.cache.error is not None) is (wait == 3.2)
            await run.clock.advance(wait)
        await run.api.until_requests(8, 15)
        assert ["watch" in target for target in run.api.targets] == [False, *[True] * 6, False]


async def test_a_watch_that_ends_at_once_is_trouble() -> None:
    """Politely or not: without a word within a second it would be asked for without end."""
    async with running(node_list(version=5), stream()) as run:
        for wait in (0.8, 1.6):
            await eventually(lambda wait=wait: run.clock.sleeping == pytest.approx((wait,)), 15)
            assert run.cache.error is None
            await run.clock.advance(wait)
        await eventually(lambda: run.clock.sleeping == pytest.approx((3.2,)), 15)
        assert run.cache.error == "nodes cannot be read: the watch ended at once"


async def test_watches_that_end_after_each_event_follow_each_other_every_second() -> None:
    """Ten at once, as many as a server ends in its worst minute; what they bring is no trouble."""
    async with running(node_list(version=5), stream(event("BOOKMARK", node("", 6)))) as run:
        for number in range(3):
            await eventually(lambda: run.clock.sleeping == (1,), 15)
            assert len(run.api.requests) == 1 + 10 + number
            assert (run.cache.ready, run.cache.resource_version) == (True, "6")
            await run.clock.advance(1)


@pytest.mark.parametrize(
    ("seconds", "broken", "lists"),
    [
        pytest.param(149, False, 1, id="a quiet one"),
        pytest.param(150, False, 2, id="a silent one"),
        pytest.param(150, True, 2, id="a silent one that broke"),
        pytest.param(149, True, 1, id="a quiet one that broke"),
    ],
)
async def test_a_watch_without_a_word_for_minutes_leads_to_a_new_list(seconds: int, broken: bool, lists: int) -> None:
    """After a restore of etcd the server is behind what it is watched from, and would be silent until it is there."""
    came, ending = asyncio.Event(), asyncio.Event()

    async def silent(request: Any) -> Any:
        came.set()
        await ending.wait()
        return await (failure(503, "ServiceUnavailable") if broken else stream())(request)

    restored = node_list(node("b", 3), version=4)
    async with running(node_list(node("a", 5), version=5), silent, *[restored] * (lists - 1), HOLD) as run:
        await came.wait()
        run.clock.jump(seconds)
        ending.set()
        if broken:
            assert await run.waits() == pytest.approx(0.8)
            run.reflector.hurry()
        await run.api.until_requests(2 + lists, 15)
        assert sum("watch" not in target for target in run.api.targets) == lists
        names = ["a"] if lists == 1 else ["b"]
        await eventually(lambda: [each.metadata.name for each in run.cache.all()] == names, 15)
        assert run.cache.resource_version == ("5" if lists == 1 else "4")


@pytest.mark.parametrize("watch_s", [watch.SHORTEST_WATCH_S, 3600], ids=["the shortest", "an hour"])
async def test_nobody_waits_longer_for_a_word(watch_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the watch may last: the server would have sent a bookmark by then."""
    monkeypatch.setattr(watch, "CONNECTION_SILENCE_S", 0.1)
    monkeypatch.setattr(client, "WATCH_GRACE_S", 0)
    came = asyncio.Event()

    async def silent(request: Any) -> Any:
        run.clock.jump(watch.RELIST_AFTER_SILENCE_S)
        came.set()
        return await HOLD(request)

    restored = node_list(node("b", 3), version=4)
    script = (node_list(node("a", 5), version=5), silent, restored, HOLD)
    async with running(*script, watch_s=watch_s, rand=lambda: 0.9) as run:
        await came.wait()
        await run.waits()
        run.reflector.hurry()
        await eventually(lambda: [each.metadata.name for each in run.cache.all()] == ["b"], 90)


@pytest.mark.parametrize(
    ("version", "lists"),
    [
        pytest.param("4", 2, id="an older one"),
        pytest.param("10", 1, id="a newer one, though a shorter text comes later"),
        pytest.param("5", 1, id="the same one"),
        pytest.param("a", 1, id="one that is no number"),
        pytest.param("", 1, id="none"),
    ],
)
async def test_a_bookmark_of_an_older_version_leads_to_a_new_list(version: str, lists: int) -> None:
    """The server was restored: what was watched from is not there yet."""
    shown = stream(event("BOOKMARK", {"metadata": {"resourceVersion": version}}))
    async with running(node_list(version=5), shown, *[node_list(version=4)] * (lists - 1), HOLD) as run:
        await run.api.until_requests(2 + lists, 15)
        assert sum("watch" not in target for target in run.api.targets) == lists


@pytest.mark.parametrize(("seconds", "trouble"), [(0.5, True), (1.0, False)])
async def test_a_watch_that_was_quiet_for_a_second_is_none(seconds: float, trouble: bool) -> None:
    """The next one follows at once."""
    came, ending = asyncio.Event(), asyncio.Event()

    async def quiet(request: Any) -> Any:
        came.set()
        await ending.wait()
        return await stream()(request)

    async with running(node_list(version=5), quiet, HOLD) as run:
        await came.wait()
        run.clock.jump(seconds)
        ending.set()
        if trouble:
            assert await run.waits() == pytest.approx(0.8)
        else:
            await run.api.until_requests(3, 15)
            assert run.clock.sleeping == ()


async def test_what_was_undecodable_and_deleted() -> None:
    """Is gone from both sides, whatever its last state is."""
    odd = node("a", 7) | {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}
    lines = (event("DELETED", odd), event("MODIFIED", node("b", 8)))
    async with running(node_list(node("a", 1), node("b", 2), version=5), stream(*lines, hold=True)) as run:
        await eventually(lambda: run.cache.resource_version == "8", 15)
        assert run.cache.get(NamespacedName("", "a")) is None
        assert (len(run.cache), run.cache.undecoded) == (1, ())


ASKED = Request(method="GET", path="/")


def refused(kind: Callable[..., api_errors.ApiError]) -> api_errors.ApiError:
    """An answer of that kind."""
    return kind(Status(message="m"), ASKED)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refused(api_errors.Forbidden), 'not allowed to list pods in API group "" in namespace "ns": m'),
        (refused(api_errors.NotFound), "the server has no API pods.v1: m"),
        (DecodeError("m"), 'pods cannot be read in namespace "ns": the answer is not as expected: m'),
        (refused(api_errors.Unauthorized), 'pods cannot be read in namespace "ns": m'),
        (api_errors.ConfigError("m"), 'pods cannot be read in namespace "ns": m'),
        (api_errors.Transient("m", reason="R"), 'pods cannot be read in namespace "ns": m'),
    ],
)
def test_what_is_missing(error: Any, said: str) -> None:
    """The right, the API, or whatever the server said."""
    assert why_unreadable("list", resource_of(Pod), "ns", error) == said
    assert why_unreadable("list", resource_of(Pod), "", error) == said.replace(' in namespace "ns"', "")


async def test_a_watch_waits_for_the_first_evaluation_and_misses_nothing() -> None:
    """It begins at the version of the list; the next ones do not wait."""
    clock = ManualClock()
    first_reads = FirstReads(clock)
    script = (node_list(node("a", "5"), version="7"), stream(event("ADDED", node("b", "8"))), HOLD)
    async with running(*script, first_reads=first_reads) as run:
        await clock.until_sleeping()
        await run.cache.until_synced()
        assert len(run.api.requests) == 1
        first_reads.begin_watches()
        await run.api.until_requests(3)
        assert run.api.requests[1].query["resourceVersion"] == "7"
        assert len(run.cache) == 2


async def test_a_kind_that_is_not_served_is_not_listed_until_somebody_sees_its_definition() -> None:
    """One answer reports all of them. Once it was hurried, it is soon asked for again if it is not there yet."""
    groups = reply({"groups": [{"name": "batch", "versions": [{"groupVersion": "apps/v1"}]}]})
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(groups, failure(404, "NotFound"), reply({"metadata": {"resourceVersion": "5"}, "items": []}), HOLD)
        first_reads = FirstReads(ManualClock(), client)
        first_reads.begin_watches()
        run = Run(api, client, Job, {"first_reads": first_reads})
        try:
            assert await run.waits() == watch.LONGEST_MISSING_BACKOFF_S
            assert run.cache.error == "the server has no API jobs.batch/v1: it does not serve batch/v1"
            assert not run.cache.ready
            run.reflector.hurry()
            await eventually(lambda: run.clock.sleeping == pytest.approx((1.6,)), 15)
            assert api.targets == ["GET /apis", "GET /apis/batch/v1/jobs?limit=500"]
            await run.clock.advance(1.6)
            await eventually(lambda: run.cache.ready, 15)
        finally:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)
