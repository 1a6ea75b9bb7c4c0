"""The object store: objects with one growing revision in SQLite, and the log of changes that watches replay.

In: objects as dicts, each with the revision that the writer expects to be current. Out: `Entry` (the served JSON bytes
at one revision) and `Event` (a change, with the state before it). A write is answered only after its transaction is
committed, so a killed process loses nothing that was acknowledged. Memory changes only after the commit, so a failed
commit leaves no partial write behind. Reads never touch the disk.

Two writers that both read revision 7 cannot both succeed: the single writer thread compares revisions itself, and the
second one gets `Conflict`.

The thread commits all queued writes together (group commit). The log of revisions serves watches and lists at an older
revision. It is limited by number, size and age; a request for a revision before the oldest one gets `Expired`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import queue
import sqlite3
import threading
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, overload

import msgspec
import orjson

JSON = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS revisions (
  rv INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, deleted INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, rv INTEGER NOT NULL);
"""
# The batch size is limited, so that the first write of a long queue does not wait for the last one.
_BATCH = 256


class StoreError(Exception):
    """A write that the disk refused (full, read-only, damaged); nothing of it was kept."""


class Conflict(Exception):
    """An object that is not at the revision that the writer expected; `current` is 0 if it does not exist."""

    def __init__(self, current: int) -> None:
        super().__init__(f"at revision {current}")
        self.current = current


class Expired(Exception):
    """A revision that the log no longer has, with the oldest one that it has."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels = msgspec.field(default_factory=_Labels)


_LABELS = msgspec.json.Decoder(_Labelled)


class Entry:
    """An object at one revision. `raw` is the served JSON; labels are decoded from it on first use."""

    __slots__ = ("_labels", "cache", "key", "raw", "resource", "rv")

    def __init__(self, resource: str, key: str, rv: int, raw: bytes) -> None:
        self.resource, self.key, self.rv, self.raw = resource, key, rv, raw
        self._labels: dict[str, str] | None = None
        # Derived forms of this object (other versions, selectable fields), each computed at most once.
        self.cache: dict[Any, Any] = {}

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        if self._labels is None:
            self._labels = _LABELS.decode(self.raw).metadata.labels or {}
        return self._labels

    @property
    def namespace(self) -> str:
        """The object's namespace, or "" for a cluster-scoped one."""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.rpartition("/")[2]

    def load(self) -> JSON:
        """Decodes the object; each call returns a new dict."""
        obj: JSON = orjson.loads(self.raw)
        return obj


@dataclass(slots=True, kw_only=True)
class Event:
    """A change: `entry` is the object after it (for DELETED: its last state), `prev` the object before it."""

    type: EventType
    entry: Entry
    prev: Entry | None
    _: KW_ONLY
    at: float = 0.0
    # The encoded watch line by representation, so that 200 watchers cost one encoding.
    lines: dict[Any, bytes] = field(default_factory=dict)

    @property
    def rv(self) -> int:
        """The revision of this change."""
        return self.entry.rv


@dataclass(slots=True, kw_only=True)
class _Write:
    resource: str
    key: str
    obj: JSON
    deleted: bool
    expected: int | None
    encode: Callable[[JSON], bytes]
    done: asyncio.Future[Entry]
    # What the writer thread made of it.
    entry: Entry | None = None
    error: Exception | None = None


@dataclass(slots=True)
class _Compact:
    dead: list[int]
    upto: int


@dataclass(slots=True)
class _Table:
    entries: dict[str, Entry] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    events: deque[Event] = field(default_factory=deque)


class Entries(Sequence[Entry]):
    """Objects in the order of their keys, each looked up on access, so that a page costs only its own objects."""

    def __init__(self, entries: Mapping[str, Entry], keys: Sequence[str], within: range | None = None) -> None:
        # A range of the keys instead of a copy, since long lists are read page by page.
        self._entries, self._keys = entries, keys
        self._within = range(len(keys)) if within is None else within

    def __len__(self) -> int:
        return len(self._within)

    def __iter__(self) -> Iterator[Entry]:
        return map(self._entries.__getitem__, self._keys[self._within.start : self._within.stop])

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Entries: ...
    def __getitem__(self, index: int | slice) -> Entry | Entries:
        if isinstance(index, slice):
            return Entries(self._entries, self._keys, self._within[index])
        return self._entries[self._keys[self._within[index]]]


