"""A reflector against a server that cuts lines, forgets versions, refuses and goes away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kubekit.kube.apiscript import (
    Handler,
    ScriptedApi,
    cut_off,
    event,
    eventually,
    failure,
    node,
    node_list,
    reply,
    scripted_api,
    status,
    stream,
    ticking,
)

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, ObjectMeta
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import Reflector

HOLD = stream(hold=True)


class Mirror:
    """A scripted server, and a reflector that runs against it with a separate clock and no jitter."""

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self.clock = ManualClock()
        self.cache = Cache(Node, color=lambda n: [n.metadata.labels.get("color", "")])
        self.heard: list[tuple[str, str]] = []
        self.cache.add_listener(lambda change, old, new: self.heard.append((change, (new or old).metadata.name)))  # type: ignore[union-attr]
        self.task: asyncio.Task[None] | None = None

    def start(self, client: Client) -> None:
        """Run the reflector."""
        reflector = Reflector(client, Node, self.cache, clock=self.clock, rand=lambda: 0.0)
        self.task = asyncio.create_task(reflector.run())

    @property
    def names(self) -> list[str]:
        """Returns the names in the cache."""
        return sorted(item.metadata.name for item in self.cache.all())

    def watches(self) -> list[str]:
        """The versions that watches started from, in order."""
        return [request.query["resourceVersion"] for request in self.api.requests if "watch" in request.query]  # type: ignore[attr-defined]

    def lists(self) -> int:
        """How many lists were asked for."""
        return sum("watch" not in request.query for request in self.api.requests)  # type: ignore[attr-defined]


@pytest.fixture
async def mirror() -> AsyncIterator[Mirror]:
    """A reflector that is started by `go`."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        made = Mirror(api)
        made.client = client  # type: ignore[attr-defined]
        yield made
        if made.task is not None:
            made.task.cancel()
            await asyncio.gather(made.task, return_exceptions=True)


async def go(mirror: Mirror, *script: Handler) -> None:
    """Run the reflector on `script`."""
    mirror.api.answers(*script)
    mirror.start(mirror.client)  # type: ignore[attr-defined]


async def test_list_then_watch(mirror: Mirror) -> None:
    """Pages, then changes after the list's version; bookmarks move the version without a change."""
    await go(
        mirror,
        node_list(node("a", 1), version=5, token="t"),
        node_list(node("b", 2, color="red"), version=5),
        stream(
            event("MODIFIED", node("a", 6, color="red")),
            event("ADDED", node("c", 7)),
            event("DELETED", node("b", 8)),
            event("BOOKMARK", node("", 20)),
            hold=True,
        ),
    )
    await eventually(lambda: mirror.cache.resource_version == "20")
    assert mirror.names == ["a", "c"]
    assert [item.metadata.name for item in mirror.cache.by_index("color", "red")] == ["a"]
    assert mirror.cache.ready
    assert mirror.heard == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("ADDED", "c"), ("DELETED", "b")]
    assert mirror.watches() == ["5"]


async def test_a_change_between_two_pages_is_heard(mirror: Mirror) -> None:
    """A server without old versions has another version on each page: what changed after the first is watched."""
    pages = (node_list(node("a", 1), version=5, token="t"), node_list(node("b", 7), version=7))
    await go(mirror, *pages, stream(event("MODIFIED", node("a", 6)), event("MODIFIED", node("b", 7)), hold=True))
    await eventually(lambda: mirror.cache.resource_version == "7")
    assert [item.metadata.resource_version for item in mirror.cache.all()] == ["6", "7"]
    assert mirror.watches() == ["5"]


async def test_a_watch_that_ends_is_resumed_where_it_stopped(mirror: Mirror) -> None:
    """No new list, and at once: the server ends watches all the time."""
    await go(mirror, node_list(version=5), stream(event("ADDED", node("a", 6)), event("BOOKMARK", node("", 9))), HOLD)
    await mirror.api.until_requests(3)
    assert (mirror.watches(), mirror.lists(), mirror.clock.sleeping) == (["5", "9"], 1, ())


