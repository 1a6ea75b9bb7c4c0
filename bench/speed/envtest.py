"""kubesandbox next to kube-apiserver with etcd, as envtest starts them: until they are ready, memory, and requests.

Both have no controllers. The requests come from this process over raw HTTP/1.1, as in `api`; memory is the proportional
set size of all processes of the server after the requests. The ratios are kubesandbox to kube-apiserver: of seconds and
MiB a small one is good, of requests per second a large one.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane import build
from tests.controlplane.plane import ControlPlane

from bench.measure import resident_kib, spread
from bench.speed.api import PATH, Connection, api_server, config_map, load
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig

STARTS = 3
LISTED = 2000
CHANGES = 50


@contextmanager
def _kube_apiserver() -> Iterator[ClusterConfig]:
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder) / "data", build.build()) as plane:
        yield config.load(str(plane.kubeconfig))


def memory_mib() -> float:
    """Returns the proportional set size of all processes below this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return round(sum(resident_kib(int(child)) for child in children.split()) / 1024, 1)


async def _list_and_watch(cluster: ClusterConfig) -> dict[str, Any]:
    """Times a list of LISTED objects, and a change until its watch event has come."""
    connection = await Connection.open(cluster)
    for number in range(LISTED):
        await connection.create(PATH, json.dumps(config_map(f"listed-{number}")).encode())
    lists, version = [], ""
    for _ in range(5):
        started = time.perf_counter()
        version = json.loads(await connection.whole(f"{PATH}?limit={LISTED}"))["metadata"]["resourceVersion"]
        lists.append(time.perf_counter() - started)
    watcher = await Connection.open(cluster)
    await watcher.watch(version)
    lags = []
    for number in range(CHANGES):
        started = time.perf_counter()
        await connection.create(PATH, json.dumps(config_map(f"watched-{number}")).encode())
        await watcher.event()
        lags.append(time.perf_counter() - started)
    return {"list_seconds": spread(lists, 4), "create_to_event_seconds": spread(lags, 4)}


def _measured(server: Callable[[], AbstractContextManager[ClusterConfig]]) -> dict[str, Any]:
    ready = []
    for _ in range(STARTS - 1):
        started = time.perf_counter()
        with server():
            ready.append(time.perf_counter() - started)
    started = time.perf_counter()
    with server() as cluster:
        ready.append(time.perf_counter() - started)
        idle = memory_mib()
        SyncClient(cluster).send(calls.create(resource_of(ConfigMap), config_map("bench")))
        requests = asyncio.run(load(cluster, "one"))
        listed = asyncio.run(_list_and_watch(cluster))
        return {
            "ready_seconds": spread(ready),
            "idle_mib": idle,
            "loaded_mib": memory_mib(),
            "gets_per_second": requests["gets"]["gets_per_second"],
            "creates_per_second": requests["creates"]["creates_per_second"],
            **listed,
        }


def run() -> dict[str, Any]:
    """Measures both servers, one after the other, and the ratios of the medians."""
    sandbox, real = _measured(api_server), _measured(_kube_apiserver)
    ratios = {name: round(_middle(sandbox[name]) / _middle(real[name]), 3) for name in real}
    return {"kubesandbox": sandbox, "kube-apiserver with etcd": real, "ratios": ratios}


def _middle(value: Any) -> float:
    return float(value["median"] if isinstance(value, dict) else value)
