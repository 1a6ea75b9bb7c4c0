"""Who set which field of an object: managedFields read for what we applied, and mended where another writer came first.

`covers` answers without reading the object whether all that a manifest says is still as it was applied: whoever changes
a field that we own takes it over, and it is missing from ours then. `adopted` hands us what earlier writers of release
manifests left behind, so that a field which leaves the manifest leaves the object (as client-go's csaupgrade does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

JSON = dict[str, Any]
MANAGER = "cluster-version-operator"
# The Go operator's updates, the installer's first writes.
EARLIER = frozenset({MANAGER, "cluster-bootstrap"})
# Of these a server keeps no record: they are how the object is found.
_IDENTITY = frozenset({"apiVersion", "kind"})
_OF_METADATA = frozenset({"name", "namespace"})


def covers(fields: Mapping[str, Any], obj: JSON) -> bool:
    """Whether `fields` (of our own entry) have everything that `obj` says."""
    for key, value in obj.items():
        if key in _IDENTITY:
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: member for name, member in value.items() if name not in _OF_METADATA}
            if not value:
                continue
        if not _owned(fields, key, value):
            return False
    return True


def is_earlier(manager: str, operation: str, subresource: str) -> bool:
    """Whether that entry of managedFields is of an earlier writer of manifests."""
    return operation == "Update" and not subresource and manager in EARLIER


def adopted(entries: Sequence[JSON]) -> list[JSON]:
    """`entries` with what earlier writers of manifests set as ours, as if we had applied it."""
    ours = next((entry for entry in entries if _is_ours(entry)), None)
    earlier = [entry for entry in entries if _is_earlier(entry)]
    if ours is None or not earlier:
        return list(entries)
    fields: JSON = dict(ours.get("fieldsV1") or {})
    for entry in earlier:
        fields = _union(fields, entry.get("fieldsV1") or {})
    kept = [entry for entry in entries if entry is not ours and entry not in earlier]
    return [{**ours, "fieldsV1": fields}, *kept]


def _is_ours(entry: JSON) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == (MANAGER, "Apply", "")


def _is_earlier(entry: JSON) -> bool:
    return is_earlier(str(entry.get("manager")), str(entry.get("operation")), str(entry.get("subresource") or ""))


def _union(one: JSON, other: JSON) -> JSON:
    found = dict(one)
    for key, value in other.items():
        found[key] = _union(found[key], value) if key in found else value
    return found


def _owned(fields: Mapping[str, Any], key: str, value: Any) -> bool:
    found = fields.get(f"f:{key}")
    if found is None:
        return False
    # A leaf: owned as a whole, whatever it holds.
    inside = {name: member for name, member in found.items() if name != "."}
    if not inside or value is None:
        return True
    if isinstance(value, dict):
        return all(_owned(inside, name, member) for name, member in value.items())
    if isinstance(value, list):
        return all(_item(inside, item) for item in value)
    return True


def _item(inside: Mapping[str, Any], item: Any) -> bool:
    """Whether an item of a list is owned: a set names values, a map names its items by some of their fields."""
    for name, fields in inside.items():
        if name.startswith("v:") and json.loads(name[2:]) == item:
            return True
        if name.startswith("k:") and isinstance(item, dict):
            keys = json.loads(name[2:])
            if all(item[key] == value for key, value in keys.items() if key in item):
                rest = {key: value for key, value in item.items() if key not in keys}
                if not [key for key in fields if key != "."] or all(_owned(fields, k, v) for k, v in rest.items()):
                    return True
    return False
