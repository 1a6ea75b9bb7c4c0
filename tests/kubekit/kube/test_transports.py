"""Both transports do the same with the same answers: errors, retries, credentials, keep-alive."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web
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
    silence,
    stream,
    ticking,
)

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.scheme import resource_of
from kubekit.http.http_connection import Answer
from kubekit.kube import api_errors, calls
from kubekit.kube.auth import Credential, Static, TokenFile
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request
from kubekit.kube.transport import Timeouts, unreachable_error
from runup import __version__

T = TypeVar("T")
MAPS = resource_of(ConfigMap)
MAP = {"metadata": {"name": "a", "namespace": "ns"}}
GET = calls.get(Node, "a")
CREATE = calls.create(MAPS, MAP)
APPLY = calls.apply(MAPS, MAP, field_manager="m")
DELETE = calls.delete(MAPS, "a", "ns")


class Transport:
    """One of the two clients, behind one way to call it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.clock = ManualClock()
        self.clients: list[Client | SyncClient] = []

    def use(self, config: ClusterConfig, **options: Any) -> Transport:
        """Talk to the cluster of `config` from now on."""
        kind = Client if self.kind == "async" else SyncClient
        self.clients.append(kind(config, clock=self.clock, **options))
        return self

    async def send(self, call: Call[T]) -> T:
        """The answer to `call`, time passing whenever the client waits."""
        client = self.clients[-1]
        async with ticking(self.clock):
            if isinstance(client, Client):
                return await client.send(call)
            return await asyncio.to_thread(client.send, call)

    async def list_all(self) -> tuple[list[str], str]:
        """The names of all nodes, and the version."""
        client = self.clients[-1]
        if isinstance(client, Client):
            items, version = await client.list_all(Node)
        else:
            items, version = await asyncio.to_thread(client.list_all, Node)
        return [item.metadata.name for item in items], version

    async def watch(self, timeout_seconds: int = 60) -> list[tuple[str, str]]:
        """Types and names of the events of a watch until it ends."""
        client = self.clients[-1]
        if isinstance(client, Client):
            call = calls.watch(Node, resource_version="1", timeout_seconds=timeout_seconds)
            return [(e.type, e.object.metadata.name) async for e in client.stream(call, timeout_s=timeout_seconds)]
        events = client.watch(Node, resource_version="1", timeout_seconds=timeout_seconds)
        return await asyncio.to_thread(lambda: [(e.type, e.object.metadata.name) for e in events])

    async def close(self) -> None:
        """Close what was opened."""
        for client in self.clients:
            await client.close() if isinstance(client, Client) else client.close()


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A scripted server."""
    async with scripted_api() as running:
        yield running


@pytest.fixture(params=["async", "sync"])
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    """Each of the two transports in turn."""
    made = Transport(request.param)
    yield made
    await made.close()


async def test_what_is_sent(api: ScriptedApi, transport: Transport) -> None:
    """Path under the server's own, body, who asks and on whose behalf."""
    api.answers(reply(MAP))
    config = ClusterConfig(
        server=api.url + "/prefix",
        auth=Static(Credential(authorization="Bearer t")),
        headers=(("Impersonate-Group", "g"), ("Impersonate-Group", "h")),
    )
    assert await transport.use(config, user_agent="me/1").send(APPLY) == MAP
    (request,) = api.requests
    assert api.targets == ["PATCH /prefix/api/v1/namespaces/ns/configmaps/a?fieldManager=m"]
    assert request.headers["User-Agent"] == "me/1"
    assert request.headers["Authorization"] == "Bearer t"
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.headers.getall("Impersonate-Group") == ["g", "h"]
    assert api.bodies == [APPLY.request.body]


async def test_an_encoded_name_arrives_as_it_was(api: ScriptedApi, transport: Transport) -> None:
    """The path is not encoded twice."""
    api.answers(reply(node("a b", 1)))
    await transport.use(ClusterConfig(server=api.url)).send(calls.get(Node, "a b?c"))
    assert api.requests[0].raw_path == "/api/v1/nodes/a%20b%3Fc"


