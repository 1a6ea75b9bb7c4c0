"""An update of 5,000 nodes in 20 pools on the sandbox's API server, watched by the update status controller.

Aims: from a node's change to the object under 2 s (median and p99), the controller under 200 MiB. The API server, the
controller and the driver are processes of their own on one machine. The driver takes nodes through the phases of an
update, a steady number of changes a second, and watches the object as any other client would.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path

import yaml

from bench.measure import process
from bench.speed.api import api_server_in
from bench.speed.update_cluster import JSON, POOLS, STEPS, change, cluster, node, node_name, object_
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Wire
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request
from runup.sandbox import crds

NODES = int(os.environ.get("BENCH_NODES", "5000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
CHANGES_A_SECOND = 10.0
DEADLINE_S = 300.0
STATUS_ROUNDS = 3
NAMESPACE = "openshift-update-status-controller"
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
STATUSES = Resource(
    group="update.openshift.io", version="v1alpha1", kind="UpdateStatus", plural="updatestatuses", namespaced=False
)
NODE = resource_of(Node)


class _Condition(Wire, frozen=True):
    type: str = ""
    reason: str = ""


class _Node(Wire, frozen=True):
    name: str = ""
    conditions: tuple[_Condition, ...] = ()


class _Insight(Wire, frozen=True):
    node: _Node | None = None


class _Informer(Wire, frozen=True):
    insights: tuple[_Insight, ...] = ()


class _Pool(Wire, frozen=True):
    informers: tuple[_Informer, ...] = ()


class _Status(Wire, frozen=True):
    control_plane: _Pool = _Pool()
    worker_pools: tuple[_Pool, ...] = ()


class _Object(Wire, frozen=True):
    status: _Status = _Status()

    def phases(self) -> dict[str, str]:
        """Node -> the reason of its condition Updating."""
        pools = (self.status.control_plane, *self.status.worker_pools)
        nodes = (insight.node for pool in pools for informer in pool.informers for insight in informer.insights)
        return {
            node.name: next((each.reason for each in node.conditions if each.type == "Updating"), "")
            for node in nodes
            if node is not None
        }


class _Event(Wire, frozen=True):
    object: _Object = _Object()


class Watcher:
    """Follows the object: when each node was first seen in the phase that is waited for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.phases: dict[str, str] = {}
        self.seen: dict[tuple[str, str], float] = {}
        self.sizes: list[int] = []
        self.times: list[float] = []
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        query = (("watch", "true"), ("fieldSelector", "metadata.name=cluster"))
        request = Request(
            method="GET", path=calls.path_of(STATUSES), query=query, headers=(("Accept", "application/json"),)
        )
        while True:
            with suppress(ApiError):
                async with aclosing(self._client.stream(Call(request, self._take))) as lines:
                    async for _ in lines:
                        self.changed.set()
            await asyncio.sleep(0.2)

    def _take(self, line: bytes) -> None:
        from kubekit.api import codec

        now = time.perf_counter()
        phases = codec.decode(_Event, line).object.phases()
        for name, phase in phases.items():
            if self.phases.get(name) != phase:
                self.seen[name, phase] = now
        # Nodes that are done are the first to be left out of a full object: that they are gone says it.
        for name in self.phases.keys() - phases.keys():
            self.seen[name, "Completed"] = now
        self.phases = phases
        self.sizes.append(len(line))
        self.times.append(now)


async def fill(client: Client, nodes: int) -> None:
    """The definitions, the cluster, its nodes."""
    for file in crds.definition_files(generally_available=True):
        for body in yaml.safe_load_all(file.read_text()):
            await client.send(calls.create(CRDS, body))
    for name in (NAMESPACE, "openshift-machine-config-operator"):
        await client.send(calls.create(NAMESPACES, object_("v1", "Namespace", name, {})))
    for resource, body in cluster():
        await _create(client, resource, body)
    numbers = iter(range(nodes))

    async def worker() -> None:
        for number in numbers:
            await _create(client, NODE, node(number))

    await asyncio.gather(*(worker() for _ in range(16)))


async def _create(client: Client, resource: Resource, body: JSON) -> None:
    made = None
    while made is None:
        with suppress(NotFound):  # the definition is not served yet
            made = await client.send(calls.create(resource, body))
    if "status" in body and made.get("status") != body["status"]:
        await client.send(calls.replace(resource, {**made, "status": body["status"]}, subresource="status"))


