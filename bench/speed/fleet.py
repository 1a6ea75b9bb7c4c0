"""`runup fleet preflight` over many dumps: seconds, dumps a second, memory of all its processes together.

The aim is 1,000 dumps on two processors in 120 s and below 1 GiB. Half of the dumps are `examples/skip-level`, as
`runup dump collect` writes it; the others are must-gathers in YAML, a file an object, of 12 nodes and 240 pods. Every
fifth is packed. Each has a ClusterVersion of its own; files that clusters share are links to one copy, which is read
anew for each. Whether all were judged is counted from what the command prints. Memory is the sum of what each process
has resident, shared pages by their share (PSS), every tenth of a second. On a machine that others use, too, the
processor time counts: `seconds_for_1000_if_idle` is that of two processors which do nothing else.

With `--engine dask` a scheduler and a worker for each processor of this machine read them: a quarter of the dumps, then
all of them. What more would take is a straight line through these two, and is called extrapolated.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import resident_kib
from bench.speed import checks
from kubekit.lang import yaml as kyaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "skip-level"
VERSIONS = "clusterversions.config.openshift.io.json"
NODES, PODS_A_NODE, OPERATORS = 12, 20, 33
PACKED = 10
# Faults of the made clusters: each kind in one of so many.
PAUSED, DEGRADED = 3, 5
AIM = 1000
JSON = dict[str, Any]


def run(dumps: int = 100, engine: str = "local") -> JSON:
    """Makes the dumps, judges them, and says what that took and what 1,000 would."""
    if engine == "dask":
        return _with_dask(dumps)
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as scratch:
        folder = Path(scratch) / "dumps"
        shared = _shared(Path(scratch) / "shared")
        folder.mkdir()
        for number in range(dumps):
            _make(folder, number, shared)
        print(f"bench: fleet: {dumps} dumps are made", file=sys.stderr)
        measured = _measured(folder, Path(scratch) / "fleet.json")
    each = measured["seconds"] / dumps
    processors = len(os.sched_getaffinity(0))
    return {
        "dumps": dumps,
        "processors": processors,
        **measured,
        "dumps_a_second": round(1 / each, 1),
        "seconds_for_1000": round(each * AIM, 1),
        "seconds_for_1000_if_idle": round(measured["cpu_seconds"] / dumps * AIM / processors, 1),
        "aim": {"seconds": 120, "mib": 1024},
    }


def _with_dask(dumps: int) -> JSON:
    """Measures two sizes on the workers of a Dask scheduler on this machine, and extrapolates from them."""
    sizes = (max(dumps // 4, 2), dumps)
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as scratch:
        shared = _shared(Path(scratch) / "shared")
        folders = [Path(scratch) / f"dumps-{size}" for size in sizes]
        for folder, size in zip(folders, sizes, strict=True):
            folder.mkdir()
            for number in range(size):
                _make(folder, number, shared)
        with _dask(Path(scratch)) as address:
            more = ("--engine", "dask", "--scheduler", address)
            # The first one is not measured: the workers import runup.
            _measured(folders[0], Path(scratch) / "fleet.json", *more)
            measured = [_measured(folder, Path(scratch) / "fleet.json", *more) for folder in folders]
    for each in measured:
        # The workers are processes of their own, which end with the scheduler.
        del each["cpu_seconds"], each["peak_mib_of_all_processes"]
    seconds = [each["seconds"] for each in measured]
    each_s = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    return {
        "engine": "dask",
        "workers": len(os.sched_getaffinity(0)),
        "measured": [{"dumps": size, **each} for size, each in zip(sizes, measured, strict=True)],
        "extrapolated": {str(size): round(seconds[1] + each_s * (size - sizes[1]), 1) for size in (1000, 10_000)},
    }


@contextmanager
def _dask(scratch: Path) -> Iterator[str]:
    """The address of a scheduler with a worker for each processor."""
    file = scratch / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    words += ["--no-dashboard", "--scheduler-file", str(file)]
    silent: JSON = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": scratch}
    processes = [subprocess.Popen(words, **silent)]
    try:
        while not (file.exists() and file.read_text().rstrip().endswith("}")):
            if processes[0].poll() is not None:
                raise SystemExit("error: no Dask scheduler could be started; pip install 'kube-runup[dask]'")
            time.sleep(0.1)
        address = str(json.loads(file.read_text())["address"])
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        worker += ["--no-dashboard", "--memory-limit", "0", "--local-directory", str(scratch)]
        processes += [subprocess.Popen(worker, **silent) for _ in os.sched_getaffinity(0)]
        yield address
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _measured(folder: Path, report: Path, *more: str) -> JSON:
    words = [sys.executable, "-m", "runup", "fleet", "preflight", "--dumps", str(folder), "-o", f"json={report}", *more]
    started, before = time.perf_counter(), _cpu_s()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_kib(process.pid))
            time.sleep(0.1)
    seconds = time.perf_counter() - started
    cpu_s = _cpu_s() - before
    fleet = json.loads(report.read_bytes())
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_s, 1),
        "peak_mib_of_all_processes": round(peak / 1024),
        "exit_code": process.returncode,
        "counts": fleet["counts"],
        "risks": len(fleet["risks"]),
    }


def _cpu_s() -> float:
    """The processor time of all processes that have been waited for, those below them included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _make(folder: Path, number: int, shared: Path) -> None:
    name = f"cluster-{number:04}"
    if number % 2:
        _gathered(folder / name, number, shared)
    else:
        shutil.copytree(EXAMPLE, folder / name, copy_function=os.link, ignore=shutil.ignore_patterns(VERSIONS))
        listed = json.loads((EXAMPLE / VERSIONS).read_bytes())
        listed["items"][0]["spec"]["clusterID"] = _cluster_id(number)
        (folder / name / VERSIONS).write_text(json.dumps(listed))
    if number % PACKED < 2:
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz", compresslevel=1) as archive:
            archive.add(folder / name, name)
        shutil.rmtree(folder / name)


