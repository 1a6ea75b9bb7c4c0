"""Every server of ours has the limits of `LimitedSite`: a client that sends nothing cannot take all descriptors."""

from __future__ import annotations

import ast
import asyncio
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.server import ApiServer
from runup.process.endpoint import Endpoint
from runup.sandbox.processes.services import Registry, UpdateService

PACKAGES = Path(__file__).parents[2] / "packages"
# What else listens: sites of aiohttp, servers of asyncio and of the standard library.
LISTENS = {"TCPSite", "SockSite", "UnixSite", "run_app", "start_server", "create_server", "HTTPServer", "TCPServer"}
GUARD_S = 60.0


class NoMetrics:
    """Metrics of a process that has none."""

    registry = CollectorRegistry()


async def ready() -> str:
    """The process is ready."""
    return ""


async def converted(_: web.Request) -> web.Response:
    """A webhook without an answer."""
    return web.Response()


@asynccontextmanager
async def endpoint(_: Path) -> AsyncIterator[str]:
    """Metrics, readiness and webhooks of a controller's process: operator, UpdateStatus, kernel modules, conversion."""
    serving = Endpoint(NoMetrics(), SystemClock(), webhooks=[web.post("/convert", converted)])
    await serving.start("127.0.0.1:0", ready=ready, refused=None)
    try:
        yield serving.address
    finally:
        await serving.stop()


@asynccontextmanager
async def health(_: Path) -> AsyncIterator[str]:
    """Health of a controller's process."""
    serving = Endpoint(NoMetrics(), SystemClock())
    await serving.start_health("127.0.0.1:0")
    try:
        yield serving.health_address
    finally:
        await serving.stop()


@asynccontextmanager
async def registry(folder: Path) -> AsyncIterator[str]:
    """The sandbox's registry."""
    async with Registry(folder) as serving:
        yield serving.url


@asynccontextmanager
async def update_service(_: Path) -> AsyncIterator[str]:
    """The sandbox's update service."""
    async with UpdateService(dict) as serving:
        yield serving.url


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[str]:
    """The sandbox's API server."""
    async with ApiServer(folder) as serving:
        yield serving.url


@pytest.mark.parametrize("served", [endpoint, health, registry, update_service, api_server])
async def test_idle_connections_make_room(
    served: Callable[[Path], AbstractAsyncContextManager[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process with six descriptors, three are for connections: the first of four is closed."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (6, 6))
    async with served(tmp_path) as address, AsyncExitStack() as stack:
        port = urlsplit(address).port
        idle = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            idle.append(reader)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(idle[0].read(), GUARD_S) == b""
        assert not any(reader.at_eof() for reader in idle[1:])


def test_nothing_else_listens() -> None:
    """A new server must use `LimitedSite`, too."""
    listening = [
        f"{path.name}: {node.attr}"
        for path in PACKAGES.glob("*/src/**/*.py")
        if path.name != "limited_site.py"
        if any(name in (text := path.read_text()) for name in LISTENS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in LISTENS
    ]
    assert listening == []