async def test_an_error_is_its_status(api: ScriptedApi, transport: Transport) -> None:
    """The server's own words, and the request that they answer."""
    api.answers(failure(404, "NotFound", 'nodes "a" not found'))
    with pytest.raises(api_errors.NotFound, match='nodes "a" not found') as caught:
        await transport.use(ClusterConfig(server=api.url)).send(GET)
    assert caught.value.request == GET.request


async def test_a_redirect_is_not_followed(api: ScriptedApi, transport: Transport) -> None:
    """Credentials are for the server that was named."""

    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    api.answers(elsewhere, reply(node("a", 1)))
    with pytest.raises(api_errors.ApiError, match="status code 307"):
        await transport.use(ClusterConfig(server=api.url)).send(GET)
    assert len(api.requests) == 1


async def test_the_connection_is_kept(api: ScriptedApi, transport: Transport) -> None:
    """A second call does not connect again, an error in between neither."""
    api.answers(reply(node("a", 1)), failure(404, "NotFound"), reply(node("a", 1)))
    transport.use(ClusterConfig(server=api.url))
    await transport.send(GET)
    with pytest.raises(api_errors.NotFound):
        await transport.send(GET)
    await transport.send(GET)
    assert len({id(request.transport) for request in api.requests}) == 1


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_says_when_is_asked_then(api: ScriptedApi, transport: Transport, code: int) -> None:
    """Retry-After is honoured in place, for a create too: the server did nothing yet."""
    api.answers(failure(code, "", Retry_After="2"), failure(code, "", Retry_After="3"), reply(MAP))
    assert await transport.use(ClusterConfig(server=api.url)).send(CREATE) == MAP
    assert transport.clock.monotonic() == 5


@pytest.mark.parametrize(
    ("seconds", "asked", "waited"),
    [pytest.param("60", 1, 0, id="too long a wait"), pytest.param("1", 6, 5, id="told to wait again and again")],
)
async def test_patience_ends(api: ScriptedApi, transport: Transport, seconds: str, asked: int, waited: float) -> None:
    """Then the caller hears of it, and for how long it should wait."""
    api.answers(failure(429, "TooManyRequests", Retry_After=seconds))
    with pytest.raises(api_errors.TooManyRequests) as caught:
        await transport.use(ClusterConfig(server=api.url)).send(GET)
    assert caught.value.retry_after_s == float(seconds)
    assert (len(api.requests), transport.clock.monotonic()) == (asked, waited)


async def test_a_server_error_without_a_date_is_not_repeated(api: ScriptedApi, transport: Transport) -> None:
    """It may have done something before it failed."""
    api.answers(failure(500, "InternalError"))
    with pytest.raises(api_errors.ServerError):
        await transport.use(ClusterConfig(server=api.url)).send(CREATE)
    assert len(api.requests) == 1


async def test_a_refused_token_is_read_again_once(api: ScriptedApi, transport: Transport, tmp_path: Path) -> None:
    """A token that was renewed a second ago works; one that stays refused is an error after two attempts."""
    path = tmp_path / "token"
    path.write_text("one")

    async def renew(request: web.Request) -> web.StreamResponse:
        path.write_text("two")
        return await failure(401, "Unauthorized")(request)

    api.answers(renew, reply(node("a", 1)), failure(401, "Unauthorized"))
    transport.use(ClusterConfig(server=api.url, auth=TokenFile(path)))
    await transport.send(GET)
    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer one", "Bearer two"]
    with pytest.raises(api_errors.Unauthorized):
        await transport.send(GET)
    assert len(api.requests) == 4


@pytest.mark.parametrize("call", [GET, APPLY], ids=["get", "apply"])
async def test_an_idle_connection_that_was_dropped_is_replaced(
    api: ScriptedApi, transport: Transport, call: Call[Any]
) -> None:
    """An idempotent request is sent again over a new connection."""
    api.answers(reply(node("a", 1)), cut_off, reply(node("a", 1)))
    transport.use(ClusterConfig(server=api.url))
    await transport.send(GET)
    await transport.send(call)
    assert len(api.requests) == 3


