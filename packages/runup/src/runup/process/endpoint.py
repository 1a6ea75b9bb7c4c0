"""Serves a controller process's HTTP endpoints: `/metrics`, `/healthz`, `/readyz`, and webhooks if it has some.

Health is public: it says nothing about the cluster but which inputs are not read yet. Metrics are for users whom the
API server lets read them, by TokenReview and SubjectAccessReview (as kube-rbac-proxy does), unless that was explicitly
turned off. A failed review is a refusal, too. Answers are cached for a short time, so that a scrape every few seconds
costs the API server nothing and a revoked right ends within a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from kubekit.api.codec import DecodeError
from kubekit.error_types import Terminal
from kubekit.http.limited_site import LimitedSite
from kubekit.kube import reviews
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, SystemClock, run_within
from runup.process.leader_election import cancel, restart_on_error
from runup.process.serving_tls import ServingCertificate, TlsSettings
from runup.process.tls_profile import TlsProfile

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_STOP_S = 1.0
# Largest request body of a webhook, in bytes: the API server sends a whole list of objects at once.
LONGEST_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request; `status` is the HTTP status."""

    status: int
    message: str


Ready = Callable[[], Awaitable[str]]
Refused = Callable[[str, str], Awaitable[Refusal | None]]


class Registered(Protocol):
    """Metrics of any process."""

    registry: CollectorRegistry


class Endpoint:
    """An HTTP server of `metrics`, health and webhooks."""

    def __init__(
        self, metrics: Registered, clock: Clock | None = None, *, webhooks: Iterable[web.RouteDef] = ()
    ) -> None:
        self._metrics = metrics
        self._webhooks = tuple(webhooks)
        self._clock = clock or SystemClock()
        self._following: asyncio.Task[None] | None = None
        self._ready: Ready = _not_started
        self._refused: Refused | None = None
        self._runners: list[web.AppRunner] = []
        self._secured: TlsSettings | None = None
        self.address = ""
        self.health_address = ""

    async def start(
        self,
        listen: str,
        *,
        ready: Ready,
        refused: Refused | None,
        cert_file: str = "",
        key_file: str = "",
        tls: TlsProfile | None = None,
    ) -> None:
        """Serves on `listen` (host:port): HTTPS with a certificate, which may come later, else HTTP on loopback only.

        `ready()` returns an empty string, or why the process is not ready. `refused(authorization, path)` returns why
        a request may not read metrics; if it is None, everybody may. `tls` is the profile from flags. Raises Terminal,
        which names the flag.
        """
        self._ready, self._refused = ready, refused
        host, port = host_and_port(listen)
        # Tokens are sent with requests for metrics: never in plain text over a network.
        if not cert_file and host not in _LOOPBACK:
            raise _bad_flag(listen, "give --serving-cert-file and --serving-key-file, or listen on 127.0.0.1")
        # Health that is served in plain HTTP waits for nothing.
        serves = "metrics and readiness" if self.health_address else "metrics and health"
        certificate = ServingCertificate(cert_file, key_file, self._clock, serves=serves) if cert_file else None
        if certificate is not None:
            certificate.start()
        context = certificate.context if certificate else None
        self._secured = TlsSettings(context, tls or TlsProfile()) if context is not None else None
        app = web.Application(client_max_size=LONGEST_BODY)
        app.router.add_routes(self._webhooks)
        app.router.add_get("/metrics", self._serve_metrics)
        app.router.add_get("/healthz", self._serve_health)
        app.router.add_get("/readyz", self._serve_ready)
        try:
            self.address = await self._serve(app, host, port, context)
        except OSError as error:
            raise _bad_flag(listen, error.strerror or str(error)) from error
        if certificate is not None:
            self._following = asyncio.create_task(restart_on_error(certificate.follow, self._clock))

    async def start_health(self, listen: str) -> None:
        """Serves `/healthz` on `listen` (host:port) in plain HTTP. Raises Terminal, which names the flag.

        It is answered in the event loop: a loop that stops does not, and a liveness probe notices.
        """
        host, port = host_and_port(listen, "--health-listen")
        app = web.Application()
        app.router.add_get("/healthz", self._serve_health)
        try:
            self.health_address = await self._serve(app, host, port, None)
        except OSError as error:
            raise _bad_flag(listen, error.strerror or str(error), "--health-listen") from error

    async def _serve(self, app: web.Application, host: str, port: int, context: ssl.SSLContext | None) -> str:
        """Serves `app` and returns its address. Raises OSError."""
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_S)
        self._runners.append(runner)
        await runner.setup()
        await LimitedSite(runner, host, port, ssl_context=context).start()
        shown_host = f"[{host}]" if ":" in host else host
        return f"{'https' if context else 'http'}://{shown_host}:{runner.addresses[0][1]}"

    def follow(self, profile: TlsProfile | None) -> None:
        """Serves by the cluster's TLS profile from the next connection on; None means our own defaults."""
        if self._secured is not None:
            self._secured.follow(profile)

    async def stop(self) -> None:
        """Stops serving."""
        if self._following is not None:
            await cancel([self._following])
        for runner in self._runners:
            await runner.cleanup()

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        """Answers with the metrics in Prometheus' text format, or with a refusal: 401 or 403."""
        if self._refused is not None:
            refusal = await self._refused(request.headers.get("Authorization", ""), request.path)
            if refusal is not None:
                challenge_headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
                return web.Response(text=f"{refusal.message}\n", status=refusal.status, headers=challenge_headers)
        text = generate_latest(self._metrics.registry)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _serve_health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _serve_ready(self, _request: web.Request) -> web.Response:
        why_not = await self._ready()
        return web.Response(text=f"{why_not or 'ok'}\n", status=503 if why_not else 200)


