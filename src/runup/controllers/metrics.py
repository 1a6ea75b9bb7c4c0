"""The preflight's metrics, `cluster_version_preflight_*`, and the endpoint that serves them beside health."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from runup.domain.clusterversion.observed import Observed
from runup.domain.plan import Action, Apply, Event, Plan
from runup.domain.preflight.report import Report

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Metrics:
    """Counts what reconciles decide. A registry of its own: several managers may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cluster_version_preflight_requests", "Preflights that were started.", registry=self.registry
        )
        self._refused = Counter(
            "cluster_version_status_refused",
            "Writes of ClusterVersion's status that the API server refused as invalid or too large.",
            registry=self.registry,
        )
        self._outcomes = Counter(
            "cluster_version_preflight_outcomes",
            "How preflights ended: PreflightCompleted or PreflightFailed.",
            ["outcome"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "cluster_version_preflight_duration_seconds",
            "From the start of a preflight to its first result.",
            buckets=(1, 3, 10, 30, 60, 120, 300, 600, 1200),
            registry=self.registry,
        )
        self._age = Gauge(
            "cluster_version_preflight_report_age_seconds",
            "Time since the findings in the current report were made.",
            registry=self.registry,
        )
        self._checks = Gauge(
            "cluster_version_preflight_checks", "Checks of the current report.", ["result"], registry=self.registry
        )

    def status_refused(self) -> None:
        """The API server did not take a status."""
        self._refused.inc()

    def count(self, observed: Observed, plan: Plan, now: datetime) -> None:
        """Take one pass into account, after it was carried out."""
        for action in plan.actions:
            if isinstance(action, Event) and action.reason in ("PreflightCompleted", "PreflightFailed"):
                self._outcomes.labels(outcome=action.reason).inc()
                self._ended(observed, now)
        if observed.deployment is None and any(_starts(action) for action in plan.actions):
            self._requests.inc()
        self._report(observed, now)

    def _ended(self, observed: Observed, now: datetime) -> None:
        created = observed.deployment.metadata.creation_timestamp if observed.deployment else None
        if created is not None:
            self._duration.observe((now - created).total_seconds())

    def _report(self, observed: Observed, now: datetime) -> None:
        report = observed.report.content if observed.report else None
        self._checks.clear()
        if not isinstance(report, Report):
            self._age.set(0)
            return
        if report.observed_time is not None:
            self._age.set((now - report.observed_time).total_seconds())
        for check in report.checks:
            self._checks.labels(result=check.result).inc()


def _starts(action: Action) -> bool:
    return isinstance(action, Apply) and action.resource.kind == "Deployment"


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
