"""Finds other writers of fields that the operator manages, and words the notices about them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubekit.lang.text import join_within
from runup.api.owned_v1 import ManagedFields, OwnedMeta
from runup.applying.decide.merge_rules import Kind, concerns_rule, is_foreign
from runup.applying.decide.merging import JSON, MANAGER, only_others
from runup.applying.decide.task import Task

# Bytes of a message: as many as an event keeps.
MAX_MESSAGE_BYTES = 1024
CONTESTED, DROPPED = "ReleaseObjectContested", "ReleaseFieldsDropped"


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about the object of `task`, as an event has it."""

    task: Task
    reason: str
    message: str


def contested_notice(task: Task, writer: str) -> Notice:
    """Returns the notice that an object is changed or deleted each time it is put back.

    `writer` is the field manager that changed it last, "" if that is not known.
    """
    changed = f'changed by "{writer}"' if writer else "changed or deleted"
    text = (
        f"{task} is {changed} as often as it is put back, so it is put back ever later, at most once a minute. "
        "End what changes it, or take the object away from the operator: spec.overrides"
    )
    return Notice(task, CONTESTED, text)


def dropped_notice(task: Task, warnings: Sequence[str]) -> Notice:
    """Returns the notice that the API server does not keep all that a manifest says, in its own `warnings`."""
    head = f"{task} is not as the release has it, because this API server does not know or keep all of it"
    return Notice(task, DROPPED, join_within([f"{head}: {warnings[0]}", *warnings[1:]], "; ", MAX_MESSAGE_BYTES))


def contesting_writer(kind: Kind, metadata: OwnedMeta, manifest: JSON) -> str:
    """Returns the field manager of the last write that contradicts `manifest` or that the kind's rules take away.

    It is that of the newest write by others if none is known to be such a write, and "" if there is no write by others.
    """
    our_fields = next(
        (
            manager_entry.fields_v1
            for manager_entry in metadata.managed_fields
            if (manager_entry.manager, manager_entry.operation) == (MANAGER, "Apply")
        ),
        {},
    )
    other_entries = [manager_entry for manager_entry in metadata.managed_fields if is_foreign(manager_entry)]

    def order(entry: ManagedFields) -> tuple[bool, str]:
        remaining_fields = only_others(entry.fields_v1, our_fields)
        return concerns_rule(kind, remaining_fields) or _is_said(remaining_fields, manifest), entry.time

    return max(other_entries, key=order).manager if other_entries else ""


def _is_said(fields: JSON, value: Any) -> bool:
    """Returns whether `value` says anything about one of `fields` (fieldsV1)."""
    inside = {name: inner for name, inner in fields.items() if name != "."}
    if isinstance(value, dict):
        members = ((inner, value[name[2:]]) for name, inner in inside.items() if name[:2] == "f:" and name[2:] in value)
        return any(not inner or _is_said(inner, inner_value) for inner, inner_value in members)
    if isinstance(value, list):
        items = ((inner, json.loads(name[2:]), item) for name, inner in inside.items() for item in value)
        return any(_is_item(keys, item) and (not inner or _is_said(inner, item)) for inner, keys, item in items)
    return False


def _is_item(keys: Any, item: Any) -> bool:
    """Returns whether `item` of a list is the one of these `keys` (`k:`), or of this value (`v:`)."""
    if isinstance(keys, dict) and isinstance(item, dict):
        return all(item.get(key) == value for key, value in keys.items() if key in item)
    return bool(keys == item)
