"""Listens for HTTP with limits that apply before a request's handler runs: connections, seconds for head and body.

aiohttp accepts every connection and waits an hour for a request. A client that opens connections and sends nothing thus
takes every descriptor of the process, which then reaches neither its API server nor its files. This site accepts by
itself: it has a limit of connections, closes the one that has waited longest for a request to make room for a new one,
and closes connections whose request does not arrive in time.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web

# How long nothing is accepted after the process, or the machine, had no descriptor left.
_PAUSE_S = 1.0
_ACCEPTED_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Connections at once, of all clients and of one address; seconds for a handshake, a head, a body, and between."""

    connections: int = 500
    of_address: int = 200
    handshake_s: float = 10.0
    head_s: float = 10.0
    body_s: float = 60.0
    idle_s: float = 120.0


USUAL = Limits()


class LimitedSite(web.BaseSite):
    """Like `web.TCPSite`, with limits. A runner must not have two of them."""

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits = USUAL,
        backlog: int = 128,
    ) -> None:
        super().__init__(runner, ssl_context=ssl_context, backlog=backlog)
        self._host, self._port, self._tls, self._listens = host, port, ssl_context, backlog
        # Half of the descriptors stay for the process's own work.
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        bounded = descriptors != resource.RLIM_INFINITY
        self.limits, self._most = limits, min(limits.connections, descriptors // 2) if bounded else limits.connections
        assert runner.server is not None
        self._http = runner.server
        self._open: dict[asyncio.BaseProtocol, _Connection] = {}
        # Those without a complete request, the one that has waited longest first.
        self._waiting: dict[_Connection, None] = {}
        self._of_address: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The address, as `web.BaseSite` names it."""
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listens. Raises OSError if the address cannot be listened on."""
        await super().start()
        loop = asyncio.get_running_loop()
        handler = self._http.request_handler

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            connection = self._open.get(request.protocol)
            if connection is None:  # it broke before its handler began
                return await handler(request)
            connection.work()
            # The handler reads the body, if any, and may take longer for its answer.
            reading = loop.call_later(self.limits.body_s, connection.end_unless, request.content.is_eof)
            try:
                return await handler(request)
            finally:
                reading.cancel()
                connection.wait(self.limits.idle_s)

        self._http.request_handler = handle
        flags = socket.AI_PASSIVE
        found = await loop.getaddrinfo(self._host or None, self._port, type=socket.SOCK_STREAM, flags=flags)
        listeners: list[socket.socket] = []
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listeners.append(socket.create_server(address[:2], family=family, backlog=self._listens))
        except BaseException:
            for listener in listeners:
                listener.close()
            raise
        for listener in listeners:
            listener.setblocking(False)
            loop.add_reader(listener, self._accept, listener)
        self._server = _Listeners(listeners)

    def _accept(self, listener: socket.socket) -> None:
        """Accepts what has come; pauses where there is no descriptor left."""
        loop = asyncio.get_running_loop()
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                loop.remove_reader(listener)
                loop.call_later(_PAUSE_S, self._resume, listener)
                return
            self._admit(accepted, str(address[0]))

    def _resume(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:  # not stopped since
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        """Serves a connection, if it has room or one that waits for its request can make room."""
        crowd = self._of_address[address] >= self.limits.of_address
        if crowd or self._of_address.total() >= self._most:
            longest = next((each for each in self._waiting if not crowd or each.address == address), None)
            if longest is None:
                accepted.close()
                return
            longest.end()
        accepted.setblocking(False)
        self._of_address[address] += 1
        _Connection(self, accepted, address)


class _Listeners(asyncio.Server):
    """The listening sockets, of which the runner needs the addresses and the end."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._listening = sockets

    @property
    def sockets(self) -> tuple[Any, ...]:
        """Those that listen."""
        return tuple(self._listening)

    def close(self) -> None:
        """Stops listening."""
        for listener in self._listening:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._listening = []


class _Connection(asyncio.Protocol):
    """A connection, between its transport and aiohttp's handler, with the time at which it must have a request."""

    def __init__(self, site: LimitedSite, accepted: socket.socket, address: str) -> None:
        self.address = address
        self._site, self._http = site, site._http()
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._works = self._reads = False
        site._open[self._http] = self
        self._task = asyncio.get_running_loop().create_task(self._connect(accepted))
        self._task.add_done_callback(lambda _: None if self._transport else accepted.close())
        self.wait(site.limits.handshake_s + site.limits.head_s)

    async def _connect(self, accepted: socket.socket) -> None:
        """Hands the connection to aiohttp, after the handshake."""
        loop, tls = asyncio.get_running_loop(), self._site._tls
        seconds = self._site.limits.handshake_s if tls else None
        try:
            await loop.connect_accepted_socket(lambda: self, accepted, ssl=tls, ssl_handshake_timeout=seconds)
        except OSError:  # among them a handshake that failed
            self._gone()
        except BaseException:
            self._gone()
            raise

    def work(self) -> None:
        """A request has come with its head."""
        self._works, self._reads = True, False
        self._site._waiting.pop(self, None)
        self._cancel_deadline()

    def wait(self, seconds: float) -> None:
        """Ends the connection in so many seconds, unless a request comes."""
        self._works = False
        self._cancel_deadline()
        if self._site._open.get(self._http) is self:
            self._site._waiting.pop(self, None)
            self._site._waiting[self] = None
            self._deadline = asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self._task.cancel()
        self._gone()

    def end_unless(self, done: Callable[[], bool]) -> None:
        """Ends the connection unless that is done."""
        if not done():
            self.end()

    def _gone(self) -> None:
        """Its place is free."""
        self._cancel_deadline()
        if self._site._open.pop(self._http, None) is not None:
            self._site._waiting.pop(self, None)
            self._site._of_address[self.address] -= 1
            if not self._site._of_address[self.address]:
                del self._site._of_address[self.address]

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        self.wait(self._site.limits.head_s)
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`. The first byte of a request begins the time for its head."""
        if not self._works and not self._reads:
            self._reads = True
            self.wait(self._site.limits.head_s)
        self._http.data_received(data)

    def eof_received(self) -> None:
        """See `asyncio.Protocol`."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._gone()
        self._http.connection_lost(exc)
