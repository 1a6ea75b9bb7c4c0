"""The memory of the operator and the update status controller over time, in a sandbox in which something changes.

Each second a node gets another annotation and ClusterVersion another one, so that both look at the cluster again and
again; each minute what they hold is read from the kernel. `--held` are the minutes: an hour shows what 15 do not.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.releases_world import usage
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion

MINUTES = 15
EVERY_S = 60.0
_STARTED_S = 60.0
RUNUP = [sys.executable, "-m", "runup"]
# What a process' command line has in it.
PROGRAMS = {"operator": "start", "update_status_controller": "update-status-controller"}


def run(*, held: int = MINUTES) -> dict[str, Any]:
    """MiB of each process at the beginning, each minute, and at the end; what a second half added to the first."""
    with tempfile.TemporaryDirectory(prefix="runup-memory-") as folder:
        data = Path(folder) / "sandbox"
        subprocess.run([*RUNUP, "sandbox", "start", "--data", str(data)], check=True, stdout=subprocess.DEVNULL)
        try:
            return _followed(data, held * 60.0)
        finally:
            subprocess.run([*RUNUP, "sandbox", "stop", "--data", str(data)], check=True, stdout=subprocess.DEVNULL)


def _followed(data: Path, seconds: float) -> dict[str, Any]:
    with SyncClient(config.load(str(data / "admin.kubeconfig"))) as client:
        _wait_until_both_lead(client)
        pids = _processes(int((data / "supervisor.pid").read_text()))
        looks: dict[str, list[float]] = {name: [] for name in pids}
        changes, cpu = 0, {name: usage(pid).cpu_seconds for name, pid in pids.items()}
        begun = next_look = time.monotonic()
        # Once at least: `--held 0` is one look.
        while (now := time.monotonic()) - begun <= seconds or not changes:
            if now >= next_look:
                for name, pid in pids.items():
                    looks[name].append(round(usage(pid).mib, 1))
                next_look += EVERY_S
            _change(client, changes)
            changes += 1
            time.sleep(1.0)
    return {"minutes": round(seconds / 60, 1), "changes": 2 * changes} | {
        name: {
            "resident_mib": {"first": found[0], "half": found[len(found) // 2], "last": found[-1], "most": max(found)},
            "processor_seconds": round(usage(pids[name]).cpu_seconds - cpu[name], 1),
        }
        for name, found in looks.items()
    }


def _wait_until_both_lead(client: SyncClient) -> None:
    """Waits until each program holds its lease: before that it is still being loaded. Raises RuntimeError."""
    deadline = time.monotonic() + _STARTED_S
    while sum(bool(lease.spec.holder_identity) for lease in client.list_all(Lease)[0]) < len(PROGRAMS):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the programs did not hold their leases within {_STARTED_S:g} s")
        time.sleep(0.1)


def _change(client: SyncClient, number: int) -> None:
    patch = {"metadata": {"annotations": {"bench.runup.dev/changed": str(number)}}}
    (node, *_) = client.list_all(Node)[0]
    client.send(calls.merge_patch(resource_of(Node), node.metadata.name, patch))
    client.send(calls.merge_patch(resource_of(ClusterVersion), "version", patch))


def _processes(supervisor: int) -> dict[str, int]:
    """The processes of the programs, below the sandbox's. Raises RuntimeError if one does not run."""
    found = {}
    for pid, words in _below(supervisor):
        for name, word in PROGRAMS.items():
            # The container's own process: what starts it has the pod's folder in its words.
            if word in words and any(each.endswith("cluster-version-operator") for each in words[:3]):
                found[name] = pid
    if missing := PROGRAMS.keys() - found.keys():
        raise RuntimeError(f"not found in the sandbox: {', '.join(sorted(missing))}")
    return found


def _below(root: int) -> Iterator[tuple[int, list[str]]]:
    """All processes that descend from `root`, with their words."""
    parents: dict[int, int] = {}
    words: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
    for pid in words:
        above = itertools.takewhile(lambda each: each > 1, _ancestors(pid, parents))
        if root in above:
            yield pid, words[pid]


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid
