"""Which connections a server keeps, and for how long, before a handler sees a request."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from kubekit.http.limited_site import LimitedSite, Limits
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access.certs import issue_server, new_ca

GUARD_S = 90.0
WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LONG = Limits(connections=100, of_address=100, handshake_s=GUARD_S, head_s=GUARD_S, body_s=GUARD_S, idle_s=GUARD_S)


@dataclass
class Served:
    """A server whose handler answers at once, or at `/slow` when `free` is set."""

    port: int = 0
    clients: list[Client] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        """Answers with the size of the body."""
        if request.path == "/slow":
            self.begun.set()
            await self.free.wait()
        return web.Response(text=str(len(await request.read())))


@asynccontextmanager
async def serving(limits: Limits, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """A server with these limits."""
    served = Served()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await LimitedSite(runner, "127.0.0.1", 0, ssl_context=tls, limits=limits).start()
        served.port = runner.addresses[0][1]
        yield served
    finally:
        served.free.set()
        await runner.cleanup()
        for client in served.clients:
            client.writer.close()


@dataclass
class Client:
    """A connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def connect(cls, served: Served, data: bytes = b"", address: str = "127.0.0.1") -> Client:
        """A connection from `address` that has sent `data`."""
        client = cls(*await asyncio.open_connection("127.0.0.1", served.port, local_addr=(address, 0)))
        served.clients.append(client)
        client.writer.write(data)
        return client

    async def answer(self) -> bytes:
        """The status line of the answer, empty if the server has closed the connection."""
        try:
            return (await asyncio.wait_for(self.reader.readline(), GUARD_S)).strip()
        except ConnectionResetError:
            return b""

    async def closed(self) -> bool:
        """Waits until the server closes the connection."""
        with suppress(ConnectionResetError):
            await asyncio.wait_for(self.reader.read(), GUARD_S)
        return True


@pytest.mark.parametrize(
    ("limits", "newcomer"),
    [
        pytest.param(Limits(connections=3, of_address=100), "127.0.0.1", id="of the server"),
        pytest.param(Limits(connections=100, of_address=3), "127.0.0.1", id="of its address"),
        pytest.param(Limits(connections=3, of_address=100), "127.0.0.2", id="of the server, from another address"),
    ],
)
async def test_the_oldest_idle_connection_makes_room(limits: Limits, newcomer: str) -> None:
    """A client that sends nothing keeps nobody out."""
    async with serving(limits) as served:
        idle = [await Client.connect(served, data) for data in (b"GET / HT", b"", b"")]
        new = await Client.connect(served, WHOLE, newcomer)
        assert await new.answer() == b"HTTP/1.1 200 OK"
        assert await idle[0].closed()
        idle[1].writer.write(WHOLE)
        assert await idle[1].answer() == b"HTTP/1.1 200 OK"


async def test_another_address_is_not_crowded_out() -> None:
    """Only connections of the address that has too many are ended for one more of it."""
    async with serving(Limits(connections=100, of_address=2)) as served:
        other = await Client.connect(served, address="127.0.0.2")
        crowd = [await Client.connect(served) for _ in range(3)]
        assert await crowd[0].closed()
        for client in (other, *crowd[1:]):
            client.writer.write(WHOLE)
            assert await client.answer() == b"HTTP/1.1 200 OK"


async def test_a_request_that_is_handled_is_not_ended() -> None:
    """There is no room for another connection then."""
    async with serving(Limits(connections=1)) as served:
        works = await Client.connect(served, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.wait_for(served.begun.wait(), GUARD_S)
        late = await Client.connect(served, WHOLE)
        assert await late.answer() == b""
        served.free.set()
        assert await works.answer() == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "data", [pytest.param(b"", id="nothing"), pytest.param(b"GET / HTTP/1.1\r\nX-A: ", id="half a head")]
)
async def test_a_head_that_does_not_come(data: bytes) -> None:
    """The connection is closed, also if a byte comes now and then."""
    async with serving(Limits(head_s=0.2)) as served:
        client = await Client.connect(served, data)
        ended = asyncio.create_task(client.closed())
        while data and not ended.done():
            client.writer.write(b"a")
            await asyncio.sleep(0.05)
        assert await ended


async def test_a_body_that_does_not_come() -> None:
    """The connection is closed, while one whose body has come waits for its answer."""
    async with serving(Limits(body_s=0.2)) as served:
        head = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
        whole, half = await Client.connect(served, head + b"body"), await Client.connect(served, head + b"bo")
        assert await half.closed()
        served.free.set()
        assert await whole.answer() == b"HTTP/1.1 200 OK"


async def test_a_connection_is_used_again_until_it_is_idle_for_too_long() -> None:
    """Each request has its own time."""
    async with serving(Limits(idle_s=0.3)) as served:
        client = await Client.connect(served)
        for _ in range(3):
            client.writer.write(WHOLE)
            assert await client.answer() == b"HTTP/1.1 200 OK"
            await client.reader.readuntil(b"\r\n\r\n0")
        assert await client.closed()


async def test_the_head_of_a_second_request_has_its_time() -> None:
    """Rather than that of an idle connection."""
    async with serving(Limits(head_s=0.2, idle_s=GUARD_S)) as served:
        client = await Client.connect(served, WHOLE)
        assert await client.answer() == b"HTTP/1.1 200 OK"
        client.writer.write(b"GET / HT")
        assert await client.closed()


async def test_a_handshake_that_does_not_come(tmp_path: Path) -> None:
    """It ends, and makes room before."""
    now = SystemClock().now()
    ca = new_ca(now)
    made = issue_server(ca, now)
    (tmp_path / "pair").write_bytes(made.cert + made.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "pair")
    trusting = ssl.create_default_context(cadata=ca.cert.decode())
    async with serving(Limits(handshake_s=0.2), tls) as served:
        assert await (await Client.connect(served)).closed()
    async with serving(Limits(connections=2, handshake_s=GUARD_S, head_s=GUARD_S), tls) as served:
        idle = [await Client.connect(served) for _ in range(2)]
        new = Client(*await asyncio.open_connection("127.0.0.1", served.port, ssl=trusting))
        served.clients.append(new)
        new.writer.write(WHOLE)
        assert await new.answer() == b"HTTP/1.1 200 OK"
        assert await idle[0].closed()


async def test_half_of_the_descriptors_stay_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the limits say."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (6, 6))
    async with serving(LONG) as served:
        idle = [await Client.connect(served) for _ in range(4)]
        assert await idle[0].closed()
        idle[1].writer.write(WHOLE)
        assert await idle[1].answer() == b"HTTP/1.1 200 OK"
