"""The main job in a sandbox: request to first risks in status, and one object changed to its risk gone.

Aims: under 3 s on a warm image, under 1 s after the debounce. The sandbox is started once, the target's image is on the
node after the first round, which is thrown away.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measure import spread
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.scheme import resource_of
from runup.domain.conditions import find
from runup.kube import calls, config
from runup.kube.client_sync import SyncClient

ROUNDS = 5
RISK = "MachineConfigPoolPaused-infra"
TARGET = "5.2.0"
DEADLINE_S = 30.0


def run() -> dict[str, Any]:
    """Start, measure, stop."""
    runup = str(Path(sys.executable).with_name("runup"))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "sandbox"
        started = time.perf_counter()
        subprocess.run([runup, "sandbox", "start", "--data", str(data)], check=True, stdout=subprocess.DEVNULL)
        ready = time.perf_counter() - started
        try:
            client = SyncClient(config.load(str(data / "admin.kubeconfig")))
            _until(lambda: _version(client).status.available_updates, "the operator's first word")
            return {"sandbox_ready_seconds": round(ready, 3), **_measure(client)}
        finally:
            subprocess.run([runup, "sandbox", "stop", "--data", str(data)], check=True, stdout=subprocess.DEVNULL)


def _measure(client: SyncClient) -> dict[str, Any]:
    first, gone = [], []
    for _ in range(ROUNDS + 1):
        _pause(client, paused=True)
        first.append(_timed(lambda: _ask(client), lambda: _complete(client)))
        gone.append(_timed(lambda: _pause(client, paused=False), lambda: RISK not in _risks(client)))
        _desire(client, None)
        _until(lambda: not _running(client), "the preflight's end")
    return {
        "request_to_first_risks_seconds": spread(first[1:]),
        "object_changed_to_risk_gone_seconds": spread(gone[1:]),
    }


def _timed(action: Callable[[], object], holds: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    _until(holds, "what is measured")
    return time.perf_counter() - started


def _until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come within {DEADLINE_S:g} s")
        time.sleep(0.005)


def _version(client: SyncClient) -> ClusterVersion:
    return client.send(calls.get(ClusterVersion, "version"))


def _ask(client: SyncClient) -> None:
    _desire(client, {"mode": "Preflight", "version": TARGET})


def _desire(client: SyncClient, desired: dict[str, Any] | None) -> None:
    patch = {"spec": {"desiredUpdate": desired}}
    client.send(calls.merge_patch(resource_of(ClusterVersion), "version", patch))


def _pause(client: SyncClient, *, paused: bool) -> None:
    patch = {"spec": {"paused": paused}}
    client.send(calls.merge_patch(resource_of(MachineConfigPool), "infra", patch))


def _risks(client: SyncClient) -> set[str]:
    updates = _version(client).status.conditional_updates
    return next((set(update.risk_names) for update in updates if update.release.version == TARGET), set())


def _running(client: SyncClient) -> bool:
    found = find(_version(client).status.conditions, "PreflightRunning")
    return found is not None and found.status == "True"


def _complete(client: SyncClient) -> bool:
    return _running(client) and RISK in _risks(client)
