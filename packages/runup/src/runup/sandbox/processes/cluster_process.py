"""Runs everything of a cluster but its API server: `python -m runup.sandbox.processes.cluster_process --data DIR`.

Registry, update service, controllers and node agent run in one process, all of them clients of the API server over
HTTP. It sets the scenario up at the first start and writes `ready.json` when everything is in place.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

import structlog
import uvloop

from kubekit.api.codec import DecodeError
from kubekit.api.workloads_v1 import Deployment
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.config import load as load_kubeconfig
from kubekit.lang.files import Lossy
from kubesandbox import cluster
from kubesandbox.node.agent import NodeAgent
from kubesandbox.node.runner_interface import choose_runner
from kubesandbox.node.runners import runners
from kubesandbox.node.settings import Limits, NodeSettings
from kubesandbox.node.unpacked_images import ImageStore
from kubesandbox.sandbox_error import SandboxError
from kubesandbox.tasks import cancel_tasks
from runup.dump import load
from runup.process.names import operator_namespace
from runup.sandbox.processes.rollout import Rollout
from runup.sandbox.processes.services import Registry, UpdateService, load_or_create_writer, write_credentials_file
from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario import from_dump
from runup.sandbox.scenario import scenario_releases as releases
from runup.sandbox.scenario.folder import Scenario
from runup.sandbox.setup import scenario_objects as imports
from runup.sandbox.setup import scenario_objects as setup
from runup.sandbox.setup import settings
from runup.updatestatus.decide import freshness

# A kubelet's delays are ten times as long, which is too long for a sandbox.
_BACK_OFF = Limits(1.0, 30.0)
# Enough for an operator to give its lease back, so that the next start need not wait for the lease to run out.
_SHUTDOWN_S = 2.0
# The namespaces of runup's own programs, and the time that their pods get to become available.
_PROGRAMS = (operator_namespace(), freshness.NAMESPACE)
_PROGRAMS_S = 15.0
# The credential file of the user who may push to the sandbox's registry, as registry clients read it.
REGISTRY_AUTH = "registry-auth.json"
log = structlog.get_logger("cluster")


def read_scenario(sandbox_settings: settings.Settings) -> Scenario:
    """Returns the scenario that the settings name: a bundled one, a folder, or a dump; raises SandboxError."""
    if sandbox_settings.source:
        dump = load.read(Path(sandbox_settings.source))
        return from_dump.scenario_of(dump, base=scenario.BUNDLED / "common")
    return scenario.load(scenario.find(sandbox_settings.scenario or scenario.DEFAULT))


@dataclass(frozen=True, slots=True)
class Services:
    """The services outside of the cluster: the registry (`host:port`), its releases, the update service's URL."""

    registry: str
    releases: tuple[releases.Release, ...]
    updates: str


