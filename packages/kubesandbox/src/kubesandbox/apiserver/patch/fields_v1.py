"""The two notations of field sets: `fieldsV1` in managedFields, and paths in conflict messages.

In: paths, tuples of elements as fieldsV1 spells them (see `fields`). Out: the nested form and back, and texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

import orjson

from kubesandbox.apiserver.json_copy import copy_json

JSON = dict[str, Any]
FieldPath = tuple[str, ...]
FieldSet = frozenset[FieldPath]
# Objects that one client makes have the same fields. Larger sets are rare, and would be memory for nothing.
_LARGEST_CACHED = 64


def paths_to_trie(paths: Iterable[FieldPath]) -> JSON:
    """Returns the paths as a tree; a member `.` marks that the path itself is one of them."""
    root: JSON = {}
    for path in paths:
        branch = root
        for part in path:
            branch = branch.setdefault(part, {})
        branch["."] = {}
    return root


def to_fields_v1(paths: FieldSet) -> JSON:
    """Returns the nested form of paths for managedFields."""
    if len(paths) <= _LARGEST_CACHED:
        return cast("JSON", copy_json(_cached_fields_v1(paths)))
    return _order_members(paths_to_trie(paths))


@lru_cache(512)
def _cached_fields_v1(paths: FieldSet) -> JSON:
    return _order_members(paths_to_trie(paths))


def _order_members(trie: JSON) -> JSON:
    """Returns a tree of paths with its members in the order of FieldsV1."""
    # A leaf is written as {}; "." is needed only beside children.
    children = sorted((key for key in trie if key != "."), key=lambda key: ("fkvi".find(key[0]), key))
    if not children:
        return {}
    head: JSON = {".": {}} if "." in trie else {}
    return head | {key: _order_members(trie[key]) for key in children}


def from_fields_v1(fields: JSON) -> FieldSet:
    """Returns the paths of a `fieldsV1`."""
    paths: set[FieldPath] = set()
    _collect_paths(fields, (), paths)
    return frozenset(paths)


def _collect_paths(fields: JSON, path: FieldPath, paths: set[FieldPath]) -> None:
    """Adds to `paths` the paths in a FieldsV1 below `path`."""
    for key, below in fields.items():
        if key == ".":
            paths.add(path)
        elif below:
            _collect_paths(below, (*path, key), paths)
        else:
            paths.add((*path, key))


def show_path(path: FieldPath) -> str:
    """Returns a path as conflict messages print it: `.spec.containers[name="a"].image`."""
    return "".join(_show_element(part) for part in path)


def _show_element(part: str) -> str:
    """Returns an element of a path as messages print it.

    Its prefix is its type: `f:` a field, `v:` a value of a set, `i:` an index, `k:` the keys of an item as JSON
    (structured-merge-diff, `fieldpath/serialize-pe.go`).
    """
    kind, text = part[0], part[2:]
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    if kind == "i":
        return f"[{text}]"
    keys: JSON = orjson.loads(text)
    return "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"
