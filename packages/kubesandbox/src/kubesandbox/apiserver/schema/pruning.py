"""Pruning and defaulting of custom resources, as apiextensions-apiserver does both.

In: a compiled schema and an object. Out: a new object, the given one untouched; pruning also returns the paths of the
dropped fields, written as in `spec.risks[0].frob`. This prevents an unknown field from being stored silently, or
dropped where the schema preserves it.
"""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.schema.structural import SchemaNode

# Every resource has these at its root, an embedded resource too, whether or not its schema mentions them.
RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune_unknown(node: SchemaNode, value: Any, *, is_resource: bool = True) -> tuple[Any, tuple[str, ...]]:
    """Returns `value` without the fields that `node` does not know, and the paths of those, sorted."""
    dropped: list[str] = []
    pruned = _prune_below(node, value, "", is_resource, dropped)
    return pruned, tuple(sorted(dropped))


def _prune_below(node: SchemaNode, value: Any, path: str, is_resource: bool, dropped: list[str]) -> Any:
    """Returns a value without unknown fields, whose paths are added to `dropped`."""
    if isinstance(value, list):
        if node.items is None:
            return value
        return [
            _prune_below(node.items, item, f"{path}[{i}]", node.items.embedded, dropped) for i, item in enumerate(value)
        ]
    if not isinstance(value, dict) or node.additional_any:
        return value
    kept_members = {}
    for key, child in value.items():
        member_path = f"{path}.{key}" if path else key
        if is_resource and key in RESOURCE_FIELDS:
            kept_members[key] = child
        elif (member := node.member(key)) is not None:
            kept_members[key] = _prune_below(member, child, member_path, member.embedded, dropped)
        elif node.preserve_unknown:
            kept_members[key] = child
        else:
            dropped.append(member_path)
    return kept_members


def drop_nulls(node: SchemaNode | None, value: Any) -> Any:
    """Returns `value` without members that are null although not nullable, and that have no default to replace them."""
    if node is None:
        return value
    if isinstance(value, list):
        return [drop_nulls(node.items, item) for item in value]
    if not isinstance(value, dict):
        return value
    members = ((name, member, node.member(name)) for name, member in value.items())
    return {name: drop_nulls(child, member) for name, member, child in members if not _stray_null(child, member)}


def _stray_null(node: SchemaNode | None, value: Any) -> bool:
    return value is None and node is not None and not node.nullable and not node.has_default


def fill_defaults(node: SchemaNode, value: Any) -> Any:
    """Returns `value` with the schema's defaults for absent fields and for nulls that are not nullable."""
    if isinstance(value, dict):
        return _default_object(node, value)
    if isinstance(value, list) and node.items is not None:
        item_node = node.items
        return [fill_defaults(item_node, _default_for_null(item_node, item)) for item in value]
    return value


def _default_for_null(node: SchemaNode, value: Any) -> Any:
    """Returns the default for a null list item or map value that is not nullable, else the value."""
    return copy_json(node.default) if value is None and node.has_default and not node.nullable else value


def _default_object(node: SchemaNode, value: dict[str, Any]) -> dict[str, Any]:
    """Returns an object with the defaults of its members."""
    result = dict(value)
    for name, child in node.properties.items():
        absent = name not in result or (result[name] is None and not child.nullable)
        if child.has_default and absent:
            result[name] = copy_json(child.default)
    for name, member in result.items():
        field_node = node.member(name)
        if field_node is not None:
            result[name] = fill_defaults(field_node, _default_for_null(field_node, member))
    return result