def _cluster_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _shared(root: Path) -> Path:
    """Makes the objects that all must-gathers share: nodes, pods, operators that are well."""
    for number in range(NODES):
        node = checks.node(number + 1) | {"apiVersion": "v1", "kind": "Node"}
        _write(root, f"cluster-scoped-resources/core/nodes/{node['metadata']['name']}.yaml", node)
    for number in range(NODES * PODS_A_NODE):
        pod = checks.pod(number) | {"apiVersion": "v1", "kind": "Pod"}
        place = pod["metadata"].get("namespace") or "bench"
        _write(root, f"namespaces/{place}/core/pods/{number}.yaml", pod)
    for number in range(OPERATORS):
        operator = _operator(f"operator-{number:02}", degraded=False)
        _write(root, f"cluster-scoped-resources/config.openshift.io/clusteroperators/{number:02}.yaml", operator)
    return root


def _gathered(place: Path, number: int, shared: Path) -> None:
    image = place / "quay-io-must-gather-sha256"
    shutil.copytree(shared, image, copy_function=os.link)
    (place / "timestamp").write_text("2026-01-14 09:00:00.0 +0000 UTC m=+0.1\n2026-01-14 09:30:00.0 +0000 UTC m=+9.1\n")
    scoped = "cluster-scoped-resources"
    _write(image, f"{scoped}/config.openshift.io/clusterversions/version.yaml", _version(number))
    if not number % DEGRADED:
        operator = _operator("storage", degraded=True)
        _write(image, f"{scoped}/config.openshift.io/clusteroperators/storage.yaml", operator)
    for name in ("master", "worker"):
        pool = _pool(name, paused=name == "worker" and not number % PAUSED)
        _write(image, f"{scoped}/machineconfiguration.openshift.io/machineconfigpools/{name}.yaml", pool)


def _write(root: Path, path: str, obj: JSON) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{kyaml.dump(obj)}")


def _conditions(**statuses: str) -> list[JSON]:
    since = "2026-01-14T08:00:00Z"
    return [{"type": kind, "status": status, "lastTransitionTime": since} for kind, status in statuses.items()]


def _version(number: int) -> JSON:
    release = {"version": f"4.15.{number % 7}", "image": "quay.io/x@sha256:1"}
    history = [{"state": "Completed", "startedTime": "2026-01-01T00:00:00Z", **release}]
    conditions = _conditions(Available="True", Failing="False", Progressing="False")
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version", "uid": _cluster_id(number)},
        "spec": {"clusterID": _cluster_id(number), "channel": "stable-4.15"},
        "status": {"desired": release, "history": history, "conditions": conditions},
    }


def _operator(name: str, *, degraded: bool) -> JSON:
    conditions = _conditions(Available="True", Degraded=str(degraded), Progressing="False", Upgradeable="True")
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": name, "uid": name},
        "status": {"conditions": conditions, "versions": [{"name": "operator", "version": "4.15.0"}]},
    }


def _pool(name: str, *, paused: bool) -> JSON:
    counts = {"machineCount": 6, "readyMachineCount": 6, "updatedMachineCount": 6}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "uid": name},
        "spec": {"paused": paused},
        "status": {**counts, "conditions": _conditions(Updated="True", Degraded="False", Updating="False")},
    }
