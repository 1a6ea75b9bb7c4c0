"""Wires the update status controller: client, caches, sources, leader election, and an orderly start and stop.

Started by `cluster-version-operator update-status-controller`. Caches run from the start, so that a new leader writes
at once; only the leader writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound, Transient
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from runup import __version__
from runup.api.config_v1 import ClusterVersion
from runup.process.endpoint import Endpoint
from runup.process.leader_election import cancel, restart_on_error
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.caches import Caches, KubernetesCaches, reflectors
from runup.updatestatus.control.component_objects import WatchedComponents
from runup.updatestatus.control.controller import DrainingPods, Metrics, Now, Sources, Timing, UpdateStatusController
from runup.updatestatus.control.hosted_controller import HostedStatuses
from runup.updatestatus.control.kubernetes_objects import WatchedKubernetes
from runup.updatestatus.control.status_store import UpdateStatusStore
from runup.updatestatus.decide.freshness import LEASE, NAMESPACE, confirmation

log = structlog.get_logger("updatestatus")
LONGEST_BACKOFF_S = 30.0
_ASKED_AGAIN_S = 1.0


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
        self.kubernetes_caches = KubernetesCaches()
        # Whether the server knows no ClusterVersion; decided once, when it answers.
        self._of_kubernetes = False
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
            serve_until_done(
                self.endpoint,
                options,
                client,
                clock,
                lacking=self.lacking,
                caches=(*self.caches.all(), *self.kubernetes_caches.all()),
            ),
        ):
            await self._serve_cluster(client)

    async def _serve_cluster(self, client: Client) -> None:
        """Runs the controller and its watches on one cluster until the process is asked to stop."""
        tasks: list[asyncio.Task[None]] = []
        # Next to the election, which names a server that does not answer.
        preparing = asyncio.create_task(self._prepare(client, tasks))

        async def work() -> None:
            controller, keeper, sources = await asyncio.shield(preparing)
            now = Now(self._clock, self._options.fixed_now)
            hosted = HostedStatuses(client, self._clock, now.insights)
            following = asyncio.create_task(restart_on_error(hosted.run, self._clock))
            try:
                with self.metrics.leading.track_inprogress():
                    await controller.run(keeper, sources)
            finally:
                await cancel([following])

        def confirmed_at() -> datetime | None:
            is_ready = preparing.done() and not preparing.cancelled() and preparing.exception() is None
            return preparing.result()[0].confirmed_at if is_ready else None

        try:
            await self.lead(
                client,
                work,
                namespace=self._options.namespace,
                lease=LEASE,
                annotations=lambda: confirmation(confirmed_at()),
            )
        finally:
            preparing.cancel()
            await asyncio.wait([preparing])
            await cancel(tasks)

    async def _prepare(
        self, client: Client, tasks: list[asyncio.Task[None]]
    ) -> tuple[UpdateStatusController, UpdateStatusStore, Sources]:
        """Returns the controller with its store and sources, once the kind of cluster is known; adds its watches."""
        options, clock = self._options, self._clock
        self._of_kubernetes = await self._has_no_cluster_version(client)
        caches = self.kubernetes_caches if self._of_kubernetes else self.caches
        queue: WorkQueue[str] = WorkQueue(clock, longest_backoff_s=LONGEST_BACKOFF_S)
        controller = UpdateStatusController(
            caches=caches,
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
        sources = Sources(drains, alerts, components)
        if self._of_kubernetes:
            others = WatchedKubernetes(client, clock, controller.on_change)
            sources = Sources(drains, alerts, components, kubernetes=others)
            filling = self.kubernetes_caches.reflectors(client, clock)
            running = [drains.run, others.run]
        else:
            filling = reflectors(client, self.caches, clock)
            running = [drains.run, alerts.run, components.run]
        following = [reflector.run for reflector in (*filling, keeper.reflector)]
        tasks += [asyncio.create_task(restart_on_error(run, clock)) for run in (*following, *running)]
        return controller, keeper, sources

    async def _has_no_cluster_version(self, client: Client) -> bool:
        """Returns whether the server does not know the kind ClusterVersion; waits until it answers, or for the end."""
        while not self.stopping.is_set():
            try:
                await client.send(calls.list_raw(resource_of(ClusterVersion), limit=1))
            except NotFound:
                log.info("no ClusterVersion: the status is that of a cluster of Kubernetes")
                return True
            except Transient:
                log.debug("the API server does not answer yet")
            except KubeError:
                return False
            else:
                return False
            with suppress(TimeoutError):
                await run_within(self._clock, _ASKED_AGAIN_S, self.stopping.wait())
        return False

    def not_ready(self) -> str:
        """Returns which kind is not listed yet, or why UpdateStatus cannot be written; empty if neither."""
        waiting = (self.kubernetes_caches if self._of_kubernetes else self.caches).waiting()
        return f"{waiting} is not listed yet" if waiting else self._store_lacks()


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process`: the first TERM or INT signal ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
