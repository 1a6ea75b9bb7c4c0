"""Detection of duplicates in lists of unique entries: `x-kubernetes-list-type` set and map.

In: a compiled schema and an object. Out: a Duplicate fault for each entry that occurs again. Server-side apply relies
on this, since it finds an entry by its key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.schema.field_errors import FieldError, duplicate
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.schema.validate import MISSING, correlated_items, key_fields


def duplicate_faults(node: SchemaNode, value: Any, old: Any = MISSING) -> list[FieldError]:
    """Returns a fault for each duplicate in a set or list-map of `value`, deepest last; unchanged parts pass."""
    return list(_duplicates_below(node, value, old, ""))


def _duplicates_below(node: SchemaNode, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    """Yields the duplicates in all lists of a value; parts that are as in `old` pass."""
    if old is not MISSING and old == value:
        return
    if isinstance(value, list):
        yield from _repeated_items(node, value, path)
        if node.items is not None:
            for index, (item, former) in enumerate(correlated_items(node, value, old)):
                yield from _duplicates_below(node.items, item, former, f"{path}[{index}]")
    elif isinstance(value, dict):
        correlated = old if isinstance(old, dict) else {}
        for name, member in value.items():
            child = node.member(name)
            if child is not None:
                former = correlated.get(name, MISSING)
                yield from _duplicates_below(child, member, former, _member_path(node, path, name))


def _member_path(node: SchemaNode, path: str, name: str) -> str:
    """Returns the path of member `name`: a property is written with a dot, a map's key in brackets."""
    if not path:
        return name
    return f"{path}.{name}" if name in node.properties else f"{path}[{name}]"


def _repeated_items(node: SchemaNode, value: list[Any], path: str) -> Iterator[FieldError]:
    """Yields a fault for each item that a set or list-map has twice."""
    if node.list_type == "atomic":
        return
    occurrences: Counter[str] = Counter()
    for index, item in enumerate(value):
        identity = key_fields(node, item) if node.list_type == "map" else item
        text = json.dumps(identity, sort_keys=True)
        occurrences[text] += 1
        # Reported once, at the second occurrence, however often the entry occurs.
        if occurrences[text] == 2:
            yield duplicate(f"{path}[{index}]", identity)
