"""Decides from managedFields who it is that keeps changing an object of a release."""

from __future__ import annotations

import json
from typing import Any

from runup.api.owned_v1 import ManagedFields, OwnedMeta
from runup.applying.decide.merge_rules import Kind, concerns_rule, is_foreign
from runup.applying.decide.merging import JSON, only_others
from runup.applying.decide.ownership import MANAGER


def contesting_writer(kind: Kind, metadata: OwnedMeta, manifest: JSON) -> str:
    """Returns the manager that last wrote what `manifest` says otherwise, or what the kind's rules take away.

    It is that of the newest write by others if none is known to be such a write, and "" if nobody else wrote.
    """
    ours = next(
        (each.fields_v1 for each in metadata.managed_fields if (each.manager, each.operation) == (MANAGER, "Apply")), {}
    )
    others = [each for each in metadata.managed_fields if is_foreign(each)]

    def order(entry: ManagedFields) -> tuple[bool, str]:
        left = only_others(entry.fields_v1, ours)
        return concerns_rule(kind, left) or _is_said(left, manifest), entry.time

    return max(others, key=order).manager if others else ""


def _is_said(fields: JSON, value: Any) -> bool:
    """Returns whether `value` says anything about one of `fields` (fieldsV1)."""
    inside = {name: rest for name, rest in fields.items() if name != "."}
    if isinstance(value, dict):
        said = ((rest, value[name[2:]]) for name, rest in inside.items() if name[:2] == "f:" and name[2:] in value)
        return any(not rest or _is_said(rest, each) for rest, each in said)
    if isinstance(value, list):
        items = ((rest, json.loads(name[2:]), each) for name, rest in inside.items() for each in value)
        return any(_is_item(keys, each) and (not rest or _is_said(rest, each)) for rest, keys, each in items)
    return False


def _is_item(keys: Any, item: Any) -> bool:
    """Returns whether `item` of a list is the one of these `keys` (`k:`), or of this value (`v:`)."""
    if isinstance(keys, dict) and isinstance(item, dict):
        return all(item.get(key) == value for key, value in keys.items() if key in item)
    return bool(keys == item)
