"""Tells who owned a field before a release was applied, from `metadata.managedFields`.

Segments of a path are those of FieldsV1: `f:NAME` for a field, `k:{...}` for an item of a list. A list that is owned as
a whole ends a path: its owner owns all below it
(https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runup.applying.decide.merging import EARLIER, MANAGER

JSON = dict[str, Any]
Path = tuple[str, ...]
# Manager, and the tree of its fields.
Owners = Sequence[tuple[str, Mapping[str, Any]]]
# Writers of releases, and what the API server itself notes for objects without a record.
_OF_RELEASES = EARLIER | {MANAGER, "before-first-apply"}


def item(name: str, value: str | int) -> str:
    """Returns the segment of the list item in which the field `name` has that value."""
    return "k:" + json.dumps({name: value}, separators=(",", ":"))


def item_shown(segment: str) -> str:
    """Returns the segment of a list item as people write it."""
    ((name, value),) = json.loads(segment.removeprefix("k:")).items()
    return f"[{name}={value}]"


def owners_of(obj: JSON) -> Owners:
    """Returns who owns which fields of the object, without those of its status."""
    entries = (obj.get("metadata") or {}).get("managedFields")
    return [
        (str(entry.get("manager") or ""), fields)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and not entry.get("subresource")
        and isinstance(fields := entry.get("fieldsV1"), dict)
    ]


def others(owners: Owners, path: Path) -> tuple[str, ...]:
    """Returns the managers that owned the field, if no writer of releases was among them."""
    names = [name for name, fields in owners if _owns_field(fields, path)]
    return () if any(name in _OF_RELEASES for name in names) else tuple(dict.fromkeys(sorted(names)))


def _owns_field(fields: Mapping[str, Any], path: Path) -> bool:
    """Reports whether a tree of managedFields (fieldsV1) has the path."""
    at: Any = fields
    for segment in path:
        if not isinstance(at, Mapping):
            return False
        member = _member_of_fields(at, segment)
        if member is None:
            # An empty tree owns all that is below it.
            return not at
        at = member
    return True


def _member_of_fields(fields: Mapping[str, Any], segment: str) -> Any:
    """Returns the subtree of one path segment, None if there is none."""
    if segment in fields or not segment.startswith("k:"):
        return fields.get(segment)
    keys = json.loads(segment.removeprefix("k:")).items()
    for key, below in fields.items():
        # Items may be told apart by more than one field: a port by its number and protocol.
        if key.startswith("k:") and keys <= _item_keys(key).items():
            return below
    return None


def _item_keys(segment: str) -> Mapping[str, Any]:
    """Returns the fields that identify an item (`k:{...}`); none if the text is not JSON."""
    try:
        keys = json.loads(segment.removeprefix("k:"))
    except (ValueError, RecursionError):
        return {}
    return keys if isinstance(keys, dict) else {}