async def test_a_create_is_never_sent_twice(api: ScriptedApi, transport: Transport) -> None:
    """Whether it arrived is unknown, and the error says that there was no answer."""
    api.answers(reply(node("a", 1)), cut_off, reply(MAP))
    transport.use(ClusterConfig(server=api.url))
    await transport.send(GET)
    with pytest.raises(api_errors.Unreachable):
        await transport.send(CREATE)
    assert len(api.requests) == 2


async def test_a_server_that_always_hangs_up_is_given_up(api: ScriptedApi, transport: Transport) -> None:
    """There is no endless reconnecting."""
    api.answers(reply(node("a", 1)), cut_off)
    transport.use(ClusterConfig(server=api.url))
    await transport.send(GET)
    with pytest.raises(api_errors.Unreachable):
        await transport.send(GET)
    assert len(api.requests) <= 5


@pytest.mark.parametrize(
    ("call", "first"),
    [
        pytest.param(DELETE, cut_off, id="aiohttp repeats it over a new connection"),
        pytest.param(APPLY, cut_off, id="we repeat it over a new connection"),
        pytest.param(CREATE, failure(429, "TooManyRequests", Retry_After="30"), id="the server puts it off"),
        pytest.param(CREATE, failure(401, "Unauthorized"), id="the token is read again"),
    ],
)
async def test_each_repetition_of_a_write_is_asked_about(api: ScriptedApi, call: Call[Any], first: Handler) -> None:
    """A write that may not be sent any more is not, however often it was sent before; what only reads is sent."""
    api.answers(reply(node("a", 1)), first, reply(MAP))
    answers, asked, clock = iter((True, False, False)), list[str](), ManualClock()

    def may_write(request: Request) -> bool:
        asked.append(request.method)
        return next(answers)

    async with Client(ClusterConfig(server=api.url), clock=clock) as client, ticking(clock):
        # There is a connection by then, as there is where work begins.
        await client.send(GET)
        client.fence(may_write)
        with pytest.raises(api_errors.Fenced) as raised:
            await client.send(call)
        assert raised.value.reason == "LeaseNotHeld"
        assert f"{call.request.method} {call.request.path}" in str(raised.value)
        assert asked == [call.request.method] * 2
        await client.send(GET)
        with pytest.raises(api_errors.Fenced):
            await client.send(call)
    assert [request.method for request in api.requests] == ["GET", call.request.method, "GET"]


async def test_a_slow_server(api: ScriptedApi, transport: Transport) -> None:
    """No answer in time is a separate error, and not asked again: the server may be at work on it.

    However long a connection may take.
    """
    api.answers(reply(node("a", 1)), silence)
    transport.use(ClusterConfig(server=api.url), timeouts=Timeouts(connect_s=900, answer_s=0.3))
    await transport.send(GET)
    with pytest.raises(api_errors.Unreachable, match="no answer in time"):
        await transport.send(GET)
    assert len(api.requests) == 2


async def test_a_cut_answer(api: ScriptedApi, transport: Transport) -> None:
    """Half an answer is none."""

    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"metadata":')
        assert request.transport is not None
        request.transport.close()
        return response

    api.answers(half, reply(node("a", 1)))
    with pytest.raises(api_errors.Unreachable, match="before the answer was complete"):
        await transport.use(ClusterConfig(server=api.url)).send(GET)
    # The next question has a separate connection, and an answer.
    await transport.send(GET)


async def test_nobody_listens(transport: Transport) -> None:
    """The error has the parts that the command line prints."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(api_errors.Unreachable) as caught:
            await transport.use(ClusterConfig(server=f"http://127.0.0.1:{port}")).send(GET)
    assert (caught.value.refused, caught.value.address) == (True, f"127.0.0.1:{port}")
    assert caught.value.server in caught.value.message


async def test_all_pages_are_one_list(api: ScriptedApi, transport: Transport) -> None:
    """Pages of 500 follow their tokens; the version is the first one's, even if a server has another on each page."""
    api.answers(node_list(node("a", 1), version=5, token="t"), node_list(node("b", 6), version=7))
    assert await transport.use(ClusterConfig(server=api.url)).list_all() == (["a", "b"], "5")
    assert api.targets == ["GET /api/v1/nodes?limit=500", "GET /api/v1/nodes?limit=500&continue=t"]


