"""Watches: the stream of stored changes as events that a client reads.

In: a kind, a selector, a starting revision. Out: an async iterator of events, as lines of JSON or in protobuf. Each
change is encoded once for each representation and shared by all watchers. A watcher that does not read is ended when
its backlog is full: it resumes at the last revision that it read, and does not delay the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import orjson

from kubesandbox.apiserver.http.selectors import Selector
from kubesandbox.apiserver.metadata import JSON, encoder_of
from kubesandbox.apiserver.objects.schemas import Unconverted
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError, expired, too_large_resource_version
from kubesandbox.apiserver.store import Entry, Event, Expired, Store

# Limit of pending changes for one slow reader.
BACKLOG = 10_000
BOOKMARK_PERIOD_S = 30.0
LAST_BOOKMARK_S = 2.0
# Without timeoutSeconds a real server ends a watch after 30 to 60 minutes.
DEFAULT_TIMEOUT_S = 1800.0

T = TypeVar("T")
# Renders the `object` of a watch event in the requested representation; of tables the first has the columns.
Render = Callable[[Entry, bool], bytes]
# Encodes a watch event of a type with an object, which is JSON.
Encode = Callable[[str, bytes], bytes]


def json_line(type_: str, obj: bytes) -> bytes:
    """Returns an event as a line of JSON."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), obj)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The parameters of one client's watch.

    `since` is the revision after which it begins, None for "all existing objects, then changes"; `form` names how
    `render` writes an object, so that watches of one form share what is written.
    """

    kind: Kind
    namespace: str
    selector: Selector
    since: int | None
    bookmarks: bool
    initial_bookmark: bool
    timeout_s: float
    form: str
    render: Render
    nothing: JSON  # an object of the kind in which nothing is set, which bookmarks carry
    fresh: int = 0  # the revision that the existing objects must have reached
    columns: bool = False  # the first event differs from the others: it has a table's columns
    seen: Callable[[Entry], Entry] = lambda entry: entry  # how a stored object is read
    convert: Callable[[Unconverted], Awaitable[None]] | None = None
    encode: Encode = json_line

    def error(self, error: ApiError) -> bytes:
        """Returns an ERROR event; the stream ends after it."""
        return self.encode("ERROR", orjson.dumps(error.status()))


def _event_line(type_: str, event: Event, entry: Entry, watch: Watch, *, first: bool) -> bytes:
    """Returns the encoded event; watches of one form share it."""
    key = (type_, watch.form, watch.kind.version, watch.kind.group, first and watch.columns)
    line = event.lines.get(key)
    if line is None:
        line = event.lines[key] = watch.encode(type_, watch.render(entry, first))
    return line


def line_for(event: Event, watch: Watch, *, first: bool) -> bytes | None:
    """Returns the line that this watcher gets for a change, or None if the change is not in its scope.

    An object that begins or ceases to be selected is ADDED or DELETED for this watcher, whatever its change was.
    """
    entry = watch.seen(event.entry)
    if watch.namespace and entry.namespace != watch.namespace:
        return None
    if not watch.selector:
        return (
            _deleted_line(event, watch, first)
            if event.type == "DELETED"
            else _event_line(event.type, event, entry, watch, first=first)
        )
    before = event.prev is not None and watch.selector.matches(watch.seen(event.prev))
    after = event.type != "DELETED" and watch.selector.matches(entry)
    if not before and not after:
        return None
    if not after:
        return _deleted_line(event, watch, first)
    return _event_line("MODIFIED" if before else "ADDED", event, entry, watch, first=first)


def _deleted_line(event: Event, watch: Watch, first: bool) -> bytes:
    """Returns the DELETED event: the last state at the revision of the deletion, as a real server has it from etcd."""
    if event.prev is None:
        return _event_line("DELETED", event, watch.seen(event.entry), watch, first=first)
    before = watch.seen(event.prev)
    obj = before.load()
    last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(event.rv)}}
    entry = Entry(before.resource, before.key, event.rv, encoder_of(watch.kind)(last))
    return _event_line("DELETED", event, entry, watch, first=first)


class Watcher:
    """A running watch: `async for chunk in watcher.run()`."""

    def __init__(self, store: Store, watch: Watch, monotonic: Callable[[], float]) -> None:
        self._store, self._watch, self._monotonic = store, watch, monotonic
        self._pending: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._overrun, self._closed, self._at_first = False, False, True

    def _on_event(self, event: Event) -> None:
        """Queues an event for the watch; a watch that is too far behind is ended instead."""
        if len(self._pending) >= BACKLOG:
            self._overrun = True
        else:
            self._pending.append(event)
        self._wake.set()

    @property
    def storage(self) -> str:
        """The storage resource of the watched kind."""
        return self._watch.kind.storage

    def stop(self) -> None:
        """Ends the stream after the pending events, at shutdown or when the kind is gone."""
        self._closed = True
        self._wake.set()

    async def run(self) -> AsyncIterator[bytes]:
        """Yields chunks of whole lines until the timeout, `stop`, or an overrun of the backlog."""
        deadline = self._monotonic() + self._watch.timeout_s
        # No await between reading the state and subscribing, so that no change is missed. After a webhook's conversion
        # the state is read again.
        try:
            first = await self._repeat_converted(lambda: b"".join(self._first_lines()))
        except Expired as error:
            yield self._watch.error(expired(str(error)))
            return
        except ApiError as error:
            yield self._watch.error(error)
            return
        unsubscribe = self._store.subscribe(self._watch.kind.storage, self._on_event)
        rv = self._store.rv
        try:
            # An empty chunk sends the headers: the client must learn that the watch is on.
            yield first
            async for chunk in self._follow_changes(rv, deadline):
                yield chunk
        finally:
            unsubscribe()

    async def _repeat_converted(self, attempt: Callable[[], T]) -> T:
        """Returns the result of `attempt`, repeated after each conversion by a webhook."""
        while True:
            try:
                return attempt()
            except Unconverted as unconverted:
                if self._watch.convert is None:
                    raise
                await self._watch.convert(unconverted)

    def _first_lines(self) -> Iterable[bytes]:
        """Yields what a watch begins with: the changes since its revision, or the existing objects.

        Raises ApiError 410.
        """
        watch, store = self._watch, self._store
        self._at_first = True
        if watch.fresh > store.rv:  # a real server waits three seconds for it
            raise too_large_resource_version(watch.fresh, store.rv)
        if watch.since is not None:
            for event in store.events_since(watch.kind.storage, watch.since):
                if (line := line_for(event, watch, first=self._at_first)) is not None:
                    self._at_first = False
                    yield line
        else:
            for entry in map(watch.seen, store.items(watch.kind.storage, watch.namespace)):
                if not watch.selector or watch.selector.matches(entry):
                    yield watch.encode("ADDED", watch.render(entry, self._at_first))
                    self._at_first = False
        if watch.initial_bookmark:
            yield self._next_bookmark_line(store.rv, initial=True)

    def _next_bookmark_line(self, rv: int, *, initial: bool = False) -> bytes:
        """Returns a BOOKMARK in the watch's own representation: a client decodes it as it does the other events."""
        kind, metadata = self._watch.kind, {"resourceVersion": str(rv)}
        marked = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial else {}
        head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {**metadata, **marked}}
        entry = Entry(kind.resource, "", rv, encoder_of(kind)({**self._watch.nothing, **head}))
        line = self._watch.encode("BOOKMARK", self._watch.render(entry, self._at_first))
        self._at_first = False
        return line

    def _next_bookmark(self, deadline: float) -> float:
        """Returns when a bookmark is due: periodically, and once before the end (apiserver's cacher does both)."""
        now = self._monotonic()
        due = min(now + BOOKMARK_PERIOD_S, deadline - LAST_BOOKMARK_S)
        return due if self._watch.bookmarks and due > now else deadline

    async def _follow_changes(self, rv: int, deadline: float) -> AsyncIterator[bytes]:
        """Yields chunks of changes and bookmarks until `deadline` (monotonic seconds) or `stop`."""
        next_bookmark = self._next_bookmark(deadline)
        while (self._pending or not self._closed) and not self._overrun:
            now = self._monotonic()
            if now >= deadline:
                return
            if now >= next_bookmark and not self._pending:
                next_bookmark = self._next_bookmark(deadline)
                yield self._next_bookmark_line(max(rv, self._store.rv))
            if not self._pending:
                self._wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(min(deadline, next_bookmark) - now, 0.001)):
                        await self._wake.wait()
                continue
            lines: list[bytes] = []
            while self._pending:
                event = self._pending.popleft()
                rv = event.rv
                if self._watch.since is not None and rv <= self._watch.since:
                    continue
                try:
                    line = await self._repeat_converted(partial(line_for, event, self._watch, first=self._at_first))
                except ApiError as error:
                    yield b"".join((*lines, self._watch.error(error)))
                    return
                if line:
                    self._at_first = False
                    lines.append(line)
            if lines:
                yield b"".join(lines)
