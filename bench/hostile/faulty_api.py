"""An API server that misbehaves: a proxy in front of a real one, whose faults are drawn by a seed.

Who asks through it is whoever `upstream` is: it terminates TLS and keeps no identity of its callers but a bearer token.
`storm` is what issue-sized trouble looks like: every watch breaks, a third of all other requests fail, among them
writes that were carried out and whose answer is lost. Used by the tests, and by benches that last longer.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.transport import context_for
from kubekit.kube.watch import CONNECTION_SILENCE_S

Fault = Callable[[web.BaseRequest, "FaultyApi"], Awaitable[web.StreamResponse]]
# What a proxy may not pass on: it frames its own messages.
_HOP = {"connection", "content-length", "host", "transfer-encoding", "accept-encoding"}


class FaultyApi:
    """`share` of the requests fail, watches by `watches`, others by `faults`; both empty: a plain proxy.

    `silent`: no request is answered, and nothing comes over watches that are open. `counted` says what was done.
    """

    def __init__(self, upstream: ClusterConfig, seed: int) -> None:
        self.url = ""
        # The authority of its certificate, if it has one.
        self.ca_data = b""
        self.share = 0.0
        self.faults: tuple[Fault, ...] = ()
        self.watches: tuple[Fault, ...] = ()
        self.silent = False
        self.counted: Counter[str] = Counter()
        # Requests that wait for their answer; watches are none.
        self.in_flight = 0
        self._upstream = upstream
        self._random = random.Random(seed)
        self._session: aiohttp.ClientSession | None = None
        # The connections of watches.
        self._open: set[asyncio.Transport] = set()

    @property
    def config(self) -> ClusterConfig:
        """How to reach the cluster through the proxy."""
        return ClusterConfig(server=self.url, ca_data=self.ca_data)

    def kubeconfig(self, path: Path) -> Path:
        """The same as a file."""
        name = {"name": "faulty"}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [name | {"cluster": {"server": self.url}}],
                    "users": [name | {"user": {}}],
                    "contexts": [name | {"context": {"cluster": "faulty", "user": "faulty"}}],
                    "current-context": "faulty",
                }
            )
        )
        return path

    def storm(self, share: float = 1 / 3) -> None:
        """All watches broken, and `share` of all other requests failing."""
        self.share, self.faults, self.watches = share, REQUEST_FAULTS, WATCH_FAULTS
        for transport in tuple(self._open):  # watches that are open break too
            transport.abort()

    def away(self) -> None:
        """Nobody answers: every connection breaks, and so does what is open."""
        self.share, self.faults, self.watches = 1.0, (broken_off,), (broken_off,)
        for transport in tuple(self._open):
            transport.abort()

    def calm(self) -> None:
        """No faults from now on."""
        self.share, self.faults, self.watches, self.silent = 0.0, (), (), False

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, by a fault or by the server."""
        if self.silent:
            await asyncio.Event().wait()
        if is_watch(request):
            fault = self._random.choice(self.watches) if self.watches else pass_on
        else:
            faulty = bool(self.faults) and self._random.random() < self.share
            fault = self._random.choice(self.faults) if faulty else pass_on
        self.counted[f"{'watch' if is_watch(request) else 'request'} {fault.__name__}"] += 1
        if is_watch(request):
            return await self._followed(fault, request)
        self.in_flight += 1
        try:
            return await fault(request, self)
        finally:
            self.in_flight -= 1

    async def _followed(self, fault: Fault, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        self._open.add(transport)
        try:
            return await fault(request, self)
        finally:
            self._open.discard(transport)

    @asynccontextmanager
    async def asked(self, request: web.BaseRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """The server's answer to `request`."""
        if self._session is None:
            context = context_for(self._upstream, self._upstream.auth.credential(SystemClock().now()))
            connector = aiohttp.TCPConnector(ssl=context if context is not None else True, limit=0)
            self._session = aiohttp.ClientSession(connector=connector)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP]
        async with self._session.request(
            request.method,
            URL(self._upstream.server + request.path_qs, encoded=True),
            headers=[*headers, ("Accept-Encoding", "identity")],
            # An empty body is none: with it comes a Content-Type, which a real server's discovery refuses.
            data=await request.read() or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            yield answer

    async def close(self) -> None:
        """Close the connections to the server."""
        if self._session is not None:
            await self._session.close()


def is_watch(request: web.BaseRequest) -> bool:
    """Whether the answer goes on for minutes."""
    return request.query.get("watch") in ("1", "true")


async def pass_on(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """No fault: what the server says."""
    return await _relay(request, api, parts=None)


async def broken_off(request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """Hang up without an answer; nothing was carried out."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def answer_lost(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """The server carried it out, and nobody hears of it."""
    async with api.asked(request) as answer:
        await answer.read()
    return await broken_off(request, api)


async def server_error(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """500, as a Status."""
    return _status(500, "InternalError", "etcdserver: request timed out")


async def unavailable(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """503 of something in front of it, as a page."""
    return web.Response(status=503, text="<html>no healthy upstream</html>", content_type="text/html")


async def conflict(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """409: somebody else was faster."""
    text = (
        "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version"
    )
    return _status(409, "Conflict", text)


async def too_many(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """429 with the wish to come back in a second."""
    return _status(429, "TooManyRequests", "too many requests, please try again later", {"Retry-After": "1"})


async def truncated(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """An answer of half its length that says it is whole."""
    async with api.asked(request) as answer:
        body = await answer.read()
        return web.Response(status=answer.status, body=body[: len(body) // 2], content_type="application/json")


async def cut_watch(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """A watch that is cut off after what comes first, if anything, in the middle of a line."""
    return await _relay(request, api, parts=1)


async def expired_watch(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """410: the version is too old."""
    return _status(410, "Expired", "too old resource version")


async def expired_page(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """410 in the middle of a list, else a server error: a storm of all requests leaves none alone."""
    if "continue" not in request.query:
        return await server_error(request, api)
    return _status(410, "Expired", "The provided continue parameter is too old")


async def one_event_watch(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
    """A watch that ends politely after each event."""
    async with api.asked(request) as answer:
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(await answer.content.readline())
        await response.write_eof()
    return response


async def garbled_watch(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """A line that is no JSON."""
    return web.Response(body=b'{"type": "ADDED", "object": {"metad\n', content_type="application/json")


async def ended_watch(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """A polite end without a word."""
    return web.Response(body=b"", content_type="application/json")


def silent(clock: Clock) -> Fault:
    """Returns a watch that is accepted and sends nothing.

    It breaks when a client gives it up. A client measures that by the machine's clock, not by the one that is moved.
    """

    async def silently(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await clock.sleep(CONNECTION_SILENCE_S)
        return await broken_off(request, api)

    return silently


REQUEST_FAULTS: tuple[Fault, ...] = (
    broken_off,
    answer_lost,
    server_error,
    unavailable,
    too_many,
    truncated,
    expired_page,
)
WATCH_FAULTS: tuple[Fault, ...] = (
    broken_off,
    server_error,
    unavailable,
    cut_watch,
    expired_watch,
    one_event_watch,
    garbled_watch,
    ended_watch,
)


async def _relay(request: web.BaseRequest, api: FaultyApi, parts: int | None) -> web.StreamResponse:
    async with api.asked(request) as answer:
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        response = web.StreamResponse(status=answer.status, headers=kept)
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            if api.silent:
                await asyncio.Event().wait()
            if parts is not None:
                await response.write(chunk[: len(chunk) // 2])
                return await broken_off(request, api)
            await response.write(chunk)
        await response.write_eof()
    return response


def _status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response(body | {"message": message}, status=code, headers=headers)


@asynccontextmanager
async def faulty_api(
    upstream: ClusterConfig, seed: int = 1, *, tls: ssl.SSLContext | None = None, ca_data: bytes = b""
) -> AsyncIterator[FaultyApi]:
    """A proxy to `upstream` at a port of loopback; with `tls` its certificate is one of the authority `ca_data`."""
    api = FaultyApi(upstream, seed)
    runner = web.ServerRunner(web.Server(api.handle), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    host, port = runner.addresses[0][:2]
    api.url, api.ca_data = f"{'https' if tls else 'http'}://{host}:{port}", ca_data
    try:
        yield api
    finally:
        await runner.cleanup()
        await api.close()
