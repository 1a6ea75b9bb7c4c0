"""Reads a list of objects in JSON that is too large to be decoded at once: item by item, within the same memory.

A file of some thousand pods has millions of values, which would take a gigabyte at once. Items are decoded one after
the other, and each loses `managedFields`, which are half of it and which nothing reads in a dump.
"""

from __future__ import annotations

from typing import Any

import msgspec

from runup.dump.documents import JSON
from runup.dump.dump_limits import MAX_OBJECTS_BYTES, WAY_OUT, decoding_bytes, size_of

# An object in etcd has at most 1.5 MiB.
MAX_ITEM_BYTES = 64 << 20
MAX_ITEMS = 500_000
# Objects at any depth; none of an item's is made before the items are counted.
_MAX_OBJECTS = 4_000_000
# Of the list's own metadata, which has a version and perhaps a token.
_MAX_METADATA = 16 << 10


class _Object(msgspec.Struct):
    """An object of which nothing is kept."""


class _Counted(msgspec.Struct):
    items: tuple[_Object, ...]


class _List(msgspec.Struct):
    items: tuple[msgspec.Raw, ...]
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


def read(data: bytes) -> JSON | None:
    """Returns the list, or None if `data` is no JSON list of objects. Raises ValueError if it takes too much."""
    if data.count(b"{") > _MAX_OBJECTS:
        return None
    try:
        if len(msgspec.json.decode(data, type=_Counted).items) > MAX_ITEMS:
            return None
        found = msgspec.json.decode(data, type=_List)
        metadata = msgspec.json.decode(found.metadata) if len(bytes(found.metadata)) <= _MAX_METADATA else {}
        items = _items(found.items)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    head = {"apiVersion": found.api_version, "kind": found.kind, "metadata": metadata}
    return {key: value for key, value in head.items() if value} | {"items": items}


def _items(raw: tuple[msgspec.Raw, ...]) -> list[Any]:
    left = MAX_OBJECTS_BYTES
    items: list[Any] = []
    for each in raw:
        if decoding_bytes(bytes(each)) > MAX_ITEM_BYTES:
            raise ValueError(f"item {len(items) + 1} is larger than any object of a cluster")
        item = msgspec.json.decode(each)
        if isinstance(metadata := item.get("metadata"), dict):
            metadata.pop("managedFields", None)
        left -= size_of(item)
        if left < 0:
            limit = f"{MAX_OBJECTS_BYTES >> 20} MiB"
            raise ValueError(f"{len(items)} of its {len(raw)} objects take {limit}, all that a dump may; {WAY_OUT}")
        items.append(item)
    return items