async def test_a_list_is_asked_for_by_namespace_and_selectors(api: ScriptedApi, transport: Transport) -> None:
    """On every page, of another resource too; its token may stand behind the items."""

    async def first(_request: web.Request) -> web.StreamResponse:
        items = [{"metadata": {"name": "a"}}]
        return web.json_response({"items": items, "metadata": {"resourceVersion": "5", "continue": "t"}})

    api.answers(first, node_list(node("b", 2), version=5))
    client = transport.use(ClusterConfig(server=api.url)).clients[-1]
    options: dict[str, Any] = {"label_selector": "a=b", "field_selector": "c", "resource": MAPS}
    if isinstance(client, Client):
        found = await client.listing(Node, "ns", **options)
    else:
        found = await asyncio.to_thread(lambda: client.listing(Node, "ns", **options))
    assert ([item.metadata.name for item in found.items], found.resource_version) == (["a", "b"], "5")
    assert (found.undecoded, found.incomplete) == ((), ())
    assert api.targets == [
        "GET /api/v1/namespaces/ns/configmaps?labelSelector=a%3Db&fieldSelector=c&limit=500",
        "GET /api/v1/namespaces/ns/configmaps?labelSelector=a%3Db&fieldSelector=c&limit=500&continue=t",
    ]


async def test_a_list_with_one_that_cannot_be_read(api: ScriptedApi, transport: Transport) -> None:
    """A caller that wants all of it gets the error, by its kind."""
    odd = node("a", 1) | {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}
    api.answers(node_list(node("b", 1), odd, version=5))
    with pytest.raises(DecodeError, match="Node a cannot be read: Invalid enum value 'true'"):
        await transport.use(ClusterConfig(server=api.url)).list_all()


@pytest.mark.parametrize("answers", [1, 2], ids=["at first", "in one piece, too"])
async def test_a_list_that_is_gone_at_once_is_an_error(api: ScriptedApi, transport: Transport, answers: int) -> None:
    """There is no other version to ask for."""
    gone = failure(410, "Expired")
    api.answers(*([node_list(node("a", 1), version=5, token="t"), gone] if answers == 2 else []), gone)
    with pytest.raises(api_errors.Gone):
        await transport.use(ClusterConfig(server=api.url)).list_all()
    assert len(api.requests) == (3 if answers == 2 else 1)


async def test_who_asks_is_said(api: ScriptedApi, transport: Transport) -> None:
    """By name and version; nothing of a credential where it does not exist, and no packing."""
    api.answers(reply(node("a", 1)))
    await transport.use(ClusterConfig(server=api.url)).send(GET)
    headers = api.requests[0].headers
    assert headers["User-Agent"] == f"runup/{__version__}"
    assert headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in headers


async def test_a_client_that_was_closed_connects_again(api: ScriptedApi, transport: Transport) -> None:
    """And closing it twice is no matter."""
    api.answers(reply(node("a", 1)))
    transport.use(ClusterConfig(server=api.url))
    await transport.close()
    for _ in range(2):
        await transport.send(GET)
        await transport.close()
        await transport.close()
        await eventually(lambda: api.requests[-1].transport is None or api.requests[-1].transport.is_closing(), 15)
    assert len(api.requests) == 2
    assert len({id(request.protocol) for request in api.requests}) == 2


async def test_a_server_that_closes_after_its_answer(api: ScriptedApi, transport: Transport) -> None:
    """The next request has a separate connection, also one that may not be sent twice."""
    api.answers(reply(MAP, Connection="close"))
    transport.use(ClusterConfig(server=api.url))
    for _ in range(2):
        assert await transport.send(CREATE) == MAP
    assert len({id(request.protocol) for request in api.requests}) == 2


