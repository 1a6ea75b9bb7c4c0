"""The store: revisions, what is kept, what is refused, and what a full disk or a killed process leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.store import Conflict, Entry, Expired, Store, StoreError

JSON = dict[str, Any]
PODS = "pods"


def opened(path: Path, **limits: Any) -> Store:
    """A store that is not open yet."""
    return Store(path / "store.db", monotonic=SystemClock().monotonic, **limits)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store that keeps few events."""
    made = opened(tmp_path, keep_events=10)
    await made.open()
    yield made
    await made.close()


async def put(store: Store, name: str, value: int, expected: int | None = None, namespace: str = "a") -> Entry:
    """Store `{value: ...}` as a pod."""
    obj = {"metadata": {"name": name}, "value": value}
    return await store.put(PODS, namespace, name, obj, expected=expected, encode=orjson.dumps)


async def delete(store: Store, name: str, expected: int) -> Entry:
    """Delete a pod."""
    return await store.delete(PODS, "a", name, {"metadata": {"name": name}}, expected=expected, encode=orjson.dumps)


def values(entries: list[Entry]) -> list[tuple[str, int]]:
    """Key and value of every entry."""
    return [(entry.key, entry.load()["value"]) for entry in entries]


async def test_of_two_writers_with_the_same_revision_one_loses(store: Store) -> None:
    """Both read revision 1; exactly one write is kept, whoever is first."""
    first = await put(store, "x", 1, 0)
    results = await asyncio.gather(put(store, "x", 2, first.rv), put(store, "x", 3, first.rv), return_exceptions=True)
    assert [type(result) for result in results] == [Entry, Conflict]
    assert values(store.items(PODS)) == [("a/x", 2)]


async def test_a_revision_is_in_the_bytes_that_are_served(store: Store) -> None:
    """`metadata.resourceVersion` is the revision of the write, and revisions only grow."""
    written = [await put(store, name, 0, 0) for name in ("x", "y", "z")]
    assert [entry.load()["metadata"]["resourceVersion"] for entry in written] == ["1", "2", "3"]


async def test_keys_are_in_the_order_of_etcd(store: Store) -> None:
    """`a-b/x` comes before `a/x`: keys sort as text, not by namespace."""
    for namespace in ("a", "b", "a-b"):
        await put(store, "x", value=0, expected=0, namespace=namespace)
    assert [entry.key for entry in store.items(PODS)] == ["a-b/x", "a/x", "b/x"]
    assert [entry.key for entry in store.items(PODS, "a")] == ["a/x"]


async def test_a_list_at_an_older_revision_is_what_it_was(store: Store) -> None:
    """Changed, deleted and new objects are put back as they were."""
    first = await put(store, "x", 1, 0)
    second = await put(store, "y", 2, 0)
    await put(store, "x", 10, first.rv)
    await delete(store, "y", second.rv)
    await put(store, "z", 3, 0)
    assert values(store.entries_at(PODS, second.rv)) == [("a/x", 1), ("a/y", 2)]
    assert values(store.items(PODS)) == [("a/x", 10), ("a/z", 3)]


async def test_what_is_older_than_the_log_is_expired(store: Store) -> None:
    """Beyond the events kept, lists and watches get 410; the objects stay."""
    entry = await put(store, "x", 0, 0)
    for value in range(30):
        entry = await put(store, "x", value, entry.rv)
    with pytest.raises(Expired, match=rf"too old resource version: 2 \({store.compacted}\)"):
        store.events_since(PODS, 2)
    with pytest.raises(Expired):
        store.entries_at(PODS, 2)
    assert [event.rv for event in store.events_since(PODS, 29)] == [30, 31]


