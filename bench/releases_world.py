"""An API server, a stand-in, and the operator as a bare process beside them: what the bench `applying` runs.

Requests are counted by the server, in its audit log, by who sent them; time and memory are the kernel's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import release_payload
from bench.speed.api import api_server_in
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import AlreadyExists, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.lang import yaml as kyaml
from runup.api.config_v1 import ClusterVersion
from runup.process.names import OPERATOR_NAMESPACE
from runup.sandbox import crds

ROOT = Path(__file__).parents[1]
SERVERS = ("kube-apiserver", "sandbox")
AGENT = "ClusterVersionOperator/"
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
FEATURE_GATES = Resource(
    group="config.openshift.io", version="v1", kind="FeatureGate", plural="featuregates", namespaced=False
)
VERSIONS = resource_of(ClusterVersion)
_TICKS = os.sysconf("SC_CLK_TCK")
# What an installer has put there before the operator starts.
_BOOTSTRAPPED = ("clusterversions", "clusteroperators", "featuregates", "infrastructures", "proxies")
DEADLINE_S = 400.0
PATCHES = 100
"""Of 5.0.0 there may be so many."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far: seconds of processor, MiB that it holds, and the most that it held.

    `own_mib` is without files, such as libraries, which other processes share: what counts against a container's limit.
    """

    cpu_seconds: float
    mib: float
    own_mib: float
    peak_mib: float


@dataclass
class Operator:
    """The operator's process, started with a release of the bench."""

    start: Callable[[], subprocess.Popen[bytes]]
    image: str
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.again()

    def again(self) -> None:
        """Start it, or start it anew: one that lost its lease ends, and whoever runs it starts it again."""
        self.process = self.start()

    @property
    def seconds(self) -> float:
        """Since its first start."""
        return time.perf_counter() - self.started

    def usage(self) -> Usage:
        """By the kernel's account; raises RuntimeError where the process has ended."""
        try:
            return usage(self.process.pid)
        except (ProcessLookupError, FileNotFoundError) as error:
            raise RuntimeError(f"{error}: {self.log.read_text()[-2000:]}") from error


