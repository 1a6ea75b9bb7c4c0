"""What a controller's process serves beside its work: metrics, health, readiness."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Registered(Protocol):
    """Metrics of any process."""

    registry: CollectorRegistry


class Endpoint:
    """`/metrics`, `/healthz` and `/readyz`. `ready()` gives nothing, or why not."""

    def __init__(self, metrics: Registered, ready: Callable[[], str]) -> None:
        self._metrics = metrics
        self._ready = ready
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self, listen: str, *, cert_file: str = "", key_file: str = "") -> None:
        """Serve on `listen` (host:port): HTTPS with a certificate, else HTTP on loopback only; raises ValueError."""
        host, _, port = listen.rpartition(":")
        host = host.strip("[]") or "0.0.0.0"  # noqa: S104 -- what an empty host means to every other program
        if not cert_file and host not in _LOOPBACK:
            raise ValueError(
                f"--listen {listen}: give --serving-cert-file and --serving-key-file, or listen on 127.0.0.1"
            )
        context = None
        if cert_file:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(cert_file, key_file or None)
        app = web.Application()
        app.router.add_get("/metrics", self._serve_metrics)
        app.router.add_get("/healthz", self._serve_health)
        app.router.add_get("/readyz", self._serve_ready)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, int(port), ssl_context=context)
        await site.start()
        bound = self._runner.addresses[0]
        self.address = f"{'https' if context else 'http'}://{host}:{bound[1]}"

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve_metrics(self, _request: web.Request) -> web.Response:
        text = generate_latest(self._metrics.registry)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _serve_health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _serve_ready(self, _request: web.Request) -> web.Response:
        why_not = self._ready()
        return web.Response(text=f"{why_not or 'ok'}\n", status=503 if why_not else 200)
