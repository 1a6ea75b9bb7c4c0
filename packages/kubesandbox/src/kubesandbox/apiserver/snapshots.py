"""Snapshots of the stored objects, for tests that share a server.

A snapshot refers to the stored entries, which do not change. Only the difference is written when it is restored:
objects that are back have a new resourceVersion, and watches see the difference as changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from kubesandbox.apiserver.custom.custom_kinds import CRDS
from kubesandbox.apiserver.store import Entry, Store

Snapshot = Mapping[tuple[str, str], Entry]
# Objects of the server and of nodes that change all the time by themselves.
_KEPT = frozenset({"leases.coordination.k8s.io"})


def take(store: Store) -> Snapshot:
    """Returns the current objects by resource and key."""
    return {(entry.resource, entry.key): entry for entry in store.all_entries()}


async def restore(store: Store, snapshot: Snapshot) -> int:
    """Makes the stored objects those of the snapshot; returns how many had to be written or deleted."""
    current = take(store)
    wanted = [head for head, entry in snapshot.items() if current.get(head) is not entry]
    surplus = [head for head in current if head not in snapshot and head[0] not in _KEPT]
    # Definitions last: the kinds of custom objects must be served while those change.
    writes = [_delete(store, current[head]) for head in sorted(surplus, key=lambda head: head[0] == CRDS)]
    writes += [_put(store, snapshot[head]) for head in wanted if _differs(snapshot[head], current.get(head))]
    await asyncio.gather(*writes)
    return len(writes)


def _differs(old: Entry, new: Entry | None) -> bool:
    """Reports whether an object differs in more than its resourceVersion."""
    if new is None:
        return True
    before, after = old.load(), new.load()
    for obj in (before, after):
        obj["metadata"].pop("resourceVersion", None)
    return old.resource not in _KEPT and before != after


async def _delete(store: Store, entry: Entry) -> None:
    await store.delete(entry.resource, entry.namespace, entry.name, entry.load(), expected=entry.rv, encode=_encode)


async def _put(store: Store, entry: Entry) -> None:
    await store.put(entry.resource, entry.namespace, entry.name, entry.load(), expected=None, encode=_encode)


def _encode(obj: dict[str, Any]) -> bytes:
    """Encodes a stored object; its keys are in the order that they were stored in."""
    return orjson.dumps(obj)
