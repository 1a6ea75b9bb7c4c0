"""The main job in a sandbox: request to first risks in status, a changed object to its risk gone, a fix to its update.

Aims: under 3 s on a warm image, under 1 s after the debounce, under 2 s. The first two are measured in one sandbox,
where the target's image is on the node after the first round, which is thrown away; the last in one a round, since an
update that was let go cannot be asked for again. The object is changed as soon as its risk shows, and once more two
seconds after it shows again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import compile_bytecode, spread
from bench.speed import preflight_stages
from kubekit.api.conditions import find
from kubekit.api.core_v1 import Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.preflight.decide.preflight_deployment import NAME
from runup.process.names import OPERATOR_NAMESPACE

ROUNDS = 5
POOL = "infra"
RISK = f"MachineConfigPoolPaused-{POOL}"
TARGET = "5.2.0"
DEADLINE_S = 30.0
CALM_S = 2.0


def run() -> dict[str, Any]:
    """Start, measure, stop."""
    compile_bytecode(Path(__file__).parents[2])
    with _sandbox() as (client, ready, data):
        found = {"sandbox_ready_seconds": round(ready, 3), **_measure(client, data)}
    freed = []
    for _ in range(ROUNDS):
        with _sandbox("clean") as (client, _ready, _data):
            freed.append(_freed(client))
    return {**found, "fix_to_freed_update_seconds": spread(freed)}


@contextmanager
def _sandbox(scenario: str = "skip-level") -> Iterator[tuple[SyncClient, float, Path]]:
    """A client of a sandbox whose operator works, how many seconds its start took, and its folder."""
    runup = str(Path(sys.executable).with_name("runup"))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "sandbox"
        started = time.perf_counter()
        subprocess.run(
            [runup, "sandbox", "start", "--scenario", scenario, "--data", str(data)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        ready = time.perf_counter() - started
        try:
            client = SyncClient(config.load(str(data / "admin.kubeconfig")))
            _until(lambda: _version(client).status.available_updates, "the operator's first word")
            yield client, ready, data
        finally:
            subprocess.run([runup, "sandbox", "stop", "--data", str(data)], check=True, stdout=subprocess.DEVNULL)


def _freed(client: SyncClient) -> float:
    """From the fix of the only risk to the operator's working towards the update that waited for it."""
    target = _version(client).status.available_updates[0].version
    _pause(client, "worker", paused=True)
    _ask(client, target)
    _until(lambda: _risks(client, target), "the preflight's result")
    _desire(client, {"mode": None, "version": target})
    _until(lambda: _waits(client), "an update that waits for its risk")
    return _timed(
        lambda: _pause(client, "worker", paused=False),
        lambda: _version(client).status.desired.version == target,
    )


def _waits(client: SyncClient) -> bool:
    found = find(_version(client).status.conditions, "ReleaseAccepted")
    return found is not None and (found.status, found.reason) == ("False", "UnacceptedRisks")


def _measure(client: SyncClient, data: Path) -> dict[str, Any]:
    first, gone, later = [], [], []
    for _ in range(ROUNDS + 1):
        _pause(client, POOL, paused=True)
        first.append(_round(data, lambda: _ask(client, TARGET), lambda: _complete(client)))
        gone.append(_round(data, lambda: _pause(client, POOL, paused=False), lambda: RISK not in _risks(client)))
        later.append(_gone_later(client))
        _desire(client, None)
        _until(lambda: not _running(client) and not _pods(client), "the preflight's end")
    first_stages, gone_stages = preflight_stages.stages(data, first, gone)
    return {
        "request_to_first_risks_seconds": spread([each.seen - each.asked for each in first[1:]]),
        "request_to_first_risks_stages": first_stages,
        "object_changed_to_risk_gone_seconds": spread([each.seen - each.asked for each in gone[1:]]),
        "object_changed_to_risk_gone_stages": gone_stages,
        "the_same_two_seconds_later": spread(later[1:]),
    }


def _gone_later(client: SyncClient) -> float:
    """From a fix to its risk gone where nothing has changed for a while, as when somebody has read the risks first."""
    _pause(client, POOL, paused=True)
    _until(lambda: RISK in _risks(client), "the risk again")
    time.sleep(CALM_S)
    return _timed(lambda: _pause(client, POOL, paused=False), lambda: RISK not in _risks(client))


def _round(data: Path, action: Callable[[], object], holds: Callable[[], object]) -> preflight_stages.Round:
    asked = time.time()
    action()
    _until(holds, "what is measured")
    seen = time.time()
    return preflight_stages.Round(asked, seen, RISK, *preflight_stages.target_started(data))


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


def _ask(client: SyncClient, target: str) -> None:
    _desire(client, {"mode": "Preflight", "version": target})


def _desire(client: SyncClient, desired: dict[str, Any] | None) -> None:
    patch = {"spec": {"desiredUpdate": desired}}
    client.send(calls.merge_patch(resource_of(ClusterVersion), "version", patch))


def _pause(client: SyncClient, pool: str, *, paused: bool) -> None:
    patch = {"spec": {"paused": paused}}
    client.send(calls.merge_patch(resource_of(MachineConfigPool), pool, patch))


def _risks(client: SyncClient, target: str = TARGET) -> set[str]:
    updates = _version(client).status.conditional_updates
    return next((set(update.risk_names) for update in updates if update.release.version == target), set())


def _running(client: SyncClient) -> bool:
    found = find(_version(client).status.conditions, "PreflightRunning")
    return found is not None and found.status == "True"


def _pods(client: SyncClient) -> Sequence[Pod]:
    """Returns the preflight's, those included that are being ended: the next one would wait for them."""
    return client.list_all(Pod, OPERATOR_NAMESPACE, label_selector=f"app={NAME}")[0]


def _complete(client: SyncClient) -> bool:
    return _running(client) and RISK in _risks(client)