def usage(pid: int) -> Usage:
    """Of the process `pid` alone, not of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    held = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    if "VmRSS" not in held:
        raise ProcessLookupError(f"process {pid} has ended")
    mib = {name: int(held[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "VmHWM")}
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, mib["VmRSS"], mib["RssAnon"], mib["VmHWM"])


@dataclass
class World:
    """A server with nothing but what an installer leaves, and both payloads as folders."""

    folder: Path
    data: Path
    client: SyncClient
    write: Callable[[Path, str], object] = release_payload.write

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.data / "admin.kubeconfig"

    def payload(self, version: str) -> Path:
        """The folder of that release, written when it is first asked for."""
        found = self.folder / version
        if not found.is_dir():
            self.write(found, version)
        return found

    def bootstrap(self) -> None:
        """The definitions, the namespace and the objects that are there before an operator is."""
        for file in crds.definition_files(generally_available=True):
            if any(name in file.name for name in _BOOTSTRAPPED):
                self._create(CRDS, kyaml.load(file.read_bytes()))
        # The last two are those of the ConfigMaps of administrators' gates, which every release has.
        for name in (OPERATOR_NAMESPACE, "openshift-config", "openshift-config-managed"):
            self._create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._create(
            VERSIONS, _named("ClusterVersion", "version", {"clusterID": "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad"})
        )
        gates = self._create(FEATURE_GATES, _named("FeatureGate", "cluster", {}))
        # As the config operator of each release would have said by then.
        versions = (f"5.0.{patch}" for patch in range(PATCHES))
        status = {"featureGates": [{"version": version, "enabled": [], "disabled": []} for version in versions]}
        if gates:
            self.client.send(calls.replace(FEATURE_GATES, gates | {"status": status}, subresource="status"))

    def _create(self, resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + 90
        while True:
            try:
                return self.client.send(calls.create(resource, obj))
            except AlreadyExists:
                return {}
            except NotFound:
                # A definition is served a moment after it is accepted.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextmanager
    def stand_in(self) -> Iterator[None]:
        """Somebody who answers workloads and operators at once."""
        argv = [sys.executable, "-m", "bench.standin", "--kubeconfig", str(self.kubeconfig)]
        with (self.folder / "standin.log").open("ab") as log, subprocess.Popen(argv, cwd=ROOT, stderr=log) as process:
            try:
                yield
            finally:
                process.terminate()

    @contextmanager
    def operator(self, version: str, *arguments: str, kubeconfig: Path | None = None) -> Iterator[Operator]:
        """The operator of that release as a bare process; told to end afterwards, if it has not by then."""
        payload = self.payload(version)
        image = f"registry.example/release@sha256:{release_payload.digest(version)}"
        program = str(Path(sys.executable).with_name("cluster-version-operator"))
        argv = [program, "start", "--kubeconfig", str(kubeconfig or self.kubeconfig), "--release-image", image]
        argv += ["--node-name", "bench", "--listen", "127.0.0.1:0", "--report-dir", str(self.folder / "reports")]
        environment = {**os.environ, "PAYLOAD_OVERRIDE": str(payload)}
        log = self.folder / f"operator-{version}.log"

        def start() -> subprocess.Popen[bytes]:
            with log.open("ab") as out:
                return subprocess.Popen([*argv, *arguments], env=environment, stdout=out, stderr=out)

        operator = Operator(start, image, log)
        try:
            yield operator
        finally:
            operator.process.send_signal(signal.SIGTERM)
            try:
                operator.process.wait(30)
            except subprocess.TimeoutExpired:
                operator.process.kill()
                operator.process.wait()

    def completed(self, operator: Operator) -> bool:
        """Whether the operator's release is what the cluster has, as its history says."""
        entry = next(iter(self.history()), None)
        return entry is not None and entry["image"] == operator.image and entry["state"] == "Completed"

    def until_completed(self, operator: Operator) -> float:
        """Seconds from the operator's start until its release is Completed; raises RuntimeError, with its log."""
        while operator.seconds < DEADLINE_S:
            operator.usage()
            if self.completed(operator):
                return operator.seconds
            time.sleep(0.05)
        conditions = json.dumps(self.cluster_version().get("status", {}).get("conditions"), indent=1)
        raise RuntimeError(f"not completed in {DEADLINE_S:g} s: {conditions}\n{operator.log.read_text()[-2000:]}")

    def history(self) -> list[dict[str, Any]]:
        """`status.history`, the newest first."""
        found: list[dict[str, Any]] = self.cluster_version().get("status", {}).get("history") or []
        return found

    def cluster_version(self) -> dict[str, Any]:
        """As the server has it; empty while it does not answer."""
        try:
            return self.client.send(calls.get_raw(VERSIONS, "version"))
        except KubeError:
            return {}

    def requests(self, since: int = 0, agent: str = AGENT) -> Requests:
        """What `agent` has sent, from byte `since` of the audit log on."""
        return Requests.read(self.data / "audit.log", since, agent)

    def moment(self) -> int:
        """Now, as a place in the audit log."""
        return (self.data / "audit.log").stat().st_size


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests by verb and resource; a watch is one, however long it lasts."""

    by_kind: Counter[tuple[str, str]]

    @classmethod
    def read(cls, audit: Path, since: int, agent: str) -> Requests:
        """Every request once, whatever the number of its stages."""
        seen: dict[str, tuple[str, str]] = {}
        for event in events(audit, since):
            if event.get("userAgent", "").startswith(agent):
                place = event.get("objectRef", {})
                parts = (place.get("resource") or event["requestURI"].partition("?")[0], place.get("subresource"))
                seen[event["auditID"]] = (event["verb"], "/".join(filter(None, parts)))
        return cls(Counter(seen.values()))

    @property
    def all(self) -> int:
        """How many."""
        return self.by_kind.total()

    @property
    def without_lease(self) -> int:
        """How many, but for the Lease's."""
        return sum(number for (_, resource), number in self.by_kind.items() if resource != "leases")

    def most(self, count: int = 12) -> dict[str, int]:
        """The most frequent of them, in words."""
        return {f"{verb} {resource}": number for (verb, resource), number in self.by_kind.most_common(count)}


def events(audit: Path, since: int) -> Iterator[dict[str, Any]]:
    """What the log has from byte `since` on: whole lines only, for it is being written meanwhile."""
    with audit.open("rb") as file:
        file.seek(max(since - 1, 0))
        if since:
            file.readline()  # the end of what was there, which may have been half a line then
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


@contextmanager
def world(server: str, folder: Path, write: Callable[[Path, str], object] = release_payload.write) -> Iterator[World]:
    """A fresh server of that kind; raises `tests.controlplane.build.Unavailable` where there is no real one."""
    start: Callable[[Path], Any] = _real if server == "kube-apiserver" else api_server_in
    data = folder / "server"
    data.mkdir(parents=True)
    with start(data), SyncClient(config.load(str(data / "admin.kubeconfig")), user_agent="bench/1") as client:
        made = World(folder, data, client, write)
        made.bootstrap()
        yield made


@contextmanager
def _real(data: Path) -> Iterator[None]:
    from tests.controlplane.plane import ControlPlane

    with ControlPlane(data):
        yield


def _named(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
