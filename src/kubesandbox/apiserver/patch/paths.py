"""Helpers for sets of paths: the parent structs of paths, and the order in which they are listed.

In: a schema's root and paths. Out: more paths, or the same in order. Follows structured-merge-diff's fieldpath.
"""

from __future__ import annotations

from collections.abc import Collection

from kubesandbox.apiserver.patch.field_sets import child, is_declared
from kubesandbox.apiserver.patch.fields_v1 import FieldSet, Path
from kubesandbox.apiserver.schema import Structural


def with_structs(root: Structural, paths: FieldSet) -> set[Path]:
    """Returns the paths and those of their parent structs' fields (not of map keys and list items)."""
    result = set(paths)
    for path in paths:
        node: Structural | None = root
        for length, part in enumerate(path[:-1], 1):
            name = part.removeprefix("f:")
            if name != part and is_declared(node, name):
                result.add(path[:length])
            below = child(node, name) if name != part else node.items if node else None
            node = below
    return result


def in_order(paths: Collection[Path]) -> list[Path]:
    """Returns paths in structured-merge-diff's order: at each level those that end there, then deeper ones."""
    ends = sorted(path for path in paths if len(path) == 1)
    below: dict[str, set[Path]] = {}
    for path in paths:
        if len(path) > 1:
            below.setdefault(path[0], set()).add(path[1:])
    return [*ends, *((part, *rest) for part in sorted(below) for rest in in_order(below[part]))]