def key_of(namespace: str, name: str) -> str:
    """Returns the key of an object within its resource; the order of keys is that of a list, as in etcd."""
    return f"{namespace}/{name}" if namespace else name


class Store:
    """The object store. Call `await store.open()` first and `await store.close()` last, in one event loop."""

    def __init__(
        self,
        path: Path,
        *,
        monotonic: Callable[[], float],
        keep_events: int = 10_000,
        keep_bytes: int = 64 << 20,
        keep_s: float = 3600.0,
    ) -> None:
        self._path = path
        self._monotonic = monotonic
        self._keep_events, self._keep_bytes, self._keep_s = keep_events, keep_bytes, keep_s
        self._tables: dict[str, _Table] = {}
        self._tables_lock = threading.Lock()
        self._log: deque[Event] = deque()
        self._log_bytes = 0
        self.rv = 0
        """The newest committed revision."""
        self.compacted = 0
        """The oldest revision from which watches and lists can be served."""
        self._subscribers: dict[str, list[Callable[[Event], None]]] = {}
        # Lists of what the writer must commit; None ends it.
        self._queue: queue.SimpleQueue[list[_Write | _Compact] | None] = queue.SimpleQueue()
        self._unqueued: list[_Write | _Compact] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock: IO[str] | None = None
        # Used only by the writer thread once `open` has returned.
        self._db: sqlite3.Connection | None = None
        self._heads: dict[tuple[str, str], int] = {}
        self._next = 0

    # -- life ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Reads all objects into memory and starts the writer. Raises StoreError if another process uses the folder."""
        self._loop = asyncio.get_running_loop()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self._path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise StoreError(f"{self._path} is in use by another process") from error
        try:
            self._db = self._open_database()
            # The log of revisions, the oldest first.
            self.compacted = dict(self._db.execute("SELECT name, rv FROM marks")).get("compacted", 0)
            now = self._monotonic()
            for rv, resource, key, deleted, value in self._db.execute(
                "SELECT rv, resource, key, deleted, value FROM revisions ORDER BY rv"
            ):
                self._apply_entry(Entry(resource, key, rv, value), deleted=bool(deleted), at=now)
        except sqlite3.Error as error:
            self._lock.close()
            raise StoreError(f"{self._path}: {error}") from error
        self.rv = max(self.rv, self.compacted)
        self._next = self.rv
        for resource, table in self._tables.items():
            table.keys.sort()
            self._heads.update({(resource, key): entry.rv for key, entry in table.entries.items()})
        self._thread = threading.Thread(target=self._write_forever, name="store-writer", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Commits the queued writes and stops the writer."""
        if self._thread is not None:
            self._hand_over()
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _open_database(self) -> sqlite3.Connection:
        """Returns a connection to the database, with its tables created."""
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, cached_statements=32)
        # NORMAL in WAL mode: a commit reaches the kernel before it is acknowledged, so a killed process loses nothing.
        # Only a power failure can lose the last commits, and never a part of one
        # (https://sqlite.org/pragma.html#pragma_synchronous).
        db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=2000;")
        db.executescript(_SCHEMA)
        return db

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, resource: str, namespace: str, name: str) -> Entry | None:
        """Returns the current object, or None."""
        table = self._tables.get(resource)
        return table.entries.get(key_of(namespace, name)) if table else None

    def items(self, resource: str, namespace: str = "") -> list[Entry]:
        """Returns the objects of a resource, or of one of its namespaces, by key; from any thread."""
        with self._tables_lock:
            return list(self.entries(resource, namespace))

    def all_entries(self) -> list[Entry]:
        """Returns the objects of every resource."""
        with self._tables_lock:
            return [entry for table in self._tables.values() for entry in table.entries.values()]

    def entries(self, resource: str, namespace: str = "", after: str = "") -> Entries:
        """Returns the same as `items`, with keys after `after`, without copying; valid until the next change."""
        table = self._tables.get(resource)
        if table is None:
            return Entries({}, ())
        keys = table.keys
        # "0" is the character after "/", so that this range has exactly the keys with the namespace's prefix.
        start, end = (
            (bisect_left(keys, f"{namespace}/"), bisect_left(keys, f"{namespace}0")) if namespace else (0, len(keys))
        )
        if after:
            start = max(start, bisect_right(keys, after))
        return Entries(table.entries, keys, range(start, end))

    def count(self, resource: str) -> int:
        """Returns the number of objects of a resource."""
        table = self._tables.get(resource)
        return len(table.keys) if table else 0

    def entries_at(self, resource: str, rv: int, namespace: str = "", after: str = "") -> Entries:
        """Returns what `entries` was at revision `rv`. Raises Expired if the log does not reach back that far."""
        if rv < self.compacted:
            raise Expired(rv, self.compacted)
        table = self._tables.get(resource)
        if table is None:
            return Entries({}, ())
        if not table.events or table.events[-1].rv <= rv:
            return self.entries(resource, namespace, after)
        state = dict(table.entries)
        for event in _takewhile_newer(table.events, rv):
            if event.prev is None:
                state.pop(event.entry.key, None)
            else:
                state[event.entry.key] = event.prev
        prefix = f"{namespace}/" if namespace else ""
        return Entries(state, sorted(key for key in state if key.startswith(prefix) and key > after))

    def events_since(self, resource: str, rv: int) -> list[Event]:
        """Returns the changes after revision `rv`, oldest first. Raises Expired if the log begins later."""
        if rv < self.compacted:
            raise Expired(rv, self.compacted)
        table = self._tables.get(resource)
        return list(reversed(list(_takewhile_newer(table.events, rv)))) if table else []

    def subscribe(self, resource: str, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls `callback` with every later change of a resource; returns a function that ends the subscription."""
        callbacks = self._subscribers.setdefault(resource, [])
        callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                callbacks.remove(callback)

        return unsubscribe

    # -- writing ---------------------------------------------------------------------------------------------------

    async def put(
        self,
        resource: str,
        namespace: str,
        name: str,
        obj: JSON,
        *,
        expected: int | None,
        encode: Callable[[JSON], bytes],
        deleted: bool = False,
    ) -> Entry:
        """Stores `obj`, which the store takes over, and returns it as stored.

        `expected` is the revision that must be current, 0 for "does not exist". `encode` returns the bytes to serve and
        is called with `metadata.resourceVersion` set. Raises Conflict or StoreError.
        """
        if self._loop is None or self._thread is None:
            raise StoreError("the store is closed")
        done: asyncio.Future[Entry] = self._loop.create_future()
        key = key_of(namespace, name)
        self._enqueue(
            _Write(resource=resource, key=key, obj=obj, deleted=deleted, expected=expected, encode=encode, done=done)
        )
        # A write continues when its client disconnects.
        return await asyncio.shield(done)

    async def delete(
        self, resource: str, namespace: str, name: str, obj: JSON, *, expected: int, encode: Callable[[JSON], bytes]
    ) -> Entry:
        """Removes an object whose last state is `obj`. Raises Conflict or StoreError."""
        return await self.put(resource, namespace, name, obj, expected=expected, encode=encode, deleted=True)

    def _enqueue(self, item: _Write | _Compact) -> None:
        """Adds an item to those that the writer gets at the end of this turn of the event loop.

        Waking the writer for each write, while this thread handles the next request, took a quarter of a create's
        time.
        """
        if not self._unqueued and self._loop is not None:
            self._loop.call_soon(self._hand_over)
        self._unqueued.append(item)

    def _hand_over(self) -> None:
        if self._unqueued:
            self._queue.put(self._unqueued)
            self._unqueued = []

    def _publish_results(self, writes: list[_Write]) -> None:
        """Makes committed writes visible, notifies subscribers, and wakes the writers; runs in the event loop."""
        now = self._monotonic()
        for write in writes:
            if write.entry is not None:
                event = self._apply_entry(write.entry, deleted=write.deleted, at=now)
                for callback in tuple(self._subscribers.get(write.resource, ())):
                    callback(event)
        for write in writes:
            if write.done.done():
                continue
            if write.entry is not None:
                write.done.set_result(write.entry)
            elif write.error is not None:
                write.done.set_exception(write.error)
        # A tenth more than the limit is dropped at a time.
        if self._is_log_too_long(now, slack=1.1):
            self._drop_oldest(lambda: self._is_log_too_long(now, slack=1.0))

    def _apply_entry(self, entry: Entry, *, deleted: bool, at: float) -> Event:
        """Applies a committed change to the tables and the log; `at` is the monotonic time. Returns its event."""
        table = self._tables.setdefault(entry.resource, _Table())
        prev = table.entries.get(entry.key)
        with self._tables_lock:
            if deleted:
                table.entries.pop(entry.key, None)
                index = bisect_left(table.keys, entry.key)
                if index < len(table.keys) and table.keys[index] == entry.key:
                    del table.keys[index]
            else:
                table.entries[entry.key] = entry
                if prev is None:
                    insort(table.keys, entry.key)
        event = Event(type="DELETED" if deleted else "MODIFIED" if prev else "ADDED", entry=entry, prev=prev, at=at)
        if entry.rv > self.compacted:
            table.events.append(event)
            self._log.append(event)
            self._log_bytes += len(entry.raw)
        self.rv = entry.rv
        return event

    # -- compaction ------------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Drops the whole log, so that every older revision is Expired."""
        self._drop_oldest(lambda: True)

    def _drop_oldest(self, is_too_long: Callable[[], bool]) -> None:
        """Drops the oldest changes from the log while it is too long, and from the database what they alone need."""
        dead: list[int] = []
        while self._log and is_too_long():
            event = self._log.popleft()
            self._tables[event.entry.resource].events.popleft()
            self._log_bytes -= len(event.entry.raw)
            self.compacted = event.rv
            dead += [event.prev.rv] if event.prev is not None else []
            dead += [event.rv] if event.type == "DELETED" else []
        self._enqueue(_Compact(dead, self.compacted))

    def _is_log_too_long(self, now: float, *, slack: float) -> bool:
        """Reports whether the log of events exceeds one of its limits by the factor `slack`."""
        return bool(self._log) and (
            len(self._log) > self._keep_events * slack
            or self._log_bytes > self._keep_bytes * slack
            or now - self._log[0].at > self._keep_s * slack
        )

    # -- the writer thread -----------------------------------------------------------------------------------------

    def _write_forever(self) -> None:
        """Commits queued writes in batches until the queue has None; runs in a separate thread."""
        running = True
        while running:
            batch: list[_Write | _Compact] = []
            items = self._queue.get()
            while items is not None:
                batch += items
                if len(batch) >= _BATCH:
                    break
                try:
                    items = self._queue.get_nowait()
                except queue.Empty:
                    break
            running = items is not None
            if batch:
                self._commit_batch(batch)
        if self._db is not None:
            self._db.close()

    def _commit_batch(self, batch: list[_Write | _Compact]) -> None:
        """Commits a batch in one transaction; if that fails, all its writes fail."""
        writes = [item for item in batch if isinstance(item, _Write)]
        heads: dict[tuple[str, str], int] = {}
        before = self._next
        try:
            db = self._db = self._db or self._open_database()
            db.execute("BEGIN IMMEDIATE")
            rows = [row for write in writes if (row := self._row_of(write, heads)) is not None]
            db.executemany("INSERT INTO revisions VALUES (?, ?, ?, ?, ?)", rows)
            for item in batch:
                if isinstance(item, _Compact):
                    db.executemany("DELETE FROM revisions WHERE rv = ?", [(rv,) for rv in item.dead])
                    db.execute("INSERT OR REPLACE INTO marks VALUES ('compacted', ?)", (item.upto,))
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._next = before
            # After an error of the disk a connection may stay broken; the next batch opens a new one.
            if self._db is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                with contextlib.suppress(sqlite3.Error):
                    self._db.close()
                self._db = None
            for write in writes:
                write.entry, write.error = None, StoreError(f"{self._path.name}: {error}")
        else:
            for head, rv in heads.items():
                if rv:
                    self._heads[head] = rv
                else:
                    self._heads.pop(head, None)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._publish_results, writes)

    def _row_of(self, write: _Write, heads: dict[tuple[str, str], int]) -> tuple[int, str, str, int, bytes] | None:
        """Returns the database row of a write, None if it conflicts; `heads` has the revisions within the batch."""
        head = (write.resource, write.key)
        current = heads[head] if head in heads else self._heads.get(head, 0)
        if write.expected is not None and write.expected != current:
            write.error = Conflict(current)
            return None
        rv = self._next + 1
        try:
            write.obj["metadata"]["resourceVersion"] = str(rv)
            raw = write.encode(write.obj)
        except Exception as error:  # noqa: BLE001 - one object that cannot be encoded must not stop the others
            write.error = error
            return None
        self._next = rv
        heads[head] = 0 if write.deleted else rv
        write.entry = Entry(write.resource, write.key, rv, raw)
        return rv, write.resource, write.key, int(write.deleted), raw


def _takewhile_newer(events: deque[Event], rv: int) -> Iterable[Event]:
    for event in reversed(events):
        if event.rv <= rv:
            return
        yield event
