"""Field sets: the fields of an object, the differences between two states, merging and removal by paths.

A path is a tuple of elements as fieldsV1 spells them: `f:name` a member, `k:{"type":"Ready"}` an item of a list-map,
`v:"x"` a member of a set. A `FieldSet` is a set of such paths. The rules are those of structured-merge-diff
(sigs.k8s.io/structured-merge-diff, typed/{tofieldset,compare,merge,remove}.go): without a declaration in the schema
lists are atomic and maps are granular.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

import orjson

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.schema.structural import RESOURCE_FIELDS, SchemaNode

JSON = dict[str, Any]
_ABSENT: Any = object()
FieldPath = tuple[str, ...]
FieldSet = frozenset[FieldPath]


@cache
def metadata_node() -> SchemaNode:
    """Returns the schema of ObjectMeta, which no custom resource's schema describes."""
    text = SchemaNode(type="string")
    texts = SchemaNode(type="object", additional=text)
    owner = SchemaNode(
        type="object",
        properties=dict.fromkeys(("apiVersion", "kind", "name", "uid"), text)
        | {name: SchemaNode(type="boolean") for name in ("controller", "blockOwnerDeletion")},
        map_type="atomic",
    )
    texts_of_fields = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp",
                       "deletionTimestamp")  # fmt: skip
    return SchemaNode(
        type="object",
        properties=dict.fromkeys(texts_of_fields, text)
        | dict.fromkeys(("generation", "deletionGracePeriodSeconds"), SchemaNode(type="integer"))
        | {
            "labels": texts,
            "annotations": texts,
            "finalizers": SchemaNode(type="array", items=text, list_type="set"),
            "ownerReferences": SchemaNode(type="array", items=owner, list_type="map", list_keys=("uid",)),
            "managedFields": SchemaNode(type="array"),
        },
    )


def typed_root(tree: SchemaNode | None) -> SchemaNode:
    """Returns the schema's root with ObjectMeta in it; without a schema, a root whose other fields are untyped."""
    properties = dict(tree.properties) if tree else {}
    text = SchemaNode(type="string")
    properties |= {"apiVersion": text, "kind": text, "metadata": metadata_node()}
    open_ = tree is not None and tree.preserve_unknown
    additional = tree.additional if tree else None
    return SchemaNode(type="object", properties=properties, additional=additional, preserve_unknown=open_)


def child_node(node: SchemaNode | None, name: str) -> SchemaNode | None:
    """Returns the node of a member, or None if the schema does not describe it."""
    if node is None:
        return None
    declared = node.member(name)
    if node.embedded and name in RESOURCE_FIELDS and not (declared and declared.properties):
        return metadata_node() if name == "metadata" else SchemaNode(type="string")
    return declared


def is_declared(node: SchemaNode | None, name: str) -> bool:
    """Returns whether a member is a field of a struct, rather than a key of a map."""
    return node is not None and (name in node.properties or (node.embedded and name in RESOURCE_FIELDS))


def is_atomic(node: SchemaNode | None, value: Any) -> bool:
    """Returns whether `value` is one indivisible field."""
    if isinstance(value, dict):
        return node is not None and node.map_type == "atomic"
    if isinstance(value, list):
        return node is None or node.list_type == "atomic"
    return True


def path_element(node: SchemaNode, item: Any) -> str:
    """Returns the path element of a list item: its keys, or its value in a set."""
    if node.list_type == "map" and isinstance(item, dict):
        keys = {}
        for key in node.list_keys:
            key_node = child_node(node.items, key)
            default = key_node.default if key_node and key_node.has_default else None
            if (value := item.get(key, default)) is not None:
                keys[key] = value
        return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()
    return "v:" + orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()


# -- what fields there are ---------------------------------------------------------------------------------------------


def field_set(root: SchemaNode, obj: JSON) -> FieldSet:
    """Returns the fields that an applied configuration sets."""
    paths: set[FieldPath] = set()
    _collect_paths(root, obj, (), paths)
    return frozenset(paths)


def _collect_paths(node: SchemaNode | None, value: Any, path: FieldPath, paths: set[FieldPath]) -> None:
    """Adds to `paths` the path of each leaf, item and empty map of a value."""
    if is_atomic(node, value):
        paths.add(path)
    elif isinstance(value, dict):
        for name, member in value.items():
            field_path = (*path, f"f:{name}")
            _collect_paths(child_node(node, name), member, field_path, paths)
            if member is None or member == {} or not is_declared(node, name):
                paths.add(field_path)
    elif node is not None:
        for item in value:
            item_path = (*path, path_element(node, item))
            _collect_paths(node.items, item, item_path, paths)
            paths.add(item_path)


