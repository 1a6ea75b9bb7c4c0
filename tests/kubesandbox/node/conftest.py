"""A node agent at work on an API server and a registry in this process, once for each runner that works here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, ManualClock, SystemClock
from kubekit.kube.config import load
from kubekit.kube.watch import Reflector
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.controllers.owned_pods import EVENTS, PODS
from kubesandbox.node.agent import NodeAgent
from kubesandbox.node.runner_interface import Runner
from kubesandbox.node.runners import NAMES, runners
from kubesandbox.node.settings import NodeSettings
from kubesandbox.node.unpacked_images import ImageStore
from runup.release.control.image_build import build_release
from runup.sandbox.processes.services import Registry

JSON = dict[str, Any]
Condition = Callable[[JSON], Any]
NODE = "node-0"
DEADLINE_S = 90.0
RESOURCES = {
    "ConfigMap": Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
    "Secret": Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True),
    "ServiceAccount": Resource(
        group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True
    ),
}


@dataclass
class AgentCluster:
    """Changes and queries the cluster for a test."""

    client: Client
    server: ApiServer
    place: NodeSettings
    registry: Registry
    image: str
    kubeconfig: Path
    clock: Clock
    pods: Cache[WholePod] = field(default_factory=lambda: Cache(WholePod))
    agent: NodeAgent | None = None

    @property
    def manual(self) -> ManualClock:
        """The clock that a test moves."""
        assert isinstance(self.clock, ManualClock)
        return self.clock

    @asynccontextmanager
    async def agent_at_work(self) -> AsyncIterator[None]:
        """An agent, ended in good order when the block is."""
        self.pods = Cache(WholePod)
        self.agent = NodeAgent(self.client, self.pods, self.place, self.clock)
        try:
            async with self._followed():
                yield
        finally:
            await self.agent.close()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See the pods that an agent elsewhere works on."""
        self.pods = Cache(WholePod)
        async with self._followed():
            yield

    @asynccontextmanager
    async def _followed(self) -> AsyncIterator[None]:
        reflector = Reflector(self.client, WholePod, self.pods, clock=SystemClock(), resource=PODS)
        following = asyncio.create_task(reflector.run())
        try:
            await self.pods.until_synced()
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def create(self, kind: str, name: str, **content: Any) -> JSON:
        """An object of the cluster, in `default`."""
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **content}
        return await self.client.send(calls.create(RESOURCES[kind], body))

    async def run(self, script: str, name: str = "pod", *, container: JSON | None = None, **spec: Any) -> JSON:
        """A pod on the node, whose container `main` is a shell script."""
        main = {"name": "main", "image": self.image, "command": ["/bin/sh", "-c", script], **(container or {})}
        return await self.pod({"containers": [main], **spec}, name)

    async def pod(self, spec: JSON, name: str = "pod") -> JSON:
        """A pod on the node; it has no token unless it asks for one."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": {"app": "web"},
                "annotations": {"example.com/note": "a note"},
            },
            "spec": {"nodeName": NODE, "automountServiceAccountToken": False, **spec},
        }
        return await self.client.send(calls.create(PODS, body))

    async def delete(self, name: str = "pod", *, grace_s: int | None = None) -> None:
        """Ask for the pod's end."""
        await self.client.send(calls.delete(PODS, name, "default", grace_period_s=grace_s))

    async def until(self, condition: Condition, what: str, name: str = "pod") -> JSON:
        """The status of the pod once `condition` holds for it."""
        key = NamespacedName("default", name)
        found: JSON = {}

        def holds() -> bool:
            nonlocal found
            pod = self.pods.get(key)
            found = pod.status if pod is not None else {}
            return pod is not None and bool(condition(found))

        try:
            await self._when(holds)
        except TimeoutError:
            raise AssertionError(f"{what} did not happen; the status is {json.dumps(found, indent=1)}") from None
        return found

    async def until_gone(self, name: str = "pod") -> None:
        """Wait for the end of the object."""
        await self._when(lambda: self.pods.get(NamespacedName("default", name)) is None)

    async def agent_idle(self) -> None:
        """Wait until no pod is left to work on."""
        assert self.agent is not None
        async with asyncio.timeout(DEADLINE_S):
            while self.agent.busy:
                await self._look_again()

    async def _when(self, holds: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        self.pods.add_listener(lambda *_: changed.set())
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                changed.clear()
                await changed.wait()

    async def events(self) -> list[tuple[str, str]]:
        """Reason and message of every event."""
        page = await self.client.send(calls.list_raw(EVENTS, "default"))
        return [(event["reason"], event["message"]) for event in page.items]

    async def until_told(self, reason: str) -> str:
        """The message of the first event of this reason."""
        while True:
            shown = [message for found, message in await self.events() if found == reason]
            if shown:
                return shown[0]
            await self._look_again()

    async def until_logged(self, text: str, name: str = "pod") -> None:
        """Wait for a word of the pod's container."""
        while text not in self.log(name):
            await self._look_again()

    async def _look_again(self) -> None:
        """Files and events bring no news by themselves; the test's own time limit is the deadline."""
        await SystemClock().sleep(0.02)

    def log(self, name: str = "pod", container: str = "main") -> str:
        """What a container wrote."""
        pod = self.pods.get(NamespacedName("default", name))
        file = self.place.pod_folder(pod) / f"{container}.log" if pod else None
        return file.read_text() if file and file.exists() else ""

    def host(self, path: str) -> Path:
        """A path of the node."""
        return self.place.host_path(NODE, path)


def container(status: JSON, name: str = "main") -> JSON:
    """The status of one container, or nothing."""
    several = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return next((each for each in several if each["name"] == name), {})


def state(status: JSON, name: str = "main") -> JSON:
    """Returns the state of a container: `{"waiting": ...}`, `{"running": ...}` or `{"terminated": ...}`."""
    found: JSON = container(status, name).get("state") or {}
    return found


def waits(reason: str, message: str = "") -> Condition:
    """Whether the container waits for this reason, with this in its message."""

    def holds(status: JSON) -> bool:
        waiting = state(status).get("waiting") or {}
        return waiting.get("reason") == reason and message in waiting.get("message", "")

    return holds


def runs(status: JSON) -> bool:
    """Whether the container runs."""
    return "running" in state(status)


def ended(status: JSON) -> JSON:
    """How the container ended, or nothing."""
    found: JSON = state(status).get("terminated") or {}
    return found


def condition(status: JSON, type_: str) -> JSON:
    """A condition of the pod."""
    return next((each for each in status.get("conditions") or () if each["type"] == type_), {})


def usable(name: str, state: Path) -> Runner:
    """The runner; the test is skipped where its program is missing or it may not be used here."""
    runner = runners(state)[name]
    if problem := runner.problem():
        pytest.skip(f"runner {name}: {problem}")
    return runner


@asynccontextmanager
async def agent_cluster_with(runner_name: str, folder: Path, clock: Clock) -> AsyncIterator[AgentCluster]:
    """Server, registry and one release image, without an agent yet."""
    data = folder / "data"
    runner = usable(runner_name, data / "runc")
    built = build_release(folder / "registry", version="5.0.0", files={"manifests/a.yaml": b"a: 1\n"})
    async with (
        ApiServer(data=data) as server,
        Registry(folder / "registry") as registry,
        Client(load(str(server.kubeconfig))) as client,
    ):
        place = NodeSettings(
            data=data,
            runner=runner,
            images=ImageStore(data / "images", registry.host),
            server=client.config.server,
            ca=data / "pki" / "ca.crt",
        )
        image = built.pullspec(f"{registry.host}/runup/release")
        yield AgentCluster(client, server, place, registry, image, server.kubeconfig, clock)
        await asyncio.to_thread(runner.sweep)


# What bubblewrap does of its own is between the other two: every row of it, too, with the slow ones.
WITH_EACH_RUNNER = [pytest.param(name, marks=pytest.mark.slow if name == "bubblewrap" else ()) for name in NAMES]


@pytest.fixture(params=WITH_EACH_RUNNER)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentCluster]:
    """An agent with each runner, by the real clock."""
    async with agent_cluster_with(request.param, tmp_path, SystemClock()) as made, made.agent_at_work():
        yield made


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[AgentCluster]:
    """An agent with plain processes, by a clock that the test moves."""
    clock = ManualClock(datetime.now(UTC))
    async with agent_cluster_with("process", tmp_path, clock) as made, made.agent_at_work():
        yield made
