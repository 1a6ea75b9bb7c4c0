"""The sandbox's API server: until it is ready, GETs and creates a second, one change delivered to 200 watchers.

GETs and creates are measured on an empty store and again beside 100,000 objects.

The server is a process of its own, the load comes from this one: raw HTTP/1.1 over TLS on loopback, so that the
client's own work does not set the figure.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import spread
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from kubekit.kube.transport import context_for
from kubesandbox.apiserver.store import key_of

READY_S = 90.0
CONNECTIONS = 16
SECONDS = 5.0
STARTS = 3
MANY = 100_000
WATCHERS = 200
CHANGES = 50
PATH = "/api/v1/namespaces/default/configmaps"


@contextmanager
def api_server() -> Iterator[ClusterConfig]:
    """A fresh API server, ready; ended afterwards."""
    with tempfile.TemporaryDirectory() as folder, api_server_in(Path(folder)) as config_of_it:
        yield config_of_it


@contextmanager
def api_server_in(folder: Path) -> Iterator[ClusterConfig]:
    """An API server that keeps its data in `folder`, `admin.kubeconfig` among it; ended afterwards."""
    argv = [sys.executable, "-m", "kubesandbox.apiserver", "--data", str(folder), "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield _ready(folder / "admin.kubeconfig", server)
        finally:
            server.terminate()


def _ready(kubeconfig: Path, server: subprocess.Popen[bytes]) -> ClusterConfig:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the API server ended with {server.returncode}")
        try:
            loaded = config.load(str(kubeconfig))
            SyncClient(loaded).send(calls.get_path("/readyz"))
        except KubeError:
            time.sleep(0.05)
        else:
            return loaded
    raise RuntimeError(f"the API server was not ready within {READY_S:g} s")


class Connection:
    """One keep-alive connection that sends requests and reads answers, nothing more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, cluster: ClusterConfig) -> Connection:
        """Connect as the administrator."""
        host, port = cluster.server.removeprefix("https://").split(":")
        context = context_for(cluster, cluster.auth.credential(datetime.now(UTC)))
        return cls(*await asyncio.open_connection(host, int(port), ssl=context, limit=1 << 20))

    async def get(self, path: str) -> bytes:
        """One GET; the body."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: sandbox\r\nAccept: application/json\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n", 1)[0], head
        if b"chunked" in head.lower():
            return b""
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        return await self.reader.readexactly(length)

    async def whole(self, path: str) -> bytes:
        """One GET, whose body may come in chunks."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: sandbox\r\nAccept: application/json\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n", 1)[0], head
        if length := re.search(rb"(?i)content-length: (\d+)", head):
            return await self.reader.readexactly(int(length[1]))
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return body

    async def create(self, path: str, body: bytes) -> None:
        """One POST; its answer is read and thrown away."""
        head = f"POST {path} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 201 " in answer.split(b"\r\n", 1)[0], answer
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        assert length, answer
        await self.reader.readexactly(int(length[1]))

    async def watch(self, resource_version: str) -> None:
        """Start a watch of the ConfigMaps; events are read with `event`."""
        await self.get(f"{PATH}?watch=1&resourceVersion={resource_version}")

    async def event(self) -> bytes:
        """The next line that is an event, whatever the chunking around it."""
        while True:
            line = await self.reader.readline()
            if not line:
                raise RuntimeError("the watch ended")
            if line.startswith(b"{"):
                return line


async def _a_second(cluster: ClusterConfig, one: Callable[[Connection, int], Awaitable[object]]) -> int:
    """Returns how often a second `one` is done, by all connections together; it is told a number of its own."""
    connections = [await Connection.open(cluster) for _ in range(CONNECTIONS)]
    until = time.perf_counter() + SECONDS
    numbers = itertools.count()

    async def loop(connection: Connection) -> int:
        done = 0
        while time.perf_counter() < until:
            await one(connection, next(numbers))
            done += 1
        return done

    done = await asyncio.gather(*(loop(connection) for connection in connections))
    return round(sum(done) / SECONDS)