# -- what changed ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Comparison:
    """The paths that differ between two states."""

    added: set[FieldPath] = field(default_factory=set)
    modified: set[FieldPath] = field(default_factory=set)
    removed: set[FieldPath] = field(default_factory=set)

    @property
    def changed(self) -> set[FieldPath]:
        """The paths that were added or modified."""
        return self.added | self.modified

    def compare(self, node: SchemaNode | None, old: Any, new: Any, path: FieldPath = ()) -> None:
        """Records the differences between two values at `path`; either may be absent."""
        if old is _ABSENT:
            _add_all(node, new, path, self.added)
            return
        if new is _ABSENT:
            _add_all(node, old, path, self.removed)
            return
        if old is None or new is None:
            old, new = _nothing_like(new, old), _nothing_like(old, new)
        if type(old) is not type(new) or is_atomic(node, new) or (not old and not new):
            if old != new:
                self.modified.add(path)
        elif old != new and isinstance(new, dict):
            for name in (*old, *(name for name in new if name not in old)):
                pair = old.get(name, _ABSENT), new.get(name, _ABSENT)
                self.compare(child_node(node, name), *pair, (*path, f"f:{name}"))
        elif old != new and node is not None:
            old_items, new_items = _items_by_element(node, old), _items_by_element(node, new)
            for key in (*old_items, *(key for key in new_items if key not in old_items)):
                before, after, item_path = old_items.get(key, []), new_items.get(key, []), (*path, key)
                if len(before) < 2 and len(after) < 2:
                    pair = before[0] if before else _ABSENT, after[0] if after else _ABSENT
                    self.compare(node.items, *pair, item_path)
                # Several items with the same key are indistinguishable and count as one field.
                elif not before or not after:
                    (self.removed if before else self.added).add(item_path)
                elif before != after:
                    self.modified.add(item_path)


def compare_objects(root: SchemaNode, old: JSON, new: JSON) -> Comparison:
    """Returns the differences from `old` to `new`."""
    result = Comparison()
    result.compare(root, old, new)
    return result


def _nothing_like(other: Any, value: Any) -> Any:
    """Returns an empty map or list for a null that is compared with a non-empty one, else the value."""
    return type(other)() if value is None and isinstance(other, dict | list) and other else value


def _add_all(node: SchemaNode | None, value: Any, path: FieldPath, paths: set[FieldPath]) -> None:
    """Adds to `paths` the path of a value that only one of two states has, and all below it."""
    paths.add(path)
    if not value or is_atomic(node, value):
        return
    if isinstance(value, dict):
        for name, member in value.items():
            _add_all(child_node(node, name), member, (*path, f"f:{name}"), paths)
    elif node is not None:
        for key, items in _items_by_element(node, value).items():
            if len(items) == 1:
                _add_all(node.items, items[0], (*path, key), paths)
            else:
                paths.add((*path, key))


