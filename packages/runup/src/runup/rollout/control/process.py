"""The process of the controller of update policies: its clients, leader election, and an orderly start and stop.

Started by `cluster-version-operator update-policy-controller`. Only the leader makes passes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import uuid4

import structlog

from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.process.endpoint import Endpoint
from runup.process.leader_election import cancel, restart_on_error
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.metrics import Metrics
from runup.rollout.control.notifier import Notifier
from runup.rollout.control.observe import read_cluster
from runup.rollout.control.update_graph import GraphReader

log = structlog.get_logger("rollout")
NAMESPACE, LEASE = "runup-update", "update-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The settings from the flags. `node_s`: the seconds that a node takes at least and at most; None: a guess."""

    namespace: str = NAMESPACE
    node_s: tuple[int, int] | None = None


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
        agent, options, clock = f"UpdatePolicyController/{__version__}", self._options, self._clock
        async with (
            Client(self._config, clock=clock, user_agent=agent) as client,
            serve_until_done(self.endpoint, options, client, clock, lacking=self.lacking, caches=()),
        ):
            # Reads block in a thread; only writes need the client that stops when the lease is lost.
            with SyncClient(self._config, user_agent=agent, clock=clock) as reader:
                graph = GraphReader(clock)
                notifier = Notifier(client, clock, namespace=options.namespace)
                controller = PolicyController(
                    client,
                    clock,
                    lambda: read_cluster(reader, options.node_s, with_policy=True),
                    leader=str(uuid4()),
                    graph=graph.read,
                    metrics=self.metrics,
                    notifier=notifier,
                )

                async def work() -> None:
                    sending = asyncio.create_task(restart_on_error(notifier.run, clock))
                    try:
                        with self.metrics.leading.track_inprogress():
                            await controller.run()
                    finally:
                        await cancel([sending])
                        await graph.close()

                await self.lead(client, work, namespace=options.namespace, lease=LEASE)

    def not_ready(self) -> str:
        """Returns what is missing: nothing, because each pass reads what it needs."""
        return ""


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process`: the first TERM or INT signal ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
