"""Field sets: which fields of an object somebody owns, as paths, and in the form of `managedFields` (FieldsV1).

A path is a tuple of elements, each a string as FieldsV1 writes it: `f:name` for a member, `k:{...}` for the entry of a
map list by its keys, `v:...` for the entry of a set. What a path ends in is owned as a whole. The rules are those of
sigs.k8s.io/structured-merge-diff: lists of type set and map are entered, atomic ones are leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runup.sandbox.apiserver.schema import Structural

JSON = dict[str, Any]
Path = tuple[str, ...]
MISSING = object()

# What the server sets, and what identifies an object, belongs to nobody.
_NOBODYS = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "managedFields",
                "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "clusterName",
            )
        ),
    }
)  # fmt: skip


def owned_by_writer(tree: Structural | None, obj: JSON) -> set[Path]:
    """The leaves that somebody who writes the whole of `obj` would own."""
    return {path for path, _ in leaves(tree, obj)}


def leaves(tree: Structural | None, obj: JSON) -> Iterator[tuple[Path, Any]]:
    """Every leaf of an object with its value; entries of map lists and sets are leaves beside what is in them."""
    for path, value in _walk(tree, obj, ()):
        if not any(path[: len(each)] == each for each in _NOBODYS) and path:
            yield path, value


def _walk(node: Structural | None, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and not (node and node.map_type == "atomic") and (value or not path):
        for name, member in value.items():
            yield from _walk(node.field(name) if node else None, member, (*path, f"f:{name}"))
    elif isinstance(value, list) and value and node is not None and node.list_type in {"set", "map"}:
        for item in value:
            entry = (*path, element(node, item))
            yield entry, MISSING if node.list_type == "map" else item
            if node.list_type == "map":
                yield from _walk(node.items, item, entry)
    else:
        yield path, value


def element(node: Structural, item: Any) -> str:
    """The path element of a list's entry."""
    if node.list_type == "set":
        return f"v:{_compact(item)}"
    keys = {}
    for key in sorted(node.list_keys):
        if isinstance(item, dict) and key in item:
            keys[key] = item[key]
        elif node.items is not None and (child := node.items.field(key)) is not None and child.has_default:
            keys[key] = child.default
    return f"k:{_compact(keys)}"


def value_at(tree: Structural | None, obj: Any, path: Path) -> Any:
    """The value that a path leads to, or MISSING."""
    node, value = tree, obj
    for step in path:
        if step.startswith("f:"):
            if not isinstance(value, dict) or step[2:] not in value:
                return MISSING
            value, node = value[step[2:]], node.field(step[2:]) if node else None
            continue
        found = _entry(node, value, step)
        if found is None:
            return MISSING
        value, node = value[found], node.items if node else None
    return value


def remove_at(tree: Structural | None, obj: Any, path: Path) -> None:
    """Take away what a path leads to, and containers that become empty by it."""
    steps: list[tuple[Any, Any]] = []
    node, value = tree, obj
    for step in path:
        place: Any = step[2:] if step.startswith("f:") else _entry(node, value, step)
        if place is None or (isinstance(value, dict) and place not in value) or not isinstance(value, dict | list):
            return
        steps.append((value, place))
        value = value[place]
        node = (node.field(step[2:]) if step.startswith("f:") else node.items) if node else None
    container, place = steps.pop()
    del container[place]
    while steps and not container:
        container, place = steps.pop()
        if place == "metadata" or (isinstance(container, dict) and place in {"spec", "status"} and not steps):
            return
        del container[place]


def _entry(node: Structural | None, value: Any, step: str) -> int | None:
    if node is None or not isinstance(value, list):
        return None
    return next((index for index, item in enumerate(value) if element(node, item) == step), None)


def to_fields_v1(paths: set[Path]) -> JSON:
    """The nested form; `.` marks a container that is owned itself beside what is in it."""
    root: JSON = {}
    for path in sorted(paths):
        at = root
        for step in path:
            at = at.setdefault(step, {})
        at.setdefault(".", {})
    return _without_lone_dots(root)


def _without_lone_dots(node: JSON) -> JSON:
    if set(node) == {"."}:
        return {}
    return {key: _without_lone_dots(child) if key != "." else {} for key, child in node.items()}


def from_fields_v1(fields: JSON, prefix: Path = ()) -> set[Path]:
    """The paths of the nested form."""
    found: set[Path] = set()
    for key, child in fields.items():
        if key == ".":
            found.add(prefix)
        elif child:
            found |= from_fields_v1(child, (*prefix, key))
        else:
            found.add((*prefix, key))
    return found


def text_of(path: Path) -> str:
    """As an error names it: `.spec.containers[name="a"].image`."""
    parts = []
    for step in path:
        if step.startswith("f:"):
            parts.append(f".{step[2:]}")
        elif step.startswith("v:"):
            parts.append(f"[={step[2:]}]")
        else:
            keys = json.loads(step[2:])
            parts.append("[" + ",".join(f"{key}={_compact(value)}" for key, value in keys.items()) + "]")
    return "".join(parts)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
