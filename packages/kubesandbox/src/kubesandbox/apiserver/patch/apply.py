"""Server-side apply: merges the configuration into the live object, removes fields it no longer sets, finds conflicts.

Follows structured-merge-diff's merge/update.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.patch import field_sets, managed_fields
from kubesandbox.apiserver.patch.managed_fields import Manager, Ownership
from kubesandbox.apiserver.schema.field_errors import go_plain
from kubesandbox.apiserver.schema.structural import RESOURCE_FIELDS, SchemaNode
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError, Cause, apply_conflict

JSON = dict[str, Any]


def apply_patch(
    tree: SchemaNode | None,
    kind: Kind,
    live: JSON | None,
    config: JSON,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str = "",
    empty: JSON | None = None,
    default: Callable[[JSON], JSON] = lambda obj: obj,
    tree_of: Callable[[str], SchemaNode | None] | None = None,
) -> JSON:
    """Returns the object after `manager` applied `config`; `live` is not changed. Raises ApiError 409 on conflicts.

    `tree_of` gives the schema of the kind in another version, or None if it is not served. A manager of a version that
    is not served owns nothing, and one of a version that cannot hold the object makes the apply fail (500).

    In order (https://kubernetes.io/docs/reference/using-api/server-side-apply/): the fields of `config` are merged into
    `live`; fields that `manager` applied before and does not any more are removed; a change of what others own is a
    conflict unless `force`; then managedFields are written. `empty` is the object of that kind without any field, and
    `default` fills in what the server adds: an apply that changes nothing keeps its time.
    """
    root = field_sets.typed_root(tree)
    config = copy_json(config)
    for name in ("managedFields", "resourceVersion", "uid"):
        meta(config).pop(name, None)
    managers = managed_fields.read_managers(live)
    trees = _trees_of_managers(managers, kind, tree_of)
    managers = {m: owned for m, owned in managers.items() if trees.get(m.version, tree) is not None or tree is None}
    if live is not None and not managers:
        changes = field_sets.compare_objects(root, empty or {"metadata": {}}, live)
        managers = managed_fields.owner_of_everything(kind, changes.changed, subresource=subresource, now=now)
    mine = [m for m in managers if m.applies and m.name == manager and m.subresource == subresource]
    before = managers.pop(mine[0]) if mine else None
    applied_fields = managed_fields.ownable_paths(kind, field_sets.field_set(root, config), subresource)
    new: JSON = copy_json(field_sets.merge_config(root, live or {}, config))
    if before is not None:
        owned = applied_fields.union(*(ownership.paths for ownership in managers.values()))
        new = _prune_abandoned(root, new, before.paths, owned)
    changes = field_sets.compare_objects(root, live or {}, new)
    for version in dict.fromkeys(other.version for other in managers):
        if version in trees:
            _check_fits(trees[version], live or {}, new)
    conflicts = [
        (str(other), path) for other, owned in managers.items() for path in _in_order(owned.paths & changes.changed)
    ]
    if conflicts and not force:
        raise _conflict_error(
            [(other, field_sets.show_path(path)) for other, path in sorted(conflicts, key=itemgetter(0))]
        )
    managers = managed_fields.release_paths(managers, changes.changed | changes.removed)
    time = rfc3339(now)
    # An apply without changes must not be a write, so it keeps its time.
    if before is not None and before.paths == applied_fields and live is not None:
        applied, current = default(copy_json(new)), dict(live)
        for obj, metadata in ((applied, meta(new)), (current, meta(live))):
            obj["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
        if applied == current:
            time = before.time
    managers[Manager(manager, "Apply", kind.api_version, subresource)] = Ownership(applied_fields, time)
    managed_fields.write_managers(new, managers)
    return new


def _check_fits(tree: SchemaNode | None, live: JSON, new: JSON) -> None:
    """Raises ApiError (500) if an object before or after an apply has a field that another version does not declare."""
    for obj, prefix in ((live, ""), (new, "failed to convert new object: ")):
        if faults := list(_value_faults(field_sets.typed_root(tree), obj, ())):
            raise ApiError(500, "", prefix + _joined(faults))


def _trees_of_managers(
    managers: managed_fields.Managers, kind: Kind, tree_of: Callable[[str], SchemaNode | None] | None
) -> dict[str, SchemaNode | None]:
    """Returns the schemas of the managers' other versions of a custom resource, by version."""
    if tree_of is None or not kind.custom or kind.converts:  # only a webhook knows its objects in another version
        return {}
    return {manager.version: tree_of(manager.version) for manager in managers if manager.version != kind.api_version}


def _prune_abandoned(
    root: SchemaNode, new: JSON, before: field_sets.FieldSet, owned: Iterable[field_sets.FieldPath]
) -> JSON:
    """Returns `new` without fields that this applier no longer sets, unless they or their children are `owned`.

    A struct without any field set is removed as a whole, with its fields that have no owner.
    """
    within = {path[:length] for path in owned for length in range(1, len(path) + 1)}
    surplus = set(before)
    for path in before:
        # The fields of parent structs, not map keys and list items.
        node: SchemaNode | None = root
        for length, part in enumerate(path[:-1], 1):
            name = part.removeprefix("f:")
            if name != part and field_sets.is_declared(node, name):
                surplus.add(path[:length])
            node = field_sets.child_node(node, name) if name != part else node.items if node else None
    surplus -= within
    result = field_sets.without_paths(root, new, surplus) if surplus else new
    return result if isinstance(result, dict) else {}


def _conflict_error(conflicts: list[tuple[str, str]]) -> ApiError:
    """Returns the 409 that names each field which another manager owns, in the words of structured-merge-diff."""
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in conflicts]
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return apply_conflict(f"Apply failed with 1 conflict: conflict with {manager}: {path}", causes)
    lines: list[str] = []
    for manager in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for owner, path in conflicts if owner == manager]
    return apply_conflict(f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines), causes)


