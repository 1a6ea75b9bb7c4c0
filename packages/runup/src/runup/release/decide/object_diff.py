"""Compares two objects and returns the changed fields as paths: `spec.template.spec.containers[etcd].image`.

Lists whose items all have a name are compared by it, since the order of containers has no meaning; others by position.
Data holds full values; text shows only short ones, and never a Secret's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

JSON = dict[str, Any]
_SHOWN = 60
# Of a digest only the first characters are shown, which people compare.
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}\Z")
_PIN = len("@sha256:") + 12
_NAMED_BY = ("name", "type", "key", "mountPath", "containerPort")
_SECRET_FIELDS = ("data", "stringData")
# Fields that the server writes, not the client that applies.
_SERVER_SIDE = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"})


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one field; `before` or `after` is ABSENT if it does not exist."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if isinstance(self.before, list) and isinstance(self.after, list):
            removed = [f"- {value_text(item)}" for item in self.before if item not in self.after]
            added = [f"+ {value_text(item)}" for item in self.after if item not in self.before]
            return f"{self.path}: {' '.join([*removed, *added]) or 'in another order'}"
        return f"{self.path}: {value_text(self.before)} -> {value_text(self.after)}"


def changes(before: JSON, after: JSON) -> tuple[Change, ...]:
    """Returns the differences by field name; the values of a Secret are withheld."""
    differences = _changes_between("", _without_server_fields(before), _without_server_fields(after))
    if after.get("kind", before.get("kind")) != "Secret":
        return tuple(differences)
    return tuple(
        Change(
            change.path, *("(withheld)" if value is not ABSENT else ABSENT for value in (change.before, change.after))
        )
        if change.path.partition(".")[0] in _SECRET_FIELDS
        else change
        for change in differences
    )


def value_text(value: Any) -> str:
    """Returns a value as a short text; a longer one is described by its size."""
    if value is ABSENT:
        return "(none)"
    if isinstance(value, str) and (pinned := _PINNED.search(value)):
        value = f"...{value[pinned.start() : pinned.start() + _PIN]}"
    text = value if isinstance(value, str) and value else msgspec.json.encode(value, order="sorted").decode()
    if len(text) <= _SHOWN and "\n" not in text:
        return text
    if isinstance(value, dict | list):
        return f"{len(value)} {'fields' if isinstance(value, dict) else 'items'}"
    return f"text of {len(text)} characters"


def _without_server_fields(live_object: JSON) -> JSON:
    """Returns the object without status and without the metadata that the API server writes."""
    kept_fields = {key: value for key, value in live_object.items() if key != "status"}
    metadata = live_object.get("metadata")
    if isinstance(metadata, dict):
        kept_fields["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVER_SIDE}
    return kept_fields


def _changes_between(path: str, before: Any, after: Any) -> Iterator[Change]:
    """Yields the changed values below `path`, in the order of their keys."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            field = f"[{key}]" if "." in str(key) or "/" in str(key) else f".{key}" if path else key
            yield from _changes_between(f"{path}{field}", before.get(key, ABSENT), after.get(key, ABSENT))
        return
    if isinstance(before, list) and isinstance(after, list):
        yield from _between_lists(path, before, after)
        return
    # The types are compared too, because True == 1 in Python, but not in JSON.
    if type(before) is not type(after) or before != after:
        yield Change(path, before, after)


def _between_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    """Yields the changes between two lists: by the items' names if they have them, else by their places."""
    key = next((name for name in _NAMED_BY if _identifies(name, before) and _identifies(name, after)), "")
    if key and before and after:
        was, is_ = ({str(item[key]): item for item in items} for items in (before, after))
        for name in dict.fromkeys((*was, *is_)):
            yield from _changes_between(f"{path}[{name}]", was.get(name, ABSENT), is_.get(name, ABSENT))
        return
    if all(not isinstance(item, dict | list) for item in (*before, *after)):
        if before != after:
            yield Change(path, before, after)
        return
    for number in range(max(len(before), len(after))):
        old, new = (items[number] if number < len(items) else ABSENT for items in (before, after))
        yield from _changes_between(f"{path}[{number}]", old, new)


def _identifies(key: str, items: list[Any]) -> bool:
    names = [str(item[key]) for item in items if isinstance(item, dict) and key in item]
    return len(names) == len(items) == len(set(names))