async def test_a_cut_line_is_dropped_and_comes_again(mirror: Mirror) -> None:
    """An incomplete list was not seen, so the next watch starts before it."""
    line = event("ADDED", node("b", 7))
    await go(mirror, node_list(version=5), stream(event("ADDED", node("a", 6)), line[:20]), stream(line, hold=True))
    await eventually(lambda: mirror.names == ["a", "b"])
    assert mirror.watches() == ["5", "6"]


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(failure(410, "Expired"), id="as the answer"),
        pytest.param(stream(event("ERROR", status(410, "Expired"))), id="in the middle of a watch"),
    ],
)
async def test_a_version_that_is_gone_leads_to_a_list_with_a_diff(mirror: Mirror, gone: Handler) -> None:
    """Listeners hear what changed meanwhile, deletions too, and nothing of what did not."""
    await go(
        mirror,
        node_list(node("same", 1), node("changed", 2), node("deleted", 3), version=5),
        gone,
        node_list(node("same", 1), node("changed", 9), node("new", 8), version=10),
        HOLD,
    )
    await mirror.api.until_requests(4)
    assert mirror.names == ["changed", "new", "same"]
    assert mirror.heard[3:] == [("MODIFIED", "changed"), ("ADDED", "new"), ("DELETED", "deleted")]
    assert mirror.watches() == ["5", "10"]
    assert mirror.cache.ready


async def test_a_server_that_forgets_at_once_is_asked_ever_more_slowly(mirror: Mirror) -> None:
    """Even a fresh list's version is gone: the second time there is a pause."""
    await go(mirror, node_list(version=5), failure(410, "Expired"), node_list(version=5), failure(410, "Expired"), HOLD)
    await mirror.clock.until_sleeping()
    assert mirror.clock.sleeping == pytest.approx((1.6,))


