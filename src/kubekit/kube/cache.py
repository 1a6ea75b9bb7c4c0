"""What a cluster has of one kind, kept in memory by a watch. Reading never awaits and never asks the server.

A `Reflector` writes; controllers and checks read. Not having been able to look is not the same as there being nothing:
readers ask `ready` (or `synced` and `error`) before they believe an empty answer, and `undecoded` and `incomplete`
before they believe that an object is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import NamespacedName, Object, key_of

K = TypeVar("K", bound=Object)
Change = Literal["ADDED", "MODIFIED", "DELETED"]
Indexer = Callable[[K], Iterable[str]]
Listener = Callable[[Change, K | None, K | None], None]
Changes = Iterable[tuple[Change, K | None, K | None]]


class Cache(Generic[K]):
    """The objects of one kind by key, and by any number of indexes.

    An index is a function from an object to the values under which it is found:
    `Cache(Pod, node=lambda pod: [pod.spec.node_name])`. `keep` makes of an object the part of it that is kept.
    """

    def __init__(self, kind: type[K], *, keep: Callable[[K], K] | None = None, **indexers: Indexer[K]) -> None:
        self.kind = kind
        self.keep = keep
        self.error: str | None = None
        self.synced = False
        self.resource_version = ""
        self.incomplete: tuple[str, ...] = ()
        self._objects: dict[NamespacedName, K] = {}
        self._undecoded: dict[NamespacedName, Undecodable] = {}
        self._indexers = indexers
        self._indexes: dict[str, dict[str, set[NamespacedName]]] = {name: {} for name in indexers}
        self._listeners: list[Listener[K]] = []
        self._changes_listeners: list[Callable[[Changes[K]], None]] = []
        self._state_listeners: list[Callable[[], None]] = []

    @property
    def ready(self) -> bool:
        """Whether what is read here is what the cluster has: listed once, and still being followed."""
        return self.synced and self.error is None

    @property
    def undecoded(self) -> tuple[Undecodable, ...]:
        """The objects that are there and are not as their kind should be; `get` and `all` do not have them."""
        return tuple(sorted(self._undecoded.values()))

    def get(self, key: NamespacedName) -> K | None:
        """The object of that key, or None."""
        return self._objects.get(key)

    def all(self) -> list[K]:
        """All objects, in no order that means anything."""
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[K]:
        """The objects that index `name` files under `value`, sorted by key; raises KeyError for an unknown index."""
        return [self._objects[key] for key in sorted(self._indexes[name].get(value, ()))]

    def __len__(self) -> int:
        return len(self._objects)

    def add_listener(self, listener: Listener[K]) -> None:
        """Call `listener(change, old, new)` after every change; what is here already comes first, as ADDED."""
        for obj in self.all():
            listener("ADDED", None, obj)
        self._listeners.append(listener)

    def add_changes_listener(self, listener: Callable[[Changes[K]], None]) -> None:
        """Call `listener(changes)` once for all that was taken in at once; they can be gone through again."""
        self._changes_listeners.append(listener)

    def add_state_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener()` after `synced`, `error`, `undecoded` or `incomplete` changed."""
        self._state_listeners.append(listener)

    async def until_synced(self) -> None:
        """Wait for the first complete list. It may never come: read `error` to learn why."""
        import asyncio

        if self.synced:
            return
        changed = asyncio.Event()
        self._state_listeners.append(changed.set)
        try:
            while not self.synced:
                changed.clear()
                await changed.wait()
        finally:
            self._state_listeners.remove(changed.set)

    def put(self, obj: K) -> None:
        """Take in an object that was added or changed."""
        change = self._put(obj if self.keep is None else self.keep(obj))
        readable = self._undecoded.pop(key_of(obj), None) is not None
        self.bookmark(obj.metadata.resource_version)
        self._notify([change])
        self._notify_state(changed=readable)

    def remove(self, obj: K) -> None:
        """Take in that an object is gone; `obj` is its last state, whose resourceVersion is that of its deletion."""
        self._remove(key_of(obj), obj.metadata.resource_version)

    def put_undecoded(self, bad: Undecodable) -> None:
        """Take in that an object is there and cannot be read; to listeners, what was known of it is gone."""
        key = NamespacedName(bad.namespace, bad.name)
        old = self._pop(key)
        known = self._undecoded.get(key)
        changed = known is None or known.problem != bad.problem
        self._undecoded[key] = bad
        self.bookmark(bad.resource_version)
        self._notify([] if old is None else [("DELETED", old, None)])
        self._notify_state(changed=changed)

    def remove_undecoded(self, bad: Undecodable) -> None:
        """Take in that an object which cannot be read is gone."""
        self._remove(NamespacedName(bad.namespace, bad.name), bad.resource_version)

    def _remove(self, key: NamespacedName, resource_version: str) -> None:
        old = self._pop(key)
        was_undecoded = self._undecoded.pop(key, None) is not None
        self.bookmark(resource_version)
        self._notify([] if old is None else [("DELETED", old, None)])
        self._notify_state(changed=was_undecoded)

    def replace(
        self,
        objects: Iterable[K],
        resource_version: str,
        undecoded: Iterable[Undecodable] = (),
        incomplete: tuple[str, ...] = (),
    ) -> None:
        """Take in a whole list: listeners hear only what differs, and only after all of it is in place.

        The objects are as `keep` leaves them. `incomplete` is why the server knows that there may be more than it
        lists.
        """
        changes = self._first(objects) if not self._objects else self._compared(objects)
        self.resource_version = resource_version
        before, self._undecoded = self._undecoded, {NamespacedName(bad.namespace, bad.name): bad for bad in undecoded}
        self._notify(changes)
        changed = before != self._undecoded or incomplete != self.incomplete or not self.synced
        self.synced, self.incomplete = True, incomplete
        self._notify_state(changed=changed)

    def _first(self, objects: Iterable[K]) -> Changes[K]:
        """Take in the list of an empty cache: nothing is kept of it but the objects."""
        for obj in objects:
            self._put(obj)
        return _Added(self._objects)

    def _compared(self, objects: Iterable[K]) -> Changes[K]:
        changes: list[tuple[Change, K | None, K | None]] = []
        seen: set[NamespacedName] = set()
        for obj in objects:
            key = key_of(obj)
            seen.add(key)
            old = self._objects.get(key)
            if old is None or not _same(old, obj):
                changes.append(self._put(obj))
        missing = [key for key in self._objects if key not in seen]
        changes.extend(("DELETED", self._pop(key), None) for key in missing)
        return changes

    def bookmark(self, resource_version: str) -> None:
        """Take in how far the watch is, without a change."""
        self.resource_version = resource_version or self.resource_version

    def fail(self, error: str) -> None:
        """Take in why the kind cannot be read. What was read before stays."""
        changed = self.error != error
        self.error = error
        self._notify_state(changed=changed)

    def recover(self, incomplete: tuple[str, ...] = ()) -> None:
        """Take in that the kind is being followed again, and why the server may not know all of it."""
        changed = self.error is not None or incomplete != self.incomplete
        self.error, self.incomplete = None, incomplete
        self._notify_state(changed=changed)

    def _notify_state(self, *, changed: bool) -> None:
        for listener in tuple(self._state_listeners) if changed else ():
            listener()

    def _put(self, obj: K) -> tuple[Change, K | None, K | None]:
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            self._unfile_all(key, old)
        self._objects[key] = obj
        for name, indexer in self._indexers.items():
            for value in indexer(obj):
                self._indexes[name].setdefault(value, set()).add(key)
        return ("ADDED" if old is None else "MODIFIED"), old, obj

    def _pop(self, key: NamespacedName) -> K | None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._unfile_all(key, old)
        return old

    def _unfile_all(self, key: NamespacedName, old: K) -> None:
        for name, indexer in self._indexers.items():
            for value in indexer(old):
                self._unfile(self._indexes[name], value, key)

    @staticmethod
    def _unfile(index: dict[str, set[NamespacedName]], value: str, key: NamespacedName) -> None:
        keys = index.get(value, set())
        keys.discard(key)
        if not keys:
            index.pop(value, None)

    def _notify(self, changes: Changes[K]) -> None:
        for told in tuple(self._changes_listeners) if changes else ():
            told(changes)
        for change, old, new in changes if self._listeners else ():
            for listener in tuple(self._listeners):
                listener(change, old, new)


class _Added(Generic[K]):
    """Every object as one that was added: a list of hundreds of thousands is not there a second time."""

    def __init__(self, objects: Mapping[NamespacedName, K]) -> None:
        self._objects = objects

    def __bool__(self) -> bool:
        return bool(self._objects)

    def __iter__(self) -> Iterator[tuple[Change, K | None, K | None]]:
        # What a listener takes in meanwhile is not of this list.
        return (("ADDED", None, obj) for obj in tuple(self._objects.values()))


def _same(old: Object, new: Object) -> bool:
    """Whether both are one version of one object: a namesake made since then has another uid."""
    if not new.metadata.resource_version:
        return old == new
    a, b = old.metadata, new.metadata
    return (a.uid, a.resource_version) == (b.uid, b.resource_version)
