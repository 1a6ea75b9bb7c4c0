"""`python -m runup.sandbox.cluster --data DIR`: everything of a cluster but its API server.

Registry, update service, controllers and node agent in one process, all of them clients of the API server over HTTP. It
sets the scenario up at the first start and says in `ready.json` when everything is in place.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import structlog
import uvloop

from runup.kube import calls
from runup.kube.client import Client
from runup.kube.clock import Clock, SystemClock
from runup.kube.config import load as load_kubeconfig
from runup.kube.errors import KubeError
from runup.sandbox import control_plane, releases, scenario, settings, setup
from runup.sandbox.dump import as_scenario, layout, load
from runup.sandbox.errors import SandboxError
from runup.sandbox.node.agent import NodeAgent
from runup.sandbox.node.backoff import Limits
from runup.sandbox.node.images import ImageStore
from runup.sandbox.node.place import Place
from runup.sandbox.node.runner import choose
from runup.sandbox.node.runners import runners
from runup.sandbox.registry import Registry
from runup.sandbox.scenario import Scenario
from runup.sandbox.settings import Ready, Settings
from runup.sandbox.update_service import UpdateService

# A kubelet's are ten times as long: nobody wants to wait that long in a sandbox.
_BACK_OFF = Limits(1.0, 30.0)
log = structlog.get_logger("cluster")


def read_scenario(chosen: Settings) -> Scenario:
    """The scenario that the settings name: a bundled one, a folder, or an imported dump. Raises SandboxError."""
    if chosen.source:
        dump = load.load(layout.find(Path(chosen.source)))
        return as_scenario.scenario_of(dump, base=scenario.BUNDLED / "common")
    return scenario.load(scenario.find(chosen.scenario or scenario.DEFAULT))


class Cluster:
    """The processes of a cluster, as tasks."""

    def __init__(self, data: Path, chosen: Settings, clock: Clock) -> None:
        self._data = data
        self._settings = chosen
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises SandboxError."""
        wanted = await asyncio.to_thread(read_scenario, self._settings)
        async with contextlib.AsyncExitStack() as stack:
            registry = await stack.enter_async_context(
                Registry(
                    self._data / "registry",
                    port=self._settings.registry_port,
                    signatures=self._data / "signatures",
                )
            )
            built = await asyncio.to_thread(releases.build, wanted, self._data, registry=registry.host)
            graph = releases.graph(wanted, built)
            updates = await stack.enter_async_context(UpdateService(lambda: graph, port=self._settings.update_port))
            client = await stack.enter_async_context(await self._client())
            agent = await self._start(stack, client, wanted, registry.host)
            left_out = await self._set_up(client, wanted, built, updates.url)
            self._say_ready(wanted, agent, registry.host, updates.url, left_out)
            await stop.wait()
            await self._end()

    async def _client(self) -> Client:
        """A client of the API server, once it answers."""
        kubeconfig = self._data / "admin.kubeconfig"
        while True:
            with contextlib.suppress(KubeError):
                client = Client(load_kubeconfig(str(kubeconfig)), clock=self._clock)
                try:
                    await client.send(calls.get_path("/readyz"))
                except KubeError:
                    await client.close()
                else:
                    return client
            await self._clock.sleep(0.05)

    async def _start(self, stack: contextlib.AsyncExitStack, client: Client, wanted: Scenario, registry: str) -> Place:
        place = await asyncio.to_thread(self._place, client, wanted, registry)
        watched = control_plane.Watched()
        agent = NodeAgent(client, watched.pods, place, self._clock)
        stack.push_async_callback(agent.close)
        self._tasks = control_plane.start(stack, client, watched, self._clock)
        return place

    def _place(self, client: Client, wanted: Scenario, registry: str) -> Place:
        state = self._data / "runc"
        runner, passed_over = choose(runners(state), self._settings.runner)
        runner.sweep()
        for why in passed_over:
            log.info("runner passed over", why=why)
        return Place(
            data=self._data,
            runner=runner,
            images=ImageStore(self._data / "images", registry),
            server=client.config.server,
            ca=self._data / "pki" / "ca.crt",
            declare_others=wanted.workloads.other_images == "ready",
            backoff=_BACK_OFF,
        )

    async def _set_up(
        self, client: Client, wanted: Scenario, built: tuple[releases.Release, ...], update_service: str
    ) -> int:
        before = settings.ready(self._data)
        if before is not None:
            return before.left_out  # set up at an earlier start; what was changed since is the user's
        return await setup.set_up(client, wanted, built, self._clock, update_service=update_service)

    def _say_ready(self, wanted: Scenario, place: Place, registry: str, updates: str, left_out: int) -> None:
        settings.save_ready(
            self._data,
            Ready(
                title=wanted.title,
                version=wanted.cluster.version,
                releases=tuple(release.version for release in wanted.releases),
                runner=place.runner.name,
                not_isolated=place.runner.not_isolated,
                left_out=left_out,
                notes=wanted.notes,
                update_service=updates,
                registry=registry,
            ),
        )
        log.info("ready", scenario=wanted.name, runner=place.runner.name)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def serve(data: Path) -> None:
    """Run until SIGTERM or SIGINT; raises SandboxError."""
    chosen = settings.load(data)
    if chosen is None:
        raise SandboxError(f"{data} holds no sandbox; `runup sandbox start --data {data}` makes one")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Cluster(data, chosen, SystemClock()).run(stop)


def main() -> None:
    """The process; exits 1 with one line when it cannot run."""
    parser = argparse.ArgumentParser(prog="runup.sandbox.cluster", description="A cluster around an API server.")
    parser.add_argument("--data", type=Path, required=True, help="the sandbox's folder")
    arguments = parser.parse_args()
    try:
        uvloop.run(serve(arguments.data.resolve()))
    except (SandboxError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