def _items_by_element(node: SchemaNode, items: list[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(path_element(node, item), []).append(item)
    return groups


# -- merging and removing ----------------------------------------------------------------------------------------------


def merge_config(node: SchemaNode | None, live: Any, config: Any) -> Any:
    """Returns `live` with the applied `config` merged into it."""
    if isinstance(live, dict | None) and isinstance(config, dict) and not is_atomic(node, config):
        result = dict(live or {})
        for name, value in config.items():
            below = child_node(node, name)
            if value is None and name not in result and below is not None and below.preserve_unknown and not below.type:
                # In a field without a type, null means absent.
                continue
            result[name] = merge_config(below, result.get(name), value)
        return result
    if isinstance(live, list) and isinstance(config, list) and node is not None and not is_atomic(node, config):
        return _merged_list(node, live, config)
    # Null is a value like others, except over a non-empty map or list, where it sets nothing.
    return live if config is None and live and isinstance(live, dict | list) and not is_atomic(node, live) else config


def _merged_list(node: SchemaNode, live: list[Any], config: list[Any]) -> list[Any]:
    """Returns the items of both lists: the configuration's in its order, the live-only ones at their places."""
    live_items, config_items = ([(path_element(node, item), item) for item in items] for items in (live, config))
    in_live, in_config = dict(live_items), dict(config_items)
    shared = [key for key, _ in config_items if key in in_live]
    result: list[Any] = []
    merged_keys: set[str] = set()
    at_left = at_right = at_shared = 0
    while at_left < len(live_items) or at_right < len(config_items):
        key_left = live_items[at_left][0] if at_left < len(live_items) else None
        key_right = config_items[at_right][0] if at_right < len(config_items) else None
        if key_left is not None and key_left not in in_config:
            result.append(live_items[at_left][1])
            at_left += 1
        elif (
            key_left is not None
            and key_left != key_right
            and (key_left in merged_keys or (at_shared < len(shared) and shared[at_shared] != key_left))
        ):
            at_left += 1
        elif key_right is not None:
            value = config_items[at_right][1]
            result.append(merge_config(node.items, in_live[key_right], value) if key_right in in_live else value)
            merged_keys.add(key_right)
            at_shared += key_right in in_live
            at_right += 1
            at_left += key_left == key_right
        else:
            at_left += 1
    return result


def without_paths(node: SchemaNode | None, value: Any, paths: FieldSet | set[FieldPath]) -> Any:
    """Returns `value` without the fields and items of `paths`, and without maps and lists that become empty."""
    return _without_trie(node, value, paths_to_trie(paths))


def _without_trie(node: SchemaNode | None, value: Any, removed: JSON) -> Any:
    """Returns a value without the paths in the tree `removed` (fieldsV1); `_ABSENT` if nothing is left of it."""
    if isinstance(value, dict):
        result = {}
        for name, member in value.items():
            below = removed.get(f"f:{name}")
            if below is None:
                result[name] = member
            elif "." not in below:
                remaining = _without_trie(child_node(node, name), member, below)
                if remaining is not _ABSENT:
                    result[name] = remaining
        return result or _ABSENT
    if isinstance(value, list) and node is not None:
        kept_items = []
        for item in value:
            below = removed.get(path_element(node, item))
            remaining = item if below is None else _ABSENT if "." in below else _without_trie(node.items, item, below)
            if isinstance(remaining, dict) and isinstance(item, dict):
                # An item that stays needs its keys, even if another manager owns them.
                remaining = {name: item[name] for name in node.list_keys if name in item} | remaining
            if remaining is not _ABSENT:
                kept_items.append(remaining)
        return kept_items or _ABSENT
    return value


# -- fieldsV1, and paths in messages -----------------------------------------------------------------------------------

# Objects that one client makes have the same fields. Larger sets are rare, and would be memory for nothing.
_LARGEST_CACHED = 64
# One for all: a million of them takes as long to free as to make.
_MARK: JSON = {}
_LEAF: JSON = {".": _MARK}


def paths_to_trie(paths: Iterable[FieldPath]) -> JSON:
    """Returns the paths as a tree; a member `.` marks that the path itself is one of them."""
    root: JSON = {}
    for path in paths:
        branch = root
        for part in path:
            branch = branch.setdefault(part, {})
        branch["."] = _MARK
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
    # A leaf is written as {}; "." is needed only next to children.
    children = sorted(key for key in trie if key != ".")
    if not children:
        return {}
    if children[0][0] != children[-1][0]:
        children.sort(key=lambda key: "fkvi".find(key[0]))
    head: JSON = {".": {}} if "." in trie else {}
    return head | {key: {} if trie[key] == _LEAF else _order_members(trie[key]) for key in children}


def from_fields_v1(fields: JSON) -> FieldSet:
    """Returns the paths of a `fieldsV1`."""
    paths: set[FieldPath] = set()
    _collect_fields_v1(fields, (), paths)
    return frozenset(paths)


def _collect_fields_v1(fields: JSON, path: FieldPath, paths: set[FieldPath]) -> None:
    """Adds to `paths` the paths in a FieldsV1 below `path`."""
    for key, below in fields.items():
        if key == ".":
            paths.add(path)
        elif below:
            _collect_fields_v1(below, (*path, key), paths)
        else:
            paths.add((*path, key))


def show_path(path: FieldPath) -> str:
    """Returns a path as conflict messages print it: `.spec.containers[name="a"].image`.

    An element's prefix is its type: `f:` a field, `v:` a value of a set, `i:` an index, `k:` the keys of an item as
    JSON (structured-merge-diff, `fieldpath/serialize-pe.go`).
    """
    text = ""
    for part in path:
        kind, name = part[0], part[2:]
        if kind == "k":
            keys: JSON = orjson.loads(name)
            name = ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items())
        text += f".{name}" if kind == "f" else f"[={name}]" if kind == "v" else f"[{name}]"
    return text
