"""kill -9 of everything that a preflight runs on, and what the target asked the server for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.releases_world import events
from tests.journeys.conftest import RUNUP, START_S, STOP_S, Sandbox
from tests.servers import eventually

from kubekit.api.conditions import find
from kubekit.kube.api_errors import Transient
from runup.api.config_v1 import ClusterVersion

NAMESPACE = "openshift-cluster-version-operator"
OPERATOR = ("cluster-version-operator", "\0start\0")
TARGET = ("cluster-version-operator", "\0preflight\0")
EXPECTED = {
    "ClusterVersionGiantHop",
    "DualStackIncompatible",
    "PodDisruptionBudgetBlocksDrain",
    "RemovedAPIInUse",
    "ClusterOperatorUpgradeable-storage",
    "ClusterVersionUpgradeable",
    "MachineConfigPoolCannotMove-worker",
    "MachineConfigPoolPaused-infra",
    "NodeCordoned",
    "UpdatePathNotOffered",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox that these tests may hurt."""
    data = Path(tempfile.mkdtemp(prefix="runup-test-killed-"))
    try:
        words = ["sandbox", "start", "--data", str(data), "--runner", "process"]
        done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=START_S)
        assert done.returncode == 0, done.stderr
        yield Sandbox(data)
    finally:
        subprocess.run(
            [*RUNUP, "sandbox", "stop", "--data", str(data)], capture_output=True, check=False, timeout=STOP_S
        )
        shutil.rmtree(data, ignore_errors=True)


def processes(sandbox: Sandbox, *words: str) -> list[int]:
    """Ids of the processes of this sandbox whose command line has all the words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(sandbox.data) in command and all(word in command for word in words):
            found.append(int(folder.name))
    return found


def kill(sandbox: Sandbox, *words: str) -> None:
    """SIGKILL, and wait until another process has taken the place; a killed operator's lease has run out then."""
    # One that was found may have ended since, and then nobody was killed.
    killed = eventually(lambda: {pid for pid in processes(sandbox, *words) if killed_now(pid)}, f"a process {words}")
    eventually(lambda: set(processes(sandbox, *words)) - killed, f"a new process {words}")
    eventually(lambda: sandbox.expire_lease("version", NAMESPACE), "the server answers")


def killed_now(pid: int) -> bool:
    """Whether there was such a process to be killed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def names(cluster_version: ClusterVersion, target: str) -> set[str]:
    """The risks of a target."""
    entries = cluster_version.status.conditional_updates
    return next((set(entry.risk_names) for entry in entries if entry.release.version == target), set())


def is_complete(cluster_version: ClusterVersion) -> bool:
    """Whether the last preflight of 5.2.0 came to its end with the risks that are there."""
    completed = find(cluster_version.status.conditions, "PreflightCompleted")
    return bool(completed and completed.status == "True") and names(cluster_version, "5.2.0") == EXPECTED


def preflight(sandbox: Sandbox) -> None:
    """Ask for a preflight of 5.2.0, with nothing left of one before."""
    sandbox.clear_preflight()
    target_ended(sandbox)
    assert sandbox.run("upgrade", "--preflight", "--to=5.2.0").code == 0


def target_ended(sandbox: Sandbox) -> None:
    """Wait until no target runs."""
    eventually(lambda: not processes(sandbox, *TARGET), "the target's end")


def finish(sandbox: Sandbox) -> None:
    """Wait for the end; whoever lost the API server asks for it again after pauses that double up to 30 s."""

    def complete() -> bool:
        try:
            return is_complete(sandbox.cluster_version())
        except Transient:
            return False

    eventually(complete, "the preflight's end")


@pytest.mark.xdist_group("killed")
@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(OPERATOR, id="the managing operator"),
        pytest.param(TARGET, id="the target"),
        pytest.param(("kubesandbox.apiserver",), id="the API server"),
        pytest.param(("runup.sandbox.processes.cluster_process",), id="the node agent with everything on it"),
    ],
)
def test_the_final_status_is_what_it_would_have_been(sandbox: Sandbox, victim: tuple[str, ...]) -> None:
    """Killed in the middle of a preflight, whatever it is, the same risks stand there in the end."""
    preflight(sandbox)
    kill(sandbox, *victim)
    finish(sandbox)
    sandbox.clear_preflight()
    target_ended(sandbox)


@pytest.mark.xdist_group("killed")
def test_the_operator_killed_at_every_step(sandbox: Sandbox) -> None:
    """Once for each step: asked for, workload made, report there, cleared."""
    steps = (
        lambda: preflight(sandbox),
        lambda: eventually(lambda: processes(sandbox, *TARGET), "the target"),
        lambda: sandbox.until(lambda cv: names(cv, "5.2.0"), "the first risks"),
    )
    for step in steps:
        step()
        kill(sandbox, *OPERATOR)
    finish(sandbox)
    assert sandbox.run("upgrade", "--clear-preflight").code == 0
    kill(sandbox, *OPERATOR)
    target_ended(sandbox)


@pytest.mark.xdist_group("killed")
def test_the_target_only_reads(sandbox: Sandbox) -> None:
    """The server's audit log has no write by the target: its requests are told from the operator's by their agent."""
    log = sandbox.data / "audit.log"
    since = log.stat().st_size
    preflight(sandbox)
    finish(sandbox)
    sandbox.clear_preflight()
    target_ended(sandbox)
    asked = [event for event in events(log, since) if "preflight" in event.get("userAgent", "")]
    assert {"list", "watch"} <= {event["verb"] for event in asked}
    written = [event["requestURI"] for event in asked if event["verb"] not in {"get", "list", "watch"}]
    assert written == []