def _in_order(paths: Collection[field_sets.FieldPath]) -> list[field_sets.FieldPath]:
    """Returns paths in structured-merge-diff's order: at each level those that end there, then deeper ones."""
    ends = sorted(path for path in paths if len(path) == 1)
    below: dict[str, set[field_sets.FieldPath]] = {}
    for path in paths:
        if len(path) > 1:
            below.setdefault(path[0], set()).add(path[1:])
    return [*ends, *((part, *rest) for part in sorted(below) for rest in _in_order(below[part]))]


# -- Validation of the configuration, in the words of structured-merge-diff (typed/{validate,helpers}.go) --------------

Faults = Iterator[str]


def why_invalid(tree: SchemaNode | None, kind: Kind, config: JSON) -> str:
    """Returns why the configuration is invalid, or ""."""
    faults = list(_value_faults(field_sets.typed_root(tree), config, ()))
    if not faults:
        return ""
    metadata, group = config.get("metadata") or {}, f"{kind.group}/{kind.version}"
    object_text = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {group}, Kind={kind.kind}"
    return f"failed to create typed patch object ({object_text}): {_joined(faults)}"


def _joined(faults: list[str]) -> str:
    return faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in sorted(faults))


_NUMERIC: tuple[str, Any] = ("numeric (int or float)", int | float)
# The types of a schema: their names in messages, and the types of Python.
_TYPES: dict[str, tuple[str, Any]] = {
    "object": ("map", dict),
    "array": ("list", list),
    "string": ("string", str),
    "boolean": ("boolean", bool),
    "": ("", object),
}


def _value_faults(node: SchemaNode | None, value: Any, path: field_sets.FieldPath) -> Faults:
    """Yields why a value does not fit its node; a field that the schema does not declare can have no owner."""
    if node is None or value is None:
        return
    expected, types = _TYPES.get(node.type, _NUMERIC)
    numeric = node.type not in _TYPES
    if not isinstance(value, types) or (isinstance(value, bool) and numeric):
        got = f"&{{{go_plain(value)}}}"
        if node.type == "string":
            got = f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        elif numeric:
            names = {dict: "map[string]interface {}", list: "[]interface {}", bool: "bool"}
            got = names.get(type(value), "string")
        yield f"{field_sets.show_path(path)}: expected {expected}, got {got}"
    elif node.type == "object":
        closed = bool(node.properties) and not node.preserve_unknown and not node.additional_any
        for name, member in value.items():
            child = node.member(name)
            if child is None and closed and not (node.embedded and name in RESOURCE_FIELDS):
                yield f"{field_sets.show_path((*path, f'f:{name}'))}: field not declared in schema"
            else:
                yield from _value_faults(child, member, (*path, f"f:{name}"))
    elif node.type == "array":
        # An item without a key has no identity, and two items must not have the same.
        keys: set[str] = set()
        for index, item in enumerate(value):
            key = f"i:{index}"
            if not field_sets.is_atomic(node, value):
                if why := _why_no_identity(node, item):
                    yield f"{field_sets.show_path(path)}: element {index}: {why}"
                    return
                key = field_sets.path_element(node, item)
                if key in keys:
                    yield f"{field_sets.show_path(path)}: duplicate entries for key {field_sets.show_path((key,))}"
                keys.add(key)
            yield from _value_faults(node.items, item, (*path, key))


def _why_no_identity(node: SchemaNode, item: Any) -> str:
    """Returns why an item has no identity in a set or a list-map, or ""."""
    if node.list_type == "set":
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        text = "that's a map type" if isinstance(item, dict) else "that's an explicit null" if item is None else ""
        return f"associative list without keys has an element {text}" if text else ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    # One key is enough: an absent key is part of the item's identity.
    properties = node.items.properties if node.items else {}
    if any(name in item or (name in properties and properties[name].has_default) for name in node.list_keys):
        return ""
    keys = " ".join(f'"{name}"' for name in node.list_keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default "
        "values for any key fields)"
    )


def _go_syntax(value: Any) -> str:
    """Returns a value from YAML as Go's `%#v` prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{json.dumps(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value, ensure_ascii=False)