class Cluster:
    """The parts of a cluster, as asyncio tasks."""

    def __init__(self, data: Path, sandbox_settings: settings.Settings, clock: Clock) -> None:
        self._data = data
        self._settings = sandbox_settings
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set. Raises SandboxError, and whatever error ended a controller."""
        chosen_scenario = await asyncio.to_thread(read_scenario, self._settings)
        async with contextlib.AsyncExitStack() as stack:
            services = await self._services(stack, chosen_scenario)
            client = await stack.enter_async_context(await self._client())
            place = await asyncio.to_thread(self._place_for_pods, client, chosen_scenario, services.registry)
            # Controllers start when every object is there: before that, objects seem to lack their owners.
            left_out = await self._set_up(client, chosen_scenario, services)
            tasks = self._start(stack, client, place, imported=chosen_scenario.cluster.imported)
            if chosen_scenario.rollout is not None:
                rollout = Rollout(client, self._clock, chosen_scenario.rollout)
                tasks.append(asyncio.create_task(rollout.run(), name="rollout"))
            await self._await_programs(client, lambda: stop.is_set() or any(task.done() for task in tasks))
            settings.save_ready(
                self._data,
                settings.Ready(
                    title=chosen_scenario.title,
                    version=chosen_scenario.cluster.version,
                    releases=tuple(release.version for release in chosen_scenario.releases),
                    runner=place.runner.name,
                    not_isolated=place.runner.not_isolated,
                    left_out=left_out,
                    notes=chosen_scenario.notes,
                    update_service=services.updates,
                    registry=services.registry,
                ),
            )
            log.info("ready", scenario=chosen_scenario.name, runner=place.runner.name)
            await cluster.until_over(stop, tasks)

    async def _services(self, stack: contextlib.AsyncExitStack, chosen_scenario: Scenario) -> Services:
        """Starts the registry and the update service, builds the scenario's releases, and returns where they are."""
        secret, port = self._data / REGISTRY_AUTH, self._settings.registry_port
        writers = load_or_create_writer(secret)
        registry = await stack.enter_async_context(
            Registry(self._data / "registry", port=port, signatures=self._data / "signatures", writers=writers)
        )
        write_credentials_file(secret, registry.host, writers)
        # The releases are built with the update service's URL, so the service starts first, with an empty graph. Its
        # lambda reads `graph` at each request, and so serves the second one below.
        graph = releases.graph(chosen_scenario, ())
        updates = await stack.enter_async_context(UpdateService(lambda: graph, port=self._settings.update_port))
        built = await asyncio.to_thread(
            releases.build, chosen_scenario, self._data, registry=registry.host, update_service=updates.url
        )
        graph = releases.graph(chosen_scenario, built)
        return Services(registry.host, built, updates.url)

    async def _client(self) -> Client:
        """Returns a client of the API server, once it answers."""
        while True:
            with contextlib.suppress(KubeError):
                # The controllers have a user of the sandbox's API server; another server has only the administrator.
                own_kubeconfig, admin = self._data / "controllers.kubeconfig", self._data / "admin.kubeconfig"
                client = Client(
                    load_kubeconfig(str(own_kubeconfig if own_kubeconfig.is_file() else admin)), clock=self._clock
                )
                try:
                    await client.send(calls.get_path("/readyz"))
                except KubeError:
                    await client.close()
                    raise
                return client
            await self._clock.sleep(0.05)

    def _start(
        self, stack: contextlib.AsyncExitStack, client: Client, place: NodeSettings, *, imported: bool
    ) -> list[asyncio.Task[None]]:
        """Starts controllers and node agent; `stack` ends them, the controllers first."""
        watched = cluster.Watched()
        stack.push_async_callback(NodeAgent(client, watched.pods, place, self._clock).close)
        own_nodes = (imports.own_node(),) if imported else ()
        tasks = cluster.start_controllers(stack, client, watched, self._clock, own_nodes=own_nodes)
        stack.push_async_callback(cancel_tasks, tasks)
        return tasks

    async def _await_programs(self, client: Client, is_over: Callable[[], bool]) -> None:
        """Returns when the pods of runup's own programs are available, when the cluster ends, or after a time limit.

        The cluster is ready for its user with them; a scenario in which they cannot start is ready without.
        """
        end = self._clock.monotonic() + _PROGRAMS_S
        while not is_over() and self._clock.monotonic() < end:
            with contextlib.suppress(KubeError, DecodeError):
                programs = [each for name in _PROGRAMS for each in (await client.list_all(Deployment, name))[0]]
                if all(each.status.available_replicas >= (each.spec.replicas or 0) for each in programs):
                    return
            await self._clock.sleep(0.1)

    def _place_for_pods(self, client: Client, chosen_scenario: Scenario, registry: str) -> NodeSettings:
        """Chooses how pods run here, removes what an earlier process left, and returns the node agent's settings."""
        state = self._data / "runc"
        runner, passed_over = choose_runner(runners(state), self._settings.runner)
        runner.sweep()
        for why in passed_over:
            log.info("runner passed over", why=why)
        return NodeSettings(
            data=self._data,
            runner=runner,
            images=ImageStore(self._data / "images", registry),
            server=client.config.server,
            ca=self._data / "pki" / "ca.crt",
            declare_others=chosen_scenario.workloads.other_images == "ready",
            backoff=_BACK_OFF,
            shutdown_s=_SHUTDOWN_S,
        )

    async def _set_up(self, client: Client, chosen_scenario: Scenario, services: Services) -> tuple[str, ...]:
        """Creates the scenario's objects, at the first start only; returns what was left out, and why."""
        before = settings.ready(self._data)
        if before is not None:
            return before.left_out  # later changes belong to the user
        if chosen_scenario.rollout is not None:
            return await setup.set_up_kubernetes(client, chosen_scenario, self._clock)
        auth = (self._data / REGISTRY_AUTH).read_bytes()
        return await setup.set_up(client, chosen_scenario, services.releases, self._clock, registry_auth=auth)


async def serve(data: Path) -> None:
    """Runs the cluster until SIGTERM or SIGINT; raises SandboxError."""
    sandbox_settings = settings.load(data)
    if sandbox_settings is None:
        raise SandboxError(f"{data} does not contain a sandbox; `runup sandbox start --data {data}` makes one")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Cluster(data, sandbox_settings, SystemClock()).run(stop)


def main() -> None:
    """Runs the process; exits 1 with one line if it cannot run."""
    parser = argparse.ArgumentParser(
        prog="runup.sandbox.processes.cluster_process", description="A cluster around an API server."
    )
    parser.add_argument("--data", type=Path, required=True, help="the sandbox's folder")
    arguments = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(cast("TextIO", Lossy(sys.stdout))))
    try:
        uvloop.run(serve(arguments.data.resolve()))
    except (Terminal, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
