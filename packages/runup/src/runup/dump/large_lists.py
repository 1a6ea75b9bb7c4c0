"""Reads a list of objects in JSON that is too large to be decoded at once: item by item, within the same memory.

A file of some thousand pods has millions of values, which would take a gigabyte at once. Items are decoded one after
the other, and each loses the fields that its managers own, which are half of it: of these, checks read only who owns
the annotation of the last applied manifest.

A reader that needs all of them, but one at a time, asks for packed items: their text, a fifth of the decoded object,
next to the name and the namespace. `unpacked` returns the object.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from runup.api.clusterversion_json import mapping, mappings
from runup.api.platform_v1 import LAST_APPLIED
from runup.dump.documents import JSON
from runup.dump.dump_limits import MAX_OBJECTS_BYTES, WAY_OUT, decoding_bytes, size_of

# An object in etcd has at most 1.5 MiB.
MAX_ITEM_BYTES = 64 << 20
MAX_ITEMS = 500_000
# Objects at any depth; none of an item's is made before the items are counted.
_MAX_OBJECTS = 4_000_000
# Of the list's own metadata, which has a version and perhaps a token.
_MAX_METADATA = 16 << 10


# The member of a packed item that has its text.
PACKED = "(packed)"
_OWNED_ANNOTATION = f"f:{LAST_APPLIED}"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata


class _Object(msgspec.Struct):
    """An object whose fields are all skipped."""


class _Counted(msgspec.Struct):
    items: tuple[_Object, ...]


class _List(msgspec.Struct):
    items: tuple[msgspec.Raw, ...]
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


def read(data: bytes, *, packs: bool = False) -> JSON | None:
    """Returns the list, or None if `data` is no JSON list of objects. Raises ValueError if it takes too much.

    With `packs` its items are packed.
    """
    if data.count(b"{") > _MAX_OBJECTS:
        return None
    try:
        if len(msgspec.json.decode(data, type=_Counted).items) > MAX_ITEMS:
            return None
        item_list = msgspec.json.decode(data, type=_List)
        metadata = msgspec.json.decode(item_list.metadata) if len(bytes(item_list.metadata)) <= _MAX_METADATA else {}
        remaining_bytes = MAX_OBJECTS_BYTES
        items: list[Any] = []
        for raw_item in item_list.items:
            if decoding_bytes(bytes(raw_item)) > MAX_ITEM_BYTES:
                raise ValueError(f"item {len(items) + 1} is larger than any object of a cluster")
            # All of it, also if it is packed: a decoder that skips fields takes bytes in them that are no UTF-8, and
            # numbers that are out of range. An item without a name stays decoded, and is no object.
            item = msgspec.json.decode(raw_item)
            if packs:
                with suppress(msgspec.ValidationError):
                    names = msgspec.structs.asdict(msgspec.convert(item, _Head).metadata)
                    item = {"metadata": {key: name for key, name in names.items() if name}, PACKED: bytes(raw_item)}
            for entry in mappings(mapping(item, "metadata"), "managedFields"):
                if _OWNED_ANNOTATION not in mapping(mapping(mapping(entry, "fieldsV1"), "f:metadata"), "f:annotations"):
                    entry.pop("fieldsV1", None)
            remaining_bytes -= size_of(item)
            if remaining_bytes < 0:
                count = f"{len(items)} of its {len(item_list.items)} objects"
                raise ValueError(f"{count} take {MAX_OBJECTS_BYTES >> 20} MiB, all that a dump may; {WAY_OUT}")
            items.append(item)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    head = {"apiVersion": item_list.api_version, "kind": item_list.kind, "metadata": metadata}
    return {key: value for key, value in head.items() if value} | {"items": items}


def packed(obj: JSON) -> JSON:
    """Returns an object with its apiVersion, kind, name and namespace, and all of it as text."""
    names = {key: value for key, value in obj["metadata"].items() if key in ("name", "namespace")}
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**head, "metadata": names, PACKED: msgspec.json.encode(obj)}


def unpacked(obj: JSON) -> JSON:
    """Returns the object of a packed item, or any other object as it is."""
    text = obj.get(PACKED)
    if text is None:
        return obj
    head = {key: value for key, value in obj.items() if key not in (PACKED, "metadata")}
    # What a reader made of the version counts (`normalize.replace_old_version`).
    whole: JSON = {**msgspec.json.decode(text), **head}
    # Whoever reads dumps has taken these from its objects (`normalize`).
    whole["metadata"] = {k: v for k, v in whole["metadata"].items() if k not in ("resourceVersion", "selfLink")}
    return whole