class Changing(Static, frozen=True):
    """A credential plugin's certificate, another one for every request."""

    given: list[bytes] = []

    def cached(self, _now: datetime) -> Credential | None:
        """Nothing is at hand."""
        return None

    def credential(self, _now: datetime) -> Credential:
        """The next."""
        return Credential(client_cert=self.given.pop(0))


async def test_another_certificate_has_another_connection(api: ScriptedApi, transport: Transport) -> None:
    """The server knows a connection by the one that it was made with; the same one needs no other."""
    api.answers(reply(node("a", 1)))
    transport.use(ClusterConfig(server=api.url, auth=Changing(given=[b"", b"1", b"1", b"2"])))
    for _ in range(4):
        await transport.send(GET)
    first, second, third, fourth = (id(request.protocol) for request in api.requests)
    assert second == third
    assert len({first, second, fourth}) == 3


@pytest.mark.slow
async def test_watches_do_not_keep_other_requests_waiting(api: ScriptedApi) -> None:
    """Each has a separate connection, for minutes."""
    api.answers(*[stream(event("ADDED", node("a", 2)), hold=True)] * 120, reply(node("a", 1)))
    async with Client(ClusterConfig(server=api.url)) as client, AsyncExitStack() as opened:
        for _ in range(120):
            lines = await opened.enter_async_context(aclosing(client.stream(calls.watch(Node, resource_version="1"))))
            assert (await asyncio.wait_for(anext(lines), 20)).type == "ADDED"
        assert (await asyncio.wait_for(client.send(GET), 20)).metadata.name == "a"


async def test_warnings_are_handed_on(api: ScriptedApi) -> None:
    """Of an answer, and of a watch as soon as it is agreed to."""
    heard: list[list[str]] = []
    api.answers(reply(node("a", 1), Warning='299 - "a"'), reply(node("a", 1)), stream(event("ADDED", node("a", 2))))
    async with Client(ClusterConfig(server=api.url)) as client:
        for _ in range(2):
            await client.send(GET, warned=lambda found: heard.append(list(found)))
        lines = client.stream(calls.watch(Node, resource_version="1"), opened=lambda found: heard.append(list(found)))
        assert [line.type async for line in lines] == ["ADDED"]
    assert heard == [['299 - "a"'], [], []]


async def test_a_command_that_watches_is_told_what_cannot_be_read(api: ScriptedApi) -> None:
    """By its name; and it asks as it was asked to."""
    odd = node("a", 1) | {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}
    api.answers(stream(event("ADDED", node("b", 2)), event("MODIFIED", odd)))
    with SyncClient(ClusterConfig(server=api.url)) as client:
        events = client.watch(
            Node, "ns", resource_version="7", label_selector="a", field_selector="b", timeout_seconds=9
        )
        assert (await asyncio.to_thread(next, events)).object.metadata.name == "b"
        with pytest.raises(DecodeError, match="Node a cannot be read: Invalid enum value"):
            await asyncio.to_thread(next, events)
    assert api.targets == [
        "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=9"
        "&labelSelector=a&fieldSelector=b"
    ]


@pytest.mark.slow
async def test_a_watch_that_is_left_keeps_nothing(api: ScriptedApi) -> None:
    """Not even until garbage is collected, which a command that waits hardly does."""
    api.answers(stream(event("ADDED", node("b", 2)), hold=True))
    gc.collect()
    gc.disable()
    try:
        with SyncClient(ClusterConfig(server=api.url)) as client:
            before, events = _answers(), client.watch(Node, resource_version="7")
            await asyncio.to_thread(next, events)
            assert _answers() == before + 1
            events.close()  # type: ignore[attr-defined]
            del events
            assert _answers() == before
    finally:
        gc.enable()


def _answers() -> int:
    """How many answers there are in this process."""
    return sum(type(one) is Answer for one in gc.get_objects())


async def test_a_list_that_expires_between_pages_starts_again_in_one_piece(
    api: ScriptedApi, transport: Transport
) -> None:
    """Nothing of the first attempt is kept."""
    api.answers(
        node_list(node("old", 1), version=5, token="t"),
        failure(410, "Expired"),
        node_list(node("new", 7), version=8),
    )
    assert await transport.use(ClusterConfig(server=api.url)).list_all() == (["new"], "8")
    assert api.targets[2] == "GET /api/v1/nodes"


