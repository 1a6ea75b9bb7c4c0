"""The process of the controller of fleet updates: its clients, leader election, and an orderly start and stop.

Started by `cluster-version-operator fleet-update-controller`. Only the leader makes passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.fleet.control.hub_controller import FleetController
from runup.fleet.control.hub_fleets import LEASE, read_hub
from runup.fleet.control.hub_metrics import Metrics
from runup.process.endpoint import Endpoint
from runup.process.names import FLEET_NAMESPACE
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done

log = structlog.get_logger("fleet-update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The settings from the flags. `namespace` has the lease, and the FleetUpdates."""

    namespace: str = FLEET_NAMESPACE


class Process(LeaderProcess):
    """The controller with everything it needs."""

    _options: Options

    def __init__(self, config: ClusterConfig, options: Options, *, clock: Clock | None = None) -> None:
        super().__init__(config, options, clock)
        self.metrics = Metrics()
        self.endpoint = Endpoint(self.metrics, self._clock)

    async def run(self) -> None:
        """Serves until stopped; raises KubeError (configuration), ValueError (flags), LeaseLost."""
        log.info("starting", version=__version__, namespace=self._options.namespace)
        agent, options, clock = f"FleetUpdateController/{__version__}", self._options, self._clock
        async with (
            Client(self._config, clock=clock, user_agent=agent) as client,
            serve_until_done(self.endpoint, options, client, clock, lacking=self.lacking, caches=()),
        ):
            # Reads block in a thread; only writes need the client that stops when the lease is lost.
            with SyncClient(self._config, user_agent=agent, clock=clock) as reader:
                controller = FleetController(
                    client, clock, lambda: read_hub(reader, options.namespace), metrics=self.metrics
                )

                async def work() -> None:
                    with self.metrics.leading.track_inprogress():
                        await controller.run()

                await self.lead(client, work, namespace=options.namespace, lease=LEASE)

    def not_ready(self) -> str:
        """Returns what is missing: nothing, because each pass reads what it needs."""
        return ""


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process`: the first TERM or INT signal ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
