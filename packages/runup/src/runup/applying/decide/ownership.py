"""Field ownership by managedFields: checks that we still own what we applied, and takes over earlier writers' fields.

`covers` answers without reading the object whether every field of a manifest is as it was applied: a writer that
changes a field of ours takes it over, and it is then missing from our entry. `adopted` moves fields of earlier writers
of release manifests to us, so that a field removed from the manifest is removed from the object (as client-go's
csaupgrade does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runup.applying.decide.merging import union

JSON = dict[str, Any]
MANAGER = "cluster-version-operator"
# The managers of earlier writers: the Go operator (by Update instead of Apply) and the installer.
EARLIER = frozenset({MANAGER, "cluster-bootstrap"})
# The server records no owner for these fields, because they identify the object.
_IDENTITY = frozenset({"apiVersion", "kind"})
_OF_METADATA = frozenset({"name", "namespace"})


def owns_all_of(fields: Mapping[str, Any], obj: JSON) -> bool:
    """Returns whether `fields` (fieldsV1 of our own entry) contain every field of `obj`."""
    for key, value in obj.items():
        if key in _IDENTITY:
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: member for name, member in value.items() if name not in _OF_METADATA}
            if not value:
                continue
        if not _owns_value(fields, key, value):
            return False
    return True


def is_earlier(manager: str, operation: str, subresource: str) -> bool:
    """Returns whether that entry of managedFields is of an earlier writer of manifests."""
    return operation == "Update" and not subresource and manager in EARLIER


def adopted_entries(entries: Sequence[JSON]) -> list[JSON]:
    """Returns `entries` with the fields of earlier writers of manifests merged into ours, as if we had applied them."""
    own_entry = next((entry for entry in entries if _is_ours(entry)), None)
    earlier = [entry for entry in entries if _is_earlier(entry)]
    if own_entry is None or not earlier:
        return list(entries)
    fields: JSON = dict(own_entry.get("fieldsV1") or {})
    for entry in earlier:
        fields = union(fields, entry.get("fieldsV1") or {})
    remaining_entries = [entry for entry in entries if entry is not own_entry and entry not in earlier]
    return [{**own_entry, "fieldsV1": fields}, *remaining_entries]


def _is_ours(entry: JSON) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == (MANAGER, "Apply", "")


def _is_earlier(entry: JSON) -> bool:
    return is_earlier(str(entry.get("manager")), str(entry.get("operation")), str(entry.get("subresource") or ""))


def _owns_value(fields: Mapping[str, Any], key: str, value: Any) -> bool:
    """Returns whether `fields` (fieldsV1) own the member `key` with everything in `value`."""
    members = fields.get(f"f:{key}")
    if members is None:
        return False
    # A leaf of fieldsV1 is owned as a whole, whatever it holds.
    inside = {name: member for name, member in members.items() if name != "."}
    if not inside or value is None:
        return True
    if isinstance(value, dict):
        return all(_owns_value(inside, name, member) for name, member in value.items())
    if isinstance(value, list):
        return all(_item(inside, item) for item in value)
    return True


def _item(inside: Mapping[str, Any], item: Any) -> bool:
    """Returns whether an item of a list is owned: by its value (`v:`, list of type set) or its keys (`k:`, type map).

    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
    """
    for name, fields in inside.items():
        if name.startswith("v:") and json.loads(name[2:]) == item:
            return True
        if name.startswith("k:") and isinstance(item, dict):
            keys = json.loads(name[2:])
            if all(item[key] == value for key, value in keys.items() if key in item):
                other_members = {key: value for key, value in item.items() if key not in keys}
                if not [key for key in fields if key != "."] or all(
                    _owns_value(fields, k, v) for k, v in other_members.items()
                ):
                    return True
    return False
