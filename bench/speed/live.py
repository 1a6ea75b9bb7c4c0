"""The target's process on a live cluster of 10,000 nodes and 300,000 pods: time, peak memory, requests, and a change.

The cluster is the sandbox's skip-level one; its controllers are stopped, the nodes and pods of `checks` are put
into the API server's store, and the server is started again by itself. Then the process that an operator would start
reads it over HTTPS, once, and after that as it goes on: a node is uncordoned, and its name has to leave the report; a
pod of two that one node has of a workload is deleted, and that risk has to go.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import process, spread
from bench.speed import checks
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubesandbox.apiserver.store import key_of

NODES, CHANGES = 10_000, 5
CALM_S = 1.5
DEADLINE_S = 900.0
_KINDS = {
    "nodes": ("v1", "Node", "nodes"),
    "budgets": ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets.policy"),
    "pods": ("v1", "Pod", "pods"),
}
_FLAGS = ("preflight", "--from", "5.0.0", "--to", "5.2.0", "--check-timeout", "60")


def run(nodes: int = NODES) -> dict[str, Any]:
    """Fill, start, measure, stop."""
    runup = Path(sys.executable).with_name("runup")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "sandbox"
        for action in ("start", "stop"):
            subprocess.run([runup, "sandbox", action, "--data", data], check=True, stdout=subprocess.DEVNULL)
        numbers = _fill(next(data.rglob("store.db")), nodes)
        with _served(next(data.rglob("store.db")).parent) as (kubeconfig, log):
            once = _once(Path(folder), kubeconfig, log)
            return {"objects": numbers, "once": once, **_changes(Path(folder), kubeconfig)}


def _fill(store: Path, nodes: int) -> dict[str, int]:
    numbers = checks.numbers(nodes, checks.PODS_A_CROWDED_NODE)
    database = sqlite3.connect(store)
    (last,) = database.execute("SELECT max(rv) FROM revisions").fetchone()
    with database:
        database.executemany("INSERT INTO revisions VALUES (?, ?, ?, 0, ?)", _rows(numbers, last))
    database.close()
    return numbers


def _rows(numbers: dict[str, int], last: int) -> Iterator[tuple[int, str, str, bytes]]:
    make: dict[str, Callable[[int], dict[str, Any]]] = {
        "nodes": checks.node,
        "budgets": checks.budget,
        "pods": lambda index: checks.pod(index, numbers["pods"] // numbers["nodes"]),
    }
    for name, (version, kind, resource) in _KINDS.items():
        for index in range(numbers[name]):
            last += 1
            obj = {"apiVersion": version, "kind": kind, **make[name](index)}
            metadata = obj["metadata"]
            metadata |= {"resourceVersion": str(last), "creationTimestamp": "2026-01-14T09:00:00Z"}
            yield last, resource, key_of(metadata.get("namespace", ""), metadata["name"]), json.dumps(obj).encode()


@contextmanager
def _served(data: Path) -> Iterator[tuple[Path, Path]]:
    """The server on that folder: its kubeconfig, and its audit log."""
    log, kubeconfig = data / "audit.log", data / "admin.kubeconfig"
    log.unlink(missing_ok=True)
    kubeconfig.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "kubesandbox.apiserver", "--data", str(data), "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _until(lambda: kubeconfig.is_file() and _answers(kubeconfig), "the API server answers")
            yield kubeconfig, log
        finally:
            server.terminate()


def _answers(kubeconfig: Path) -> bool:
    try:
        with SyncClient(config.load(str(kubeconfig))) as client:
            client.send(calls.get_path("/readyz"))
    except (KubeError, OSError):
        return False
    return True


def _once(folder: Path, kubeconfig: Path, log: Path) -> dict[str, Any]:
    report, before = folder / "once.json", os.times()
    argv = [_program(), *_FLAGS, "--once", "--kubeconfig", str(kubeconfig), "--report", str(report)]
    measured = process(argv)
    after = os.times()
    found = json.loads(report.read_text())
    requests = Counter(
        event["verb"] for event in map(json.loads, log.read_text().splitlines()) if "preflight" in event["userAgent"]
    )
    return {
        "seconds": round(measured.seconds, 2),
        # Of the target alone: what the server takes of the same cores is not in it.
        "cpu_seconds": round(sum(after[2:4]) - sum(before[2:4]), 1),
        "peak_mib": round(measured.peak_mib),
        "requests": dict(requests),
        "checks": len(found["checks"]),
        "risks": len(found["risks"]),
    }


def _changes(folder: Path, kubeconfig: Path) -> dict[str, Any]:
    """From a change to a report that says so, and what of a core the target takes for it."""
    report = folder / "live.json"
    argv = [_program(), *_FLAGS, "--kubeconfig", str(kubeconfig), "--report", str(report)]
    with (
        subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as target,
        SyncClient(config.load(str(kubeconfig))) as client,
    ):
        try:
            _together(client)
            _until(lambda: _named(report, "NodeCordoned"), "the first whole report")
            nodes, pods = _named(report, "NodeCordoned")[:CHANGES], _named(report, "SpreadOnOneNode")[::2]
            return {
                "node_change": _each(target.pid, nodes, lambda name: _uncordoned(client, report, name)),
                "pod_change": _each(target.pid, pods, lambda name: _deleted(client, report, name)),
            }
        finally:
            target.send_signal(signal.SIGTERM)


def _each(pid: int, what: Sequence[str], change: Callable[[str], None]) -> dict[str, Any]:
    """Seconds from each change to its report; seconds of a core for one."""
    before, seconds = _cpu_seconds(pid), []
    for each in what:
        # Changes in a row are waited for; what is measured is one after a calm.
        time.sleep(CALM_S)
        started = time.perf_counter()
        change(each)
        seconds.append(time.perf_counter() - started)
    return {"seconds": spread(seconds), "cpu_seconds": round((_cpu_seconds(pid) - before) / len(what), 2)}


def _cpu_seconds(pid: int) -> float:
    """What the process has taken of the processors so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _uncordoned(client: SyncClient, report: Path, name: str) -> None:
    client.send(calls.merge_patch(resource_of(Node), name, {"spec": {"unschedulable": None}}))
    _until(lambda: name not in _named(report, "NodeCordoned"), "the report without the node")


def _together(client: SyncClient) -> None:
    """Workloads with both their pods on one node, under no budget."""
    for index in range(2 * CHANGES):
        pod = checks.pod(1)
        owner = pod["metadata"]["ownerReferences"][0] | {"name": f"together-{index // 2}"}
        metadata = {"name": f"{owner['name']}-{index % 2}", "namespace": "default", "ownerReferences": [owner]}
        client.send(calls.create(resource_of(Pod), {"metadata": metadata, "spec": pod["spec"]}))


def _deleted(client: SyncClient, report: Path, name: str) -> None:
    client.send(calls.delete(resource_of(Pod), name, "default"))
    _until(lambda: name not in _named(report, "SpreadOnOneNode"), "the report without the pod")


def _named(report: Path, risk: str) -> list[str]:
    """The objects of that risk in a whole report."""
    found: dict[str, Any] = json.loads(report.read_text()) if report.is_file() else {}
    risks = found["risks"] if found.get("executionStatus") == "completed" else ()
    return [each["name"] for named in risks if named["name"] == risk for each in named["resources"]]


def _program() -> str:
    return str(Path(sys.executable).with_name("cluster-version-operator"))


def _until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come within {DEADLINE_S:g} s")
        time.sleep(0.01)