async def load(cluster: ClusterConfig, prefix: str) -> dict[str, Any]:
    """GETs of one object, then creates of others."""

    def create(connection: Connection, number: int) -> Awaitable[None]:
        return connection.create(PATH, json.dumps(config_map(f"{prefix}-{number}")).encode())

    told = {"connections": CONNECTIONS, "seconds": SECONDS}
    gets = await _a_second(cluster, lambda connection, _: connection.get(f"{PATH}/bench"))
    creates = await _a_second(cluster, create)
    return {"gets": {**told, "gets_per_second": gets}, "creates": {**told, "creates_per_second": creates}}


async def _fan_out(cluster: ClusterConfig) -> dict[str, Any]:
    writer = await Connection.open(cluster)
    listed = json.loads(await writer.get(PATH))
    watchers = [await Connection.open(cluster) for _ in range(WATCHERS)]
    for watcher in watchers:
        await watcher.watch(listed["metadata"]["resourceVersion"])
    client = SyncClient(cluster)
    latencies = []
    started = time.perf_counter()
    for number in range(CHANGES):
        sent = time.perf_counter()
        await asyncio.to_thread(_change, client, number)
        await asyncio.gather(*(watcher.event() for watcher in watchers))
        latencies.append(time.perf_counter() - sent)
    seconds = time.perf_counter() - started
    return {
        "watchers": WATCHERS,
        "changes": CHANGES,
        "deliveries_per_second": round(WATCHERS * CHANGES / seconds),
        "seconds_from_write_to_last_watcher": spread(latencies, 4),
    }


def _change(client: SyncClient, number: int) -> None:

    client.send(calls.merge_patch(resource_of(ConfigMap), "bench", {"data": {"number": str(number + 1)}}, "default"))


def config_map(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"number": "0", "text": "x" * 400},
    }


def _fill(store: Path, number: int) -> None:
    """Writes so many objects into the store of a server that does not run."""
    database = sqlite3.connect(store)
    (last,) = database.execute("SELECT max(rv) FROM revisions").fetchone()
    rows = []
    for rv in range(last + 1, last + 1 + number):
        obj = config_map(f"many-{rv}")
        obj["metadata"] |= {"resourceVersion": str(rv), "creationTimestamp": "2026-01-14T09:00:00Z", "uid": str(rv)}
        rows.append((rv, "configmaps", key_of("default", f"many-{rv}"), json.dumps(obj).encode()))
    with database:
        database.executemany("INSERT INTO revisions VALUES (?, ?, ?, 0, ?)", rows)
    database.close()


def beside(objects: int) -> dict[str, Any]:
    """Starts on a store with so many objects, then the load."""
    with tempfile.TemporaryDirectory() as folder:
        with api_server_in(Path(folder)) as cluster:
            SyncClient(cluster).send(calls.create(resource_of(ConfigMap), config_map("bench")))
        return _full(Path(folder), objects)


def _full(folder: Path, objects: int) -> dict[str, Any]:
    """Fills the store of a server that has ended and starts it again; then the load."""
    _fill(next(folder.rglob("store.db")), objects)
    (folder / "admin.kubeconfig").unlink()
    started = time.perf_counter()
    with api_server_in(folder) as cluster:
        ready = round(time.perf_counter() - started, 3)
        return {"objects": objects, "ready_seconds": ready, **asyncio.run(load(cluster, "two"))}


def run() -> dict[str, Any]:
    """Starts on fresh folders; then the load, the fan-out, and the load again on a store that is full."""
    ready = []
    for _ in range(STARTS):
        started = time.perf_counter()
        with api_server():
            ready.append(time.perf_counter() - started)
    with tempfile.TemporaryDirectory() as folder:
        with api_server_in(Path(folder)) as cluster:
            SyncClient(cluster).send(calls.create(resource_of(ConfigMap), config_map("bench")))
            found = {**asyncio.run(load(cluster, "one")), "watch": asyncio.run(_fan_out(cluster))}
        full = _full(Path(folder), MANY)
    return {"ready_seconds": spread(ready), **found, "full": full}
