"""Sandboxes of their own, one a scenario and a session, and commands run on them as processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.cluster import Cluster
from tests.controlplane.rows import SERVERS, programs
from tests.journeys import ending
from tests.servers import eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound, Transient
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion

RUNUP = (sys.executable, "-m", "runup")
# Guards against waiting for ever: longer than a start takes beside fifty busy processes, or a first condition after it.
START_S = 240
STOP_S = 120
COMMAND_S = 600
# Whoever ends the tests ends their sandboxes: a SIGTERM alone would leave them behind.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _all_ended() -> Iterator[None]:
    """No run is over before its sandboxes are."""
    yield
    ending.wait()


@dataclass(frozen=True)
class Done:
    """What a process did."""

    code: int
    out: str
    err: str

    @property
    def verdict(self) -> str:
        """The last line of stdout."""
        return self.out.splitlines()[-1] if self.out else ""


@dataclass
class Sandbox:
    """A running sandbox in `data`."""

    data: Path
    clients: list[SyncClient] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.data / "admin.kubeconfig"

    @property
    def client(self) -> SyncClient:
        """An administrator's client."""
        if not self.clients:
            self.clients.append(SyncClient(config.load(str(self.kubeconfig))))
        return self.clients[0]

    def environment(self) -> dict[str, str]:
        """Of a user whose kubeconfig is the sandbox's."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *words: str) -> Done:
        """`runup` as typed."""
        done = subprocess.run(
            [*RUNUP, *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def cluster_version(self) -> ClusterVersion:
        """As it is now."""
        return self.client.send(calls.get(ClusterVersion, "version"))

    def desired_update(self) -> dict[str, Any] | None:
        """`spec.desiredUpdate`, or None."""
        found = self.client.send(calls.get_raw(resource_of(ClusterVersion), "version"))
        wanted: dict[str, Any] | None = found["spec"].get("desiredUpdate")
        return wanted

    def patch(self, **desired: Any) -> None:
        """What another administrator's client would send."""
        body = {"spec": {"desiredUpdate": desired or None}}
        self.client.send(calls.merge_patch(resource_of(ClusterVersion), "version", body))

    def clear_preflight(self) -> None:
        """End the preflight, and wait until the operator has: asked for again before that, it would just continue."""
        done = self.run("upgrade", "--clear-preflight")
        assert done.code == 0, done.err
        self.until(lambda version: find(version.status.conditions, "PreflightRunning") is None, "the preflight's end")

    def expire_lease(self, name: str, namespace: str) -> bool:
        """Let a killed holder's lease run out a second after the next one sees it; whether the server took that up.

        A living holder writes its own term over it.
        """
        patch = {"spec": {"leaseDurationSeconds": 1}}
        try:
            self.client.send(calls.merge_patch(resource_of(Lease), name, patch, namespace))
        except Transient:
            return False
        except NotFound:
            return True  # nobody has held it yet
        return True

    def until(self, holds: Callable[[ClusterVersion], Any], what: str) -> Any:
        """Wait until the ClusterVersion is so."""
        return eventually(lambda: holds(self.cluster_version()), what)


def started_sandbox(scenario: str, server: str = "sandbox") -> Iterator[Sandbox]:
    """Yields a sandbox of a scenario, in a separate folder that goes away with it."""
    # A short path: sockets below it have a length limit.
    data = Path(tempfile.mkdtemp(prefix=f"runup-test-{Path(scenario).name}-"))
    yield from sandbox_in(data, scenario) if server == "sandbox" else _around_a_real_server(data, scenario)


def sandbox_in(data: Path, scenario: str) -> Iterator[Sandbox]:
    """Yields a sandbox of a scenario in the folder `data`, and stops it."""
    words = ["sandbox", "start", "--scenario", scenario, "--data", str(data)]
    try:
        done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=START_S)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        yield Sandbox(data)
    finally:
        ending.end(data)


def _around_a_real_server(data: Path, scenario: str) -> Iterator[Sandbox]:
    try:
        with Cluster(data, programs(), scenario):
            yield Sandbox(data)
    finally:
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture(scope="session", params=SERVERS)
def skip_level(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0 with things in the way of 5.2.0."""
    yield from started_sandbox("skip-level", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def misbehaving(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0 with one release for each way in which a target goes wrong."""
    yield from started_sandbox("misbehaving", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def clean(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0 with nothing to find."""
    yield from started_sandbox("clean", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def pruned(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """4.22.0 whose ClusterVersion has no field `mode`."""
    yield from started_sandbox("default-4-22", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def updates(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A cluster that its operator installs, and releases to update it to."""
    yield from started_sandbox("updates", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def troubled(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0, and patches of it whose components are in trouble."""
    yield from started_sandbox("troubled-components", request.param)


@pytest.fixture(scope="session", params=SERVERS)
def kernel_modules(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0 with kernel modules, of which not all would load on 5.1.0's kernel."""
    yield from started_sandbox("kernel-modules", request.param)
