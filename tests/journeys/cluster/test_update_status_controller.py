"""The update status controller as a pod of a sandbox: there from the start, back after it was killed, always true."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.journeys import ending
from tests.journeys.conftest import RUNUP, START_S, Sandbox
from tests.servers import eventually

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from runup.api.update_v1alpha1 import NAME, UpdateStatus, UpdateStatusStatus

STATE = "machineconfiguration.openshift.io/state"
REASON = "machineconfiguration.openshift.io/reason"


@pytest.fixture
def clean() -> Iterator[Sandbox]:
    """A healthy cluster that the test may hurt, whose pods are processes that can be found."""
    data = Path(tempfile.mkdtemp(prefix="runup-test-usc-"))
    try:
        words = ["sandbox", "start", "--scenario", "clean", "--data", str(data), "--runner", "process"]
        done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=START_S)
        assert done.returncode == 0, done.stderr
        yield Sandbox(data)
    finally:
        ending.end(data)


def processes(sandbox: Sandbox) -> set[int]:
    """The controller's, of this sandbox."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(sandbox.data) in command and "\0update-status-controller\0" in command:
            found.add(int(folder.name))
    return found


def status(sandbox: Sandbox) -> UpdateStatusStatus | None:
    """Returns the object's status, None while it does not exist."""
    try:
        return sandbox.client.send(calls.get(UpdateStatus, NAME)).status
    except KubeError:
        return None


def until(sandbox: Sandbox, holds: Callable[[UpdateStatusStatus], Any], what: str) -> UpdateStatusStatus:
    """The status as soon as it is so."""

    def found() -> UpdateStatusStatus | None:
        now = status(sandbox)
        return now if now is not None and holds(now) else None

    result: UpdateStatusStatus = eventually(found, what)
    return result


def troubles(found: UpdateStatusStatus) -> list[str]:
    """What needs attention."""
    return [
        insight.health.impact.summary
        for pool in found.worker_pools
        for informer in pool.informers
        for insight in informer.insights
        if insight.health
    ]


def degrade(sandbox: Sandbox, name: str, state: str, reason: str | None) -> None:
    """What the machine-config daemon says about its node."""
    patch = {"metadata": {"annotations": {STATE: state, REASON: reason}}}
    sandbox.client.send(calls.merge_patch(resource_of(Node), name, patch))


def test_a_healthy_cluster_is_told_and_a_killed_controller_comes_back(clean: Sandbox) -> None:
    """Killed without a word, it continues where it was; what happened meanwhile is reported."""
    before = until(clean, lambda found: find(found.conditions, "Available"), "the first status")
    available = find(before.conditions, "Available")
    assert available
    assert available.status == "True"
    shown = clean.run("upgrade", "status")
    assert (shown.out, shown.err) == ("The cluster is not updating.\n", "")
    conditions = json.loads(clean.run("upgrade", "status", "-o", "json").out)["status"]["conditions"]
    assert [each["status"] for each in conditions if each["type"] == "Current"] == ["True"]

    degrade(clean, "worker-1", "Degraded", "the disk is full")
    first = until(clean, troubles, "the degraded node")
    assert troubles(first) == ["Node worker-1 is degraded"]

    for pid in eventually(lambda: processes(clean), "the controller's process"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert clean.expire_lease("update-status-controller", "openshift-update-status-controller")
    degrade(clean, "worker-2", "Degraded", "the disk is full")
    second = until(clean, lambda found: len(troubles(found)) == 2, "the second degraded node")
    assert {_since(second, "worker-1")} == {_since(first, "worker-1")}

    for name in ("worker-1", "worker-2"):
        degrade(clean, name, "Done", None)
    until(clean, lambda found: not troubles(found), "the end of the trouble")


def _since(found: UpdateStatusStatus, node: str) -> Any:
    return next(
        (insight.health.started_at, insight.health.first_observed_at)
        for pool in found.worker_pools
        for informer in pool.informers
        for insight in informer.insights
        if insight.health and node in insight.health.impact.summary
    )