async def drive(client: Client, watcher: Watcher, nodes: int, seconds: float) -> tuple[list[float], int]:
    """Change nodes for so many seconds; the seconds from each change to the object that shows it, and how many of them
    only a later phase of the node showed."""
    sent: list[tuple[str, str, float]] = []
    order = list(range(3, nodes))
    started = time.perf_counter()
    count = 0
    while (passed := time.perf_counter() - started) < seconds:
        # Waves: a group of nodes goes through all steps together, then the next group.
        wave, rest = divmod(count, len(STEPS) * 25)
        step, place = divmod(rest, 25)
        number = order[(wave * 25 + place) % len(order)]
        name, (action, phase) = node_name(number), STEPS[step]
        at = time.perf_counter()
        await client.send(calls.merge_patch(NODE, name, change(number, action)))
        sent.append((name, phase, at))
        count += 1
        await asyncio.sleep(max(0.0, count / CHANGES_A_SECOND - passed))
    # On a busy machine the object is late, which is a figure and no fault. That it never shows the last phase is one.
    last = {name: (phase, at) for name, phase, at in sent}
    missing = dict(last)
    with suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE_S):
            while missing:
                missing = {
                    name: (phase, at)
                    for name, (phase, at) in missing.items()
                    if watcher.seen.get((name, phase), 0) < at
                }
                await asyncio.sleep(0.1)
    assert not missing, f"{len(missing)} nodes never showed their last phase: {sorted(missing.items())[:5]}"
    shown: list[float] = []
    skipped = 0
    later: dict[str, float] = {}
    for name, phase, at in reversed(sent):
        seen = watcher.seen.get((name, phase), 0.0)
        if seen < at:
            # Two changes of a node between two objects: the newer one shows both.
            seen = later[name]
            skipped += 1
        later[name] = seen
        shown.append(seen - at)
    return shown, skipped


@contextmanager
def controller(kubeconfig: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The controller as a process; ended afterwards."""
    program = str(Path(sys.executable).with_name("cluster-version-operator"))
    argv = [program, "update-status-controller", "--kubeconfig", str(kubeconfig), f"--namespace={NAMESPACE}"]
    with log.open("wb") as output, subprocess.Popen(argv, stdout=output, stderr=output) as child:
        try:
            yield child
        finally:
            child.terminate()


def usage(pid: int) -> tuple[float, float]:
    """Seconds of CPU, and the largest resident set in MiB, of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


async def measure(config: ClusterConfig, kubeconfig: Path, log: Path, nodes: int, seconds: float) -> JSON:
    """The whole run."""
    async with Client(config) as client:
        await fill(client, nodes)
        watcher = Watcher(client)
        following = asyncio.create_task(watcher.run())
        with controller(kubeconfig, log) as child:
            started = time.perf_counter()
            async with asyncio.timeout(DEADLINE_S):
                while not watcher.phases:
                    await watcher.changed.wait()
                    watcher.changed.clear()
            first = time.perf_counter() - started
            await asyncio.sleep(5)
            cpu_before, _ = usage(child.pid)
            writes_before, begin = len(watcher.times), time.perf_counter()
            latencies, skipped = await drive(client, watcher, nodes, seconds)
            minutes = (time.perf_counter() - begin) / 60
            cpu_after, peak = usage(child.pid)
            quiet_from, cpu_quiet = len(watcher.times), cpu_after
            await asyncio.sleep(20)
            cpu_idle, _ = usage(child.pid)
            shown = len(watcher.phases)
            following.cancel()
            commands = {
                " ".join(words): await asyncio.to_thread(_command, kubeconfig, words)
                for words in (["upgrade", "status"], ["upgrade", "status", "--details=all"])
            }
    body = max(watcher.sizes)
    return {
        "nodes": nodes,
        "pools": POOLS,
        "node_changes": len(latencies),
        "node_changes_a_second": CHANGES_A_SECOND,
        "shown_by_a_later_phase_only": skipped,
        "load_of_the_machine": round(os.getloadavg()[0], 1),
        "seconds_from_start_to_first_object": round(first, 2),
        "seconds_from_node_change_to_object": {
            "median": round(statistics.median(latencies), 3),
            "p99": round(statistics.quantiles(latencies, n=100)[98], 3),
            "max": round(max(latencies), 3),
        },
        "object_bytes_in_watch_event": body,
        "nodes_shown": shown,
        "writes_a_minute": round((quiet_from - writes_before) / minutes, 1),
        "writes_in_20_quiet_seconds": len(watcher.times) - quiet_from,
        "controller_cpu_share": round((cpu_after - cpu_before) / (minutes * 60), 3),
        "controller_cpu_share_when_quiet": round((cpu_idle - cpu_quiet) / 20, 3),
        "controller_peak_mib": round(peak, 1),
        "commands": commands,
    }


def _command(kubeconfig: Path, words: list[str]) -> JSON:
    argv = [str(Path(sys.executable).with_name("runup")), *words]
    runs = [process(argv, {**os.environ, "KUBECONFIG": str(kubeconfig)}) for _ in range(STATUS_ROUNDS)]
    return {
        "code": runs[0].code,
        "seconds": round(statistics.median(run.seconds for run in runs), 3),
        "peak_mib": round(max(run.peak_mib for run in runs), 1),
    }


def run(nodes: int = NODES, seconds: float = SECONDS) -> JSON:
    """One API server, one controller."""
    with tempfile.TemporaryDirectory() as folder, api_server_in(Path(folder)) as config:
        log = Path(folder) / "controller.log"
        try:
            return asyncio.run(
                measure(config, Path(folder) / "admin.kubeconfig", log=log, nodes=nodes, seconds=seconds)
            )
        except BaseException:
            if log.exists():
                sys.stderr.write(log.read_text()[-4000:])
            raise