async def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    """Objects, the revision, the log and what was forgotten survive, deletions included."""
    store = opened(tmp_path, keep_events=5)
    await store.open()
    entry = await put(store, "x", 0, 0)
    for value in range(10):
        entry = await put(store, "x", value, entry.rv)
    gone = await put(store, "y", 1, 0)
    last = await delete(store, "y", gone.rv)
    compacted, events = store.compacted, [(event.type, event.rv) for event in store.events_since(PODS, store.compacted)]
    await store.close()
    again = opened(tmp_path, keep_events=5)
    await again.open()
    assert (again.rv, again.compacted, values(again.items(PODS))) == (last.rv, compacted, [("a/x", 9)])
    assert [(event.type, event.rv) for event in again.events_since(PODS, compacted)] == events
    assert (await put(again, "y", 2, 0)).rv == last.rv + 1
    await again.close()


async def test_forgotten_revisions_leave_the_file(tmp_path: Path) -> None:
    """After compaction a single object is a single row, however often it was written."""
    store = opened(tmp_path, keep_events=5)
    await store.open()
    entry = await put(store, "x", 0, 0)
    for value in range(50):
        entry = await put(store, "x", value, entry.rv)
    store.compact()
    await store.close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        assert db.execute("SELECT count(*), max(rv) FROM revisions").fetchone() == (1, 51)


async def test_a_folder_belongs_to_one_process(store: Store, tmp_path: Path) -> None:
    """A second store on the same file is refused with its name."""
    with pytest.raises(StoreError, match=r"store\.db is in use by another process"):
        await opened(tmp_path).open()


class _Small(Store):
    """A store on a disk with room for a few pages."""

    pages = 24

    def _open_database(self) -> sqlite3.Connection:
        db = super()._open_database()
        db.execute(f"PRAGMA max_page_count={self.pages}")
        return db


async def test_a_full_disk_refuses_the_write_and_keeps_the_rest(tmp_path: Path) -> None:
    """The error says so, nothing of the write is seen, and writing works again once there is room."""
    store = _Small(tmp_path / "store.db", monotonic=SystemClock().monotonic)
    await store.open()
    kept = await put(store, "x", 1, 0)
    big = {"metadata": {"name": "big"}, "value": 2, "data": "x" * 500_000}
    with pytest.raises(StoreError, match="database or disk is full"):
        await store.put(PODS, "a", "big", big, expected=0, encode=orjson.dumps)
    assert (store.rv, values(store.items(PODS))) == (kept.rv, [("a/x", 1)])
    assert (await put(store, "x", 2, kept.rv)).rv == kept.rv + 1
    _Small.pages = 1 << 20
    await store.close()
    roomy = _Small(tmp_path / "store.db", monotonic=SystemClock().monotonic)
    await roomy.open()
    await roomy.put(PODS, "a", "big", big, expected=0, encode=orjson.dumps)
    assert [key for key, _ in values(roomy.items(PODS))] == ["a/big", "a/x"]
    await roomy.close()


_WRITER = """
import asyncio, sys, orjson
from pathlib import Path
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.store import Store

async def main():
    store = Store(Path(sys.argv[1]) / "store.db", monotonic=SystemClock().monotonic, keep_events=50)
    await store.open()
    async def write(worker):
        number = 0
        while True:
            obj = {"metadata": {"name": f"{worker}-{number}"}, "value": number}
            entry = await store.put("pods", "a", f"{worker}-{number}", obj, expected=0, encode=orjson.dumps)
            sys.stdout.write(f"{entry.key} {entry.rv}\\n")
            sys.stdout.flush()
            number += 1
    await asyncio.gather(*(write(worker) for worker in range(5)))

asyncio.run(main())
"""


async def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """kill -9 in the middle of writes: every key that was answered is there with its revision."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(200)]
    os.kill(process.pid, signal.SIGKILL)
    lines += (await process.stdout.read()).splitlines(keepends=True)
    await process.wait()
    answered = dict(line.decode().split() for line in lines if line.endswith(b"\n"))
    store = opened(tmp_path)
    await store.open()
    found = {entry.key: str(entry.rv) for entry in store.items(PODS)}
    assert len(answered) >= 200
    assert answered.items() <= found.items()
    assert store.rv == max(int(rv) for rv in found.values())
    await store.close()
