"""A small HTTP server on loopback whose every answer is scripted by the test: cut lines, 410, slow, refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from kubekit.kube.clock import ManualClock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedApi:
    """Answers with the handlers in `script`, one a request, in order; the last one stays. `requests` is what came."""

    def __init__(self) -> None:
        self.script: list[Handler] = []
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.url = ""
        self._came = asyncio.Condition()

    def answers(self, *script: Handler) -> None:
        """Script the answers to come."""
        self.script = list(script)

    async def until_requests(self, count: int, deadline_s: float = 90.0) -> None:
        """Wait until that many requests have come; raises TimeoutError."""
        async with asyncio.timeout(deadline_s), self._came:
            await self._came.wait_for(lambda: len(self.requests) >= count)

    @property
    def targets(self) -> list[str]:
        """Method and path with query of every request, decoded."""
        return [f"{request.method} {request.path_qs}" for request in self.requests]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request by the script."""
        self.bodies.append(await request.read())
        async with self._came:
            self.requests.append(request)
            self._came.notify_all()
        handler = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await handler(request)


@asynccontextmanager
async def scripted_api() -> AsyncIterator[ScriptedApi]:
    """A running ScriptedApi at an ephemeral port."""
    api = ScriptedApi()
    runner = web.ServerRunner(web.Server(api.handle), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()


def reply(body: Any, code: int = 200, **headers: str) -> Handler:
    """Answer with JSON; `Retry_After="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=code, headers=named)

    return handler


def failure(code: int, reason: str, message: str = "no", **headers: str) -> Handler:
    """Answer with a Status."""
    return reply(status(code, reason, message), code, **headers)


def status(code: int, reason: str, message: str = "no") -> dict[str, Any]:
    """A Status that says no."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def node(name: str, version: int, **labels: str) -> dict[str, Any]:
    """A Node as the server writes it."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), "labels": labels}}


def node_list(*items: dict[str, Any], version: int, token: str = "", **headers: str) -> Handler:
    """Answer with a page of nodes; `headers` as in `reply`."""
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return reply({"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}, **headers)


def event(type_: str, obj: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def stream(*chunks: bytes, hold: bool = False) -> Handler:
    """Answer with chunks as they are; `hold` keeps the stream open until the client goes."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if hold:
            await asyncio.Event().wait()
        await response.write_eof()
        return response

    return handler


async def cut_off(request: web.Request) -> web.StreamResponse:
    """Hang up without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def silence(request: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    return web.Response()


@asynccontextmanager
async def ticking(clock: ManualClock) -> AsyncIterator[None]:
    """Let time pass whenever somebody sleeps, so that nobody waits for it: always to the next one who is due."""

    async def tick() -> None:
        while True:
            await clock.until_sleeping(deadline_s=60)
            await clock.advance(clock.sleeping[0])

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(condition: Callable[[], Any], deadline_s: float = 90.0) -> None:
    """Let other tasks run until `condition` holds; raises TimeoutError."""
    async with asyncio.timeout(deadline_s):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await asyncio.sleep(0)
