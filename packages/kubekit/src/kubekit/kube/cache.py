"""The objects of one kind in a cluster, kept in memory by a watch. Reading neither waits nor sends requests.

A `Reflector` writes; controllers and checks read. An unread kind is not an empty kind: readers check `ready` (or
`synced` and `error`) before they trust an empty answer, and `undecoded` and `incomplete` before they conclude that an
object does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

from msgspec import structs

from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import NamespacedName, Object, key_of

K = TypeVar("K", bound=Object)
Change = Literal["ADDED", "MODIFIED", "DELETED"]
Indexer = Callable[[K], Iterable[str]]
Listener = Callable[[Change, K | None, K | None], None]
Changes = Iterable[tuple[Change, K | None, K | None]]


class Cache(Generic[K]):
    """The objects of one kind by key, and by any number of indexes.

    An index is a function from an object to the values under which it is found: `Cache(Pod, node=lambda pod:
    [pod.spec.node_name])`. `keep` reduces an object to the part that is stored.
    """

    def __init__(self, kind: type[K], *, keep: Callable[[K], K] | None = None, **indexers: Indexer[K]) -> None:
        self.kind = kind
        self.keep = keep
        self.error: str | None = None
        self.synced = False
        self.resource_version = ""
        self.incomplete: tuple[str, ...] = ()
        # By namespace and name: a key for each of hundreds of thousands of objects would take a fifth of their memory.
        self._objects: dict[str, dict[str, K]] = {}
        self._undecoded: dict[NamespacedName, Undecodable] = {}
        self._indexers = indexers
        self._indexes: dict[str, dict[str, set[NamespacedName]]] = {name: {} for name in indexers}
        self._listeners: list[Listener[K]] = []
        self._changes_listeners: list[Callable[[Changes[K]], None]] = []
        self._state_listeners: list[Callable[[], None]] = []

    @property
    def ready(self) -> bool:
        """Reports whether the cache equals the cluster: listed once, and still being watched."""
        return self.synced and self.error is None

    @property
    def undecoded(self) -> tuple[Undecodable, ...]:
        """The objects that exist but could not be decoded; `get` and `all` do not return them."""
        return tuple(sorted(self._undecoded.values()))

    def get(self, key: NamespacedName) -> K | None:
        """Returns the object with that key, or None."""
        return self._objects.get(key.namespace, {}).get(key.name)

    def all(self) -> list[K]:
        """Returns all objects, in no particular order."""
        return _flat(self._objects)

    def by_index(self, name: str, value: str) -> list[K]:
        """Returns what index `name` has under `value`, sorted by key. Raises KeyError for an unknown index."""
        keys = sorted(self._indexes[name].get(value, ()))
        return [self._objects[key.namespace][key.name] for key in keys]

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def add_listener(self, listener: Listener[K]) -> None:
        """Calls `listener(change, old, new)` after every change; existing objects come first, as ADDED."""
        for obj in self.all():
            listener("ADDED", None, obj)
        self._listeners.append(listener)

    def add_changes_listener(self, listener: Callable[[Changes[K]], None]) -> None:
        """Calls `listener(changes)` once for all changes that were applied together; they can be iterated again."""
        self._changes_listeners.append(listener)

    def add_state_listener(self, listener: Callable[[], None]) -> None:
        """Calls `listener()` after `synced`, `error`, `undecoded` or `incomplete` changed."""
        self._state_listeners.append(listener)

    async def until_synced(self) -> None:
        """Waits for the first complete list. It may never come: `error` then has the reason."""
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
        """Stores an object that was added or changed."""
        change = self._store(obj if self.keep is None else self.keep(obj))
        was_undecoded = self._undecoded.pop(key_of(obj), None) is not None
        self.bookmark(obj.metadata.resource_version)
        self._notify_changes([change])
        self._notify_state(changed=was_undecoded)

    def remove(self, obj: K) -> None:
        """Removes a deleted object; `obj` is its last state, whose resourceVersion is that of its deletion."""
        self._remove_key(key_of(obj), obj.metadata.resource_version)

    def put_undecoded(self, undecodable: Undecodable) -> None:
        """Records that an object exists but cannot be decoded; for listeners, its earlier state is deleted."""
        key = NamespacedName(undecodable.namespace, undecodable.name)
        old = self._take_out(key)
        undecoded = self._undecoded.get(key)
        changed = undecoded is None or undecoded.problem != undecodable.problem
        self._undecoded[key] = undecodable
        self.bookmark(undecodable.resource_version)
        self._notify_changes([] if old is None else [("DELETED", old, None)])
        self._notify_state(changed=changed)

    def remove_undecoded(self, undecodable: Undecodable) -> None:
        """Removes the record of an object that could not be decoded and is deleted."""
        self._remove_key(NamespacedName(undecodable.namespace, undecodable.name), undecodable.resource_version)

    def _remove_key(self, key: NamespacedName, resource_version: str) -> None:
        """Removes an object at `resource_version`, and notifies the listeners."""
        old = self._take_out(key)
        was_undecoded = self._undecoded.pop(key, None) is not None
        self.bookmark(resource_version)
        self._notify_changes([] if old is None else [("DELETED", old, None)])
        self._notify_state(changed=was_undecoded)

    def replace(
        self,
        objects: Iterable[K],
        resource_version: str,
        undecoded: Iterable[Undecodable] = (),
        incomplete: tuple[str, ...] = (),
    ) -> None:
        """Replaces all objects by a new list; listeners get only the differences, after the list is stored.

        The objects have been reduced by `keep`. `incomplete` has the reasons why the server says that there may be more
        objects than it lists.
        """
        changes: Changes[K]
        if self._objects:
            differences: list[tuple[Change, K | None, K | None]] = []
            listed_keys: set[NamespacedName] = set()
            for obj in objects:
                key = key_of(obj)
                listed_keys.add(key)
                old = self.get(key)
                # Unchanged objects of a new list are not announced, so that a relist causes no work.
                if old is None or not _is_unchanged(old, obj):
                    differences.append(self._store(obj))
            missing = [key for key in map(key_of, self.all()) if key not in listed_keys]
            differences.extend(("DELETED", self._take_out(key), None) for key in missing)
            changes = differences
        else:
            for obj in objects:
                self._store(obj)
            changes = _Added(self._objects)
        self.resource_version = resource_version
        before, self._undecoded = (
            self._undecoded,
            {NamespacedName(undecodable.namespace, undecodable.name): undecodable for undecodable in undecoded},
        )
        self._notify_changes(changes)
        changed = before != self._undecoded or incomplete != self.incomplete or not self.synced
        self.synced, self.incomplete = True, incomplete
        self._notify_state(changed=changed)

    def bookmark(self, resource_version: str) -> None:
        """Records the resourceVersion that the watch has reached, without a change."""
        self.resource_version = resource_version or self.resource_version

    def fail(self, error: str) -> None:
        """Records why the kind cannot be read. The objects read before are kept."""
        changed = self.error != error
        self.error = error
        self._notify_state(changed=changed)

    def recover(self, incomplete: tuple[str, ...] = ()) -> None:
        """Records that the kind is being watched again, and why the server may not know all of it."""
        changed = self.error is not None or incomplete != self.incomplete
        self.error, self.incomplete = None, incomplete
        self._notify_state(changed=changed)

    def _notify_state(self, *, changed: bool) -> None:
        for listener in tuple(self._state_listeners) if changed else ():
            listener()

    def _store(self, obj: K) -> tuple[Change, K | None, K | None]:
        """Stores an object and its index entries; returns the change: kind, old object (or None), new one."""
        metadata = obj.metadata
        objects = self._objects.get(metadata.namespace)
        if objects is None:
            objects = self._objects[metadata.namespace] = {}
        old = objects.get(metadata.name)
        objects[metadata.name] = obj
        if self._indexers:
            key = key_of(obj)
            if old is not None:
                self._remove_from_indexes(key, old)
            for name, indexer in self._indexers.items():
                for value in indexer(obj):
                    self._indexes[name].setdefault(value, set()).add(key)
        return ("ADDED" if old is None else "MODIFIED"), old, obj

    def _take_out(self, key: NamespacedName) -> K | None:
        objects = self._objects.get(key.namespace, {})
        old = objects.pop(key.name, None)
        if old is not None:
            self._remove_from_indexes(key, old)
            if not objects:
                del self._objects[key.namespace]
        return old

    def _remove_from_indexes(self, key: NamespacedName, old: K) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(old):
                keys = index.get(value, set())
                keys.discard(key)
                if not keys:
                    index.pop(value, None)

    def _notify_changes(self, changes: Changes[K]) -> None:
        """Calls the listeners of batches once, and those of single changes for each."""
        for changes_listener in tuple(self._changes_listeners) if changes else ():
            changes_listener(changes)
        for change, old, new in changes if self._listeners else ():
            for listener in tuple(self._listeners):
                listener(change, old, new)


class _Added(Generic[K]):
    """An iterable that yields every object as ADDED, without a list of changes for possibly hundreds of thousands."""

    def __init__(self, objects: Mapping[str, Mapping[str, K]]) -> None:
        self._objects = objects

    def __bool__(self) -> bool:
        return bool(self._objects)

    def __iter__(self) -> Iterator[tuple[Change, K | None, K | None]]:
        # A copy, so that objects which a listener adds meanwhile are not included.
        return (("ADDED", None, obj) for obj in _flat(self._objects))


def differs_beyond_version(old: Object | None, new: Object | None) -> bool:
    """Returns whether two states of an object differ in more than their resource versions, or one of them is None."""
    return old is None or new is None or _versionless(old) != _versionless(new)


def _versionless(obj: Object) -> Object:
    # Some are kept without it.
    metadata = obj.metadata
    return (
        structs.replace(obj, metadata=structs.replace(metadata, resource_version=""))
        if metadata.resource_version
        else obj
    )


def _flat(objects: Mapping[str, Mapping[str, K]]) -> list[K]:
    return [obj for in_namespace in objects.values() for obj in in_namespace.values()]


def _is_unchanged(old: Object, new: Object) -> bool:
    """Returns whether both are one version of one object; an object recreated under the same name has another uid.

    After a restore of etcd the same version of the same object may have another content. A list of another type than
    that of changes has other fields, so there only the version can be compared.
    """
    if not new.metadata.resource_version or type(old) is type(new):
        return old == new
    a, b = old.metadata, new.metadata
    return (a.uid, a.resource_version) == (b.uid, b.resource_version)