async def test_a_refused_kind_says_which_rule_is_missing(mirror: Mirror) -> None:
    """`cache.error` names verb, resource and group; it is asked again, and heals."""
    await go(
        mirror,
        failure(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes"'),
        node_list(node("a", 1), version=5),
        HOLD,
    )
    await mirror.clock.until_sleeping()
    assert mirror.cache.error == (
        'not allowed to list nodes in API group "": nodes is forbidden: User "u" cannot list resource "nodes"'
    )
    assert not mirror.cache.synced
    await mirror.clock.advance(0.8)
    await eventually(lambda: mirror.cache.ready)
    assert mirror.names == ["a"]


async def test_a_watch_that_is_refused_is_not_a_cache_that_is_ready(mirror: Mirror) -> None:
    """One may be allowed to list and not to watch: what is here is true now, and will not stay so."""
    await go(mirror, node_list(node("a", 1), version=5), failure(403, "Forbidden", "no watching"))
    await mirror.clock.until_sleeping()
    assert mirror.cache.error == 'not allowed to watch nodes in API group "": no watching'
    assert (mirror.cache.synced, mirror.cache.ready, mirror.names) == (True, False, ["a"])
    await mirror.clock.advance(0.8)
    await mirror.api.until_requests(3)
    assert mirror.lists() == 1


async def test_a_kind_that_the_server_does_not_know(mirror: Mirror) -> None:
    """The error names the API; when it comes (a CRD is installed), the cache fills."""
    await go(mirror, failure(404, "NotFound", "the server could not find it"), node_list(version=5), HOLD)
    await mirror.clock.until_sleeping()
    assert mirror.cache.error == "the server has no API nodes.v1: the server could not find it"
    await mirror.clock.advance(0.8)
    await eventually(lambda: mirror.cache.ready)


async def test_an_answer_that_cannot_be_read(mirror: Mirror) -> None:
    """Bad data is unknown, not empty."""
    await go(mirror, reply({"metadata": {"resourceVersion": "5"}, "items": "none"}))
    await mirror.clock.until_sleeping()
    assert mirror.cache.error is not None
    assert "nodes cannot be read: the answer is not as expected" in mirror.cache.error
    assert not mirror.cache.synced


def odd(name: str, version: int) -> dict[str, Any]:
    """A Node whose condition has a status that is none."""
    return node(name, version) | {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}


ODD = "Invalid enum value 'true' - at `$.status.conditions[0].status`"


async def test_one_bad_object_in_a_list_costs_nothing_but_itself(mirror: Mirror) -> None:
    """It is named with the decoder's words; the others are there, and followed."""
    await go(mirror, node_list(node("a", 1), odd("b", 2), node("c", 3), version=5), HOLD)
    await eventually(lambda: mirror.cache.ready)
    assert mirror.names == ["a", "c"]
    assert [(bad.name, bad.problem) for bad in mirror.cache.undecoded] == [("b", ODD)]


async def test_an_object_that_becomes_bad_and_good_again(mirror: Mirror) -> None:
    """Knowledge about it expires; the watch continues, and the next good state counts."""
    seen: list[tuple[list[str], list[str]]] = []
    mirror.cache.add_state_listener(lambda: seen.append((mirror.names, [bad.name for bad in mirror.cache.undecoded])))
    first = stream(event("MODIFIED", odd("a", 6)), event("MODIFIED", node("b", 7)), event("MODIFIED", odd("a", 8)))
    await go(
        mirror, node_list(node("a", 1), node("b", 2), version=5), first, stream(event("MODIFIED", node("a", 9))), HOLD
    )
    await mirror.api.until_requests(4)
    assert seen[1:] == [(["b"], ["a"]), (["a", "b"], [])]
    assert (mirror.watches(), mirror.lists()) == (["5", "8", "9"], 1)


async def test_a_bad_object_that_is_deleted_is_gone(mirror: Mirror) -> None:
    """Whether its last state can be read or not."""
    lines = stream(
        event("DELETED", odd("a", 6)), event("DELETED", node("b", 7)), event("BOOKMARK", node("", 9)), hold=True
    )
    await go(mirror, node_list(odd("a", 1), odd("b", 2), version=5), lines)
    await eventually(lambda: mirror.cache.resource_version == "9")
    assert mirror.cache.undecoded == ()


async def test_a_bad_object_that_a_new_list_has_no_more(mirror: Mirror) -> None:
    """After an expired version: what the list says counts."""
    gone = stream(event("ERROR", status(410, "Expired")))
    await go(mirror, node_list(odd("a", 1), version=5), gone, node_list(node("b", 8), version=9), HOLD)
    await eventually(lambda: mirror.names == ["b"])
    assert mirror.cache.undecoded == ()


PARTLY = '299 - "incomplete: only the namespace \\"a\\" was recorded"'
WHY = 'only the namespace "a" was recorded'


async def test_a_list_that_the_server_calls_incomplete(mirror: Mirror) -> None:
    """Its reason is kept next to the objects; a watch that opens without it says that all is known by now."""
    shown: list[tuple[str, ...]] = []
    mirror.cache.add_state_listener(lambda: shown.append(mirror.cache.incomplete))
    pages = (node_list(node("a", 1), version=5, token="t", Warning=PARTLY), node_list(version=5, Warning=PARTLY))
    await go(mirror, *pages, stream(event("ADDED", node("b", 7)), hold=True))
    await eventually(lambda: mirror.names == ["a", "b"])
    assert shown == [(WHY,), ()]


async def test_a_bookmark_with_zero_values_of_any_kind(mirror: Mirror) -> None:
    """Only its version means anything."""
    zero = odd("", 20)
    await go(mirror, node_list(version=5), stream(event("BOOKMARK", zero), hold=True))
    await eventually(lambda: mirror.cache.resource_version == "20")
    assert mirror.cache.undecoded == ()


async def test_back_off_doubles_to_10_s_and_starts_over(mirror: Mirror) -> None:
    """0.8 s, 1.6 s, ... and after a success from the beginning."""
    await go(mirror, failure(500, "InternalError"))
    waits = []
    for _ in range(7):
        await mirror.clock.until_sleeping()
        waits.append(mirror.clock.sleeping[0])
        if len(waits) == 7:
            mirror.api.answers(
                node_list(version=5), stream(event("ADDED", node("a", 6))), failure(500, "InternalError")
            )
        await mirror.clock.advance(waits[-1])
    assert waits == pytest.approx([0.8, 1.6, 3.2, 6.4, 10, 10, 10])
    await mirror.clock.until_sleeping()
    assert mirror.clock.sleeping == pytest.approx((0.8,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "reason", "longest"),
    [(404, "NotFound", 120), pytest.param(500, "InternalError", 10, marks=pytest.mark.slow)],
)
async def test_back_off_stays_where_it_is_for_months(mirror: Mirror, status: int, reason: str, longest: float) -> None:
    """After 1,100 failures, where a doubling would no longer be a number, as after three."""
    await go(mirror, failure(status, reason))
    for _ in range(1100):
        await mirror.clock.until_sleeping()
        await mirror.clock.advance(mirror.clock.sleeping[0])
    await mirror.clock.until_sleeping()
    assert mirror.clock.sleeping == (longest,)


async def test_retry_after_is_a_lower_bound(mirror: Mirror) -> None:
    """A server that wants a minute gets it."""
    await go(mirror, failure(429, "TooManyRequests", Retry_After="60"))
    await mirror.clock.until_sleeping()
    assert mirror.clock.sleeping == (60,)


async def test_a_short_outage_does_not_make_the_cache_unready(mirror: Mirror) -> None:
    """Twice it may fail, as when a server restarts; the third time readers must know."""
    await go(mirror, node_list(node("a", 1), version=5), cut_off)
    errors = []
    for _ in range(3):
        await mirror.clock.until_sleeping()
        errors.append(mirror.cache.error)
        await mirror.clock.advance(mirror.clock.sleeping[0])
    assert errors[:2] == [None, None]
    assert errors[2] is not None
    assert "nodes cannot be read: could not reach http://127.0.0.1" in errors[2]
    assert mirror.names == ["a"]


async def test_state_listeners_hear_of_trouble_and_its_end(mirror: Mirror) -> None:
    """Whoever decides on a cache decides again when it cannot be trusted any more, or again."""
    states: list[bool] = []
    mirror.cache.add_state_listener(lambda: states.append(mirror.cache.ready))
    await go(mirror, failure(403, "Forbidden"), node_list(version=5), HOLD)
    await mirror.clock.until_sleeping()
    await mirror.clock.advance(0.8)
    await asyncio.wait_for(mirror.cache.until_synced(), 90)
    await eventually(lambda: mirror.cache.ready)
    assert (states[0], states[-1]) == (False, True)


class FlakyServer:
    """Nodes with a history: lists in pages of two, watches that are cut short, versions that are forgotten.

    Each page is of the moment in which it is asked for, as in an aggregated API server that keeps no old versions.
    """

    def __init__(self, cuts: list[int], forget: list[bool]) -> None:
        self.version = 1
        self.nodes: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, bytes]] = []
        self.cuts, self.forget = cuts, forget
        self.changed = asyncio.Event()

    def put(self, name: str, color: str) -> None:
        """Add or change a node."""
        self.version += 1
        kind = "MODIFIED" if name in self.nodes else "ADDED"
        self.nodes[name] = node(name, self.version, color=color)
        self._record(kind, self.nodes[name])

    def delete(self, name: str) -> None:
        """Delete a node, if there is one."""
        if name in self.nodes:
            self.version += 1
            gone = self.nodes.pop(name)
            self._record("DELETED", {"metadata": gone["metadata"] | {"resourceVersion": str(self.version)}})

    def _record(self, kind: str, obj: dict[str, Any]) -> None:
        self.log.append((self.version, event(kind, obj)))
        self.changed.set()
        self.changed = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """List or watch."""
        query = request.rel_url.query
        if "watch" not in query:
            names = sorted(name for name in self.nodes if name > query.get("continue", ""))
            page = [self.nodes[name] for name in names[:2]]
            token = names[1] if len(names) > 2 else ""
            return await node_list(*page, version=self.version, token=token)(request)  # type: ignore[arg-type]
        if self.forget and self.forget.pop():
            return await failure(410, "Expired")(request)  # type: ignore[arg-type]
        return await self._watch(request, int(query["resourceVersion"]))

    async def _watch(self, request: web.BaseRequest, since: int) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        budget = self.cuts.pop() if self.cuts else None
        while True:
            changed = self.changed
            for version, line in [entry for entry in self.log if entry[0] > since]:
                since = version
                await response.write(line[:budget])
                if budget is not None and (budget := budget - len(line)) <= 0:
                    assert request.transport is not None
                    request.transport.close()
                    return response
            await changed.wait()


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "breathe"]), st.sampled_from("abcde"), st.sampled_from("rg")),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(OPERATIONS, st.lists(st.integers(1, 400), max_size=5), st.lists(st.booleans(), max_size=4))
async def test_the_cache_ends_up_equal_to_the_server(
    operations: list[tuple[str, str, str]], cuts: list[int], forget: list[bool]
) -> None:
    """Whatever happens, and wherever connections are cut: objects, index, and the sum of what listeners heard."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        server = FlakyServer(list(cuts), list(forget))
        api.answers(server.answer)  # type: ignore[arg-type]
        clock = ManualClock()
        cache = Cache(Node, color=lambda n: [n.metadata.labels["color"]])
        heard: dict[str, str] = {}

        def listen(change: str, old: Node | None, new: Node | None) -> None:
            if new is None:
                assert old is not None
                del heard[old.metadata.name]
                return
            assert (change == "ADDED") == (new.metadata.name not in heard)
            heard[new.metadata.name] = new.metadata.resource_version

        cache.add_listener(listen)
        reflector = asyncio.create_task(Reflector(client, Node, cache, clock=clock, rand=lambda: 0.0).run())
        try:
            async with ticking(clock):
                for operation, name, color in operations:
                    if operation == "put":
                        server.put(name, color)
                    elif operation == "delete":
                        server.delete(name)
                    else:
                        await api.until_requests(len(api.requests))
                        await asyncio.sleep(0)
                expected = {name: obj["metadata"]["resourceVersion"] for name, obj in server.nodes.items()}
                await eventually(lambda: cache.ready and cache.resource_version == str(server.version))
            assert {item.metadata.name: item.metadata.resource_version for item in cache.all()} == expected
            assert heard == expected
            for color in "rg":
                want = sorted(n for n, obj in server.nodes.items() if obj["metadata"]["labels"]["color"] == color)
                assert [item.metadata.name for item in cache.by_index("color", color)] == want
            assert cache.get(NamespacedName("", "zzz")) is None
        finally:
            reflector.cancel()
            await asyncio.gather(reflector, return_exceptions=True)


def test_status_lines_are_json() -> None:
    """The helper writes what a server writes."""
    assert json.loads(event("ERROR", status(410, "Gone")))["object"]["code"] == 410


async def test_of_a_page_only_what_is_kept_outlives_it() -> None:
    """A cluster with hundreds of thousands of pods is never there as a whole: a page is slimmed before the next."""
    happened: list[str] = []

    def keep(obj: Node) -> Node:
        happened.append(f"kept {obj.metadata.name}")
        return Node(metadata=ObjectMeta(name=obj.metadata.name, resource_version=obj.metadata.resource_version))

    def noting_its_name(page: Handler, name: str) -> Handler:
        async def handler(request: Any) -> Any:
            happened.append(name)
            return await page(request)

        return handler

    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(
            noting_its_name(node_list(node("a", 1, color="red"), version=5, token="t"), "first page"),
            noting_its_name(node_list(node("b", 2), version=5), "second page"),
            stream(event("MODIFIED", node("a", 6, color="blue")), hold=True),
        )
        cache = Cache(Node, keep=keep)
        following = asyncio.create_task(Reflector(client, Node, cache, clock=SystemClock()).run())
        try:
            await eventually(lambda: cache.resource_version == "6")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    assert happened == ["first page", "kept a", "second page", "kept b", "kept a"]
    assert [obj.metadata.labels for obj in cache.all()] == [{}, {}]
