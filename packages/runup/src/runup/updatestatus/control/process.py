"""Wires the update status controller: client, caches, sources, leader election, and an orderly start and stop.

Started by `cluster-version-operator update-status-controller`. Caches run from the start, so that a new leader writes
at once; only the leader writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from runup import __version__
from runup.process.endpoint import Endpoint
from runup.process.leader_election import cancel, restart_on_error
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.caches import Caches, reflectors
from runup.updatestatus.control.component_objects import WatchedComponents
from runup.updatestatus.control.controller import DrainingPods, Metrics, Now, Sources, Timing, UpdateStatusController
from runup.updatestatus.control.status_store import UpdateStatusStore
from runup.updatestatus.decide.freshness import LEASE, NAMESPACE, confirmation

log = structlog.get_logger("updatestatus")
LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The settings from the flags. An empty `alerts_url` disables queries for alerts. `fixed_now`: see
    `controller.Now`.
    """

    namespace: str = NAMESPACE
    alerts_url: str = ""
    alerts_ca: str = ""
    timing: Timing = field(default_factory=Timing)
    fixed_now: datetime | None = None


class Process(LeaderProcess):
    """The controller with everything it needs."""

    _options: Options

    def __init__(self, config: ClusterConfig, options: Options, *, clock: Clock | None = None) -> None:
        super().__init__(config, options, clock)
        self.metrics = Metrics()
        self.caches = Caches()
        self.endpoint = Endpoint(self.metrics, self._clock)
        # Why UpdateStatus cannot be written; known once its watch runs.
        self._store_lacks: Callable[[], str] = str

    async def run(self) -> None:
        """Serves until stopped; raises KubeError (configuration), ValueError (flags), LeaseLost."""
        log.info("starting", version=__version__, namespace=self._options.namespace)
        agent = f"UpdateStatusController/{__version__}"
        options, clock = self._options, self._clock
        async with (
            Client(self._config, clock=clock, user_agent=agent) as client,
            serve_until_done(self.endpoint, options, client, clock, lacking=self.lacking, caches=self.caches.all()),
        ):
            await self._serve_cluster(client)

    async def _serve_cluster(self, client: Client) -> None:
        """Runs the controller and its watches on one cluster until the process is told to stop."""
        options, clock = self._options, self._clock
        queue: WorkQueue[str] = WorkQueue(clock, longest_backoff_s=LONGEST_BACKOFF_S)
        controller = UpdateStatusController(
            caches=self.caches,
            queue=queue,
            clock=clock,
            metrics=self.metrics,
            now=Now(clock, options.fixed_now),
            timing=options.timing,
        )
        keeper = UpdateStatusStore(client, clock, controller.on_echo)
        self._store_lacks = lambda: keeper.lacking
        drains = DrainingPods(client, clock, controller.on_change)
        components = WatchedComponents(client, clock, controller.on_change)
        alerts = Alerts(options.alerts_url, self._config.auth, clock, controller.on_change, ca_file=options.alerts_ca)
        following = [reflector.run for reflector in (*reflectors(client, self.caches, clock), keeper.reflector)]
        tasks = [
            asyncio.create_task(restart_on_error(run, clock))
            for run in (*following, drains.run, alerts.run, components.run)
        ]

        async def work() -> None:
            with self.metrics.leading.track_inprogress():
                await controller.run(keeper, Sources(drains, alerts, components))

        try:
            await self.lead(
                client,
                work,
                namespace=options.namespace,
                lease=LEASE,
                annotations=lambda: confirmation(controller.confirmed_at),
            )
        finally:
            await cancel(tasks)

    def not_ready(self) -> str:
        """Returns which kind is not listed yet, or why UpdateStatus cannot be written; empty if neither."""
        waiting = self.caches.waiting()
        return f"{waiting} is not listed yet" if waiting else self._store_lacks()


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process`: the first TERM or INT signal ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