async def _not_started() -> str:
    return "starting"


def host_and_port(listen: str, flag: str = "--listen") -> tuple[str, int]:
    """Returns host and port of an address to listen on. Raises Terminal if it is not one."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise _bad_flag(listen, "give host:port, such as 127.0.0.1:9099", flag)
    # An empty host means every address, as it does for other programs.
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104


def _bad_flag(listen: str, why: str, flag: str = "--listen") -> Terminal:
    return Terminal(f"{flag} {listen}: {why}", reason="BadFlag")


ALLOWED_FOR_S = 60.0
REFUSED_FOR_S = 10.0
# Prometheus gives up a scrape after 10 s.
ANSWER_S = 8.0
# Limits against made-up tokens: answers kept in memory, and reviews sent to the API server at a time.
MAX_CACHED = 256
MAX_CONCURRENT = 4


class MetricsAuthorizer:
    """A cache of reviews of whether a request's sender may `get` a path. Tokens are kept as hashes only."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: OrderedDict[tuple[bytes, str], tuple[float, Refusal | None]] = OrderedDict()
        self._asking = asyncio.Semaphore(MAX_CONCURRENT)

    @property
    def cached(self) -> int:
        """The number of answers that are remembered."""
        return len(self._kept)

    async def refusal(self, authorization: str, path: str) -> Refusal | None:
        """Returns why the sender of this header may not read `path`; None if they may."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Refusal(401, "a bearer token is needed")
        key = (hashlib.sha256(token.strip().encode()).digest(), path)
        cached = self._kept.get(key)
        if cached is not None and self._clock.monotonic() < cached[0]:
            return cached[1]
        try:
            refusal = await run_within(self._clock, ANSWER_S, self._review_access(token.strip(), path))
        except (KubeError, DecodeError, TimeoutError) as error:
            # Not kept: the API server may answer the next scrape.
            return Refusal(503, f"the API server could not be asked who may read this: {error}")
        self._keep_answer(key, refusal)
        return refusal

    async def _review_access(self, token: str, path: str) -> Refusal | None:
        """Asks the API server whether the token's user may get `path`; returns the refusal, None if so."""
        async with self._asking:
            identity = await self._client.send(reviews.who_is(token))
            if not identity.authenticated:
                return Refusal(401, "the API server does not know this token")
            access = await self._client.send(reviews.may_reach_path(identity.user, "get", path))
        if access.allowed and not access.denied:
            return None
        return Refusal(403, f'{identity.user.username} may not get the non-resource URL "{path}"')

    def _keep_answer(self, key: tuple[bytes, str], refusal: Refusal | None) -> None:
        """Caches the answer of a review; removes the oldest one above `MAX_CACHED` answers."""
        lasts_s = ALLOWED_FOR_S if refusal is None else REFUSED_FOR_S
        self._kept[key] = (self._clock.monotonic() + lasts_s, refusal)
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_CACHED:
            # The oldest answer goes first.
            self._kept.popitem(last=False)