async def test_a_watch_gives_events_until_it_ends(api: ScriptedApi, transport: Transport) -> None:
    """Lines cut anywhere, two in one chunk, one of 2 MiB; a last line without its end is dropped."""
    long = node("long", 3, note="x" * 2 * 1024 * 1024)
    one, two = event("ADDED", node("a", 2)), event("MODIFIED", long)
    api.answers(stream(one[:7], one[7:] + two[:100], two[100:] + event("DELETED", node("a", 4)), b'{"type":"ADD'))
    got = await transport.use(ClusterConfig(server=api.url)).watch()
    assert got == [("ADDED", "a"), ("MODIFIED", "long"), ("DELETED", "a")]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(failure(410, "Expired"), id="as the answer"),
        pytest.param(stream(event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})), id="as a line"),
    ],
)
async def test_a_version_that_is_gone(api: ScriptedApi, transport: Transport, answer: Any) -> None:
    """Either way it is Gone."""
    api.answers(answer)
    with pytest.raises(api_errors.Gone):
        await transport.use(ClusterConfig(server=api.url)).watch()


async def test_a_broken_watch(api: ScriptedApi, transport: Transport) -> None:
    """A connection that breaks is an error, so that it is not taken for the end of a quiet watch."""

    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("ADDED", node("a", 2)))
        assert request.transport is not None
        request.transport.abort()
        return response

    api.answers(broken)
    with pytest.raises(api_errors.Unreachable):
        await transport.use(ClusterConfig(server=api.url)).watch()


async def test_a_silent_watch_ends(api: ScriptedApi, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is gone without a word is noticed, when the watch's time is over."""
    monkeypatch.setattr("kubekit.kube.client.WATCH_GRACE_S", 0.05)
    monkeypatch.setattr("kubekit.kube.client_sync._WATCH_GRACE_S", 0.05)
    api.answers(stream(event("ADDED", node("a", 2)), hold=True))
    with pytest.raises(api_errors.Unreachable, match="no answer in time"):
        await transport.use(ClusterConfig(server=api.url)).watch(timeout_seconds=0)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(socket.gaierror(-2, "Name or service not known"), "no address is known for h", id="no address"),
        pytest.param(OSError(113, "No route to host"), "no route to host", id="no route"),
        pytest.param(TimeoutError(), "no answer in time", id="too slow"),
        pytest.param(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] x"), "TLS failed", id="no TLS there"),
        pytest.param(ConnectionResetError(104, "Connection reset by peer"), "connection reset by peer", id="reset"),
    ],
)
def test_why_a_server_cannot_be_reached(error: Exception, says: str) -> None:
    """The cause is in words, and the server's URL is there."""
    made = unreachable_error(ClusterConfig(server="https://h:6443"), error)
    assert made.message.startswith("could not reach https://h:6443: ")
    assert says in made.message
    assert made.refused is False


def test_a_token_that_no_header_can_hold() -> None:
    """It is said before anything is sent, and the token is not told."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        auth = Static(Credential(authorization="Bearer secret\nX: y"))
        with (
            SyncClient(ClusterConfig(server=url, auth=auth)) as client,
            pytest.raises(
                api_errors.ConfigError, match="cannot be asked: the header Authorization cannot be sent"
            ) as caught,
        ):
            client.send(GET)
    assert "secret" not in str(caught.value)


async def test_many_requests_run_a_plugin_once(api: ScriptedApi, tmp_path: Path) -> None:
    """Whoever comes while the plugin runs waits for its answer."""
    from tests.kubekit.kube.test_exec_plugin import Plugin

    plugin = Plugin(tmp_path)
    plugin.prints(token="t")
    api.answers(reply(node("a", 1)))
    async with Client(ClusterConfig(server=api.url, auth=plugin.auth())) as client:
        await asyncio.gather(*(client.send(GET) for _ in range(10)))
    assert len(plugin.runs) == 1
    assert {request.headers["Authorization"] for request in api.requests} == {"Bearer t"}
