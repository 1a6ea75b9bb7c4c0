"""Validation of an applied configuration as by structured-merge-diff's typed parser, in its words.

In: the schema's root and the configuration. Out: faults as `.path: message`, in the order met. A field that the schema
does not declare can have no owner, and an item without its key no identity: such a configuration is refused as a whole.
Follows sigs.k8s.io/structured-merge-diff, typed/{validate,helpers}.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.patch.field_sets import is_atomic, path_element, typed_root
from kubesandbox.apiserver.patch.fields_v1 import FieldPath, show_path
from kubesandbox.apiserver.schema import SchemaNode
from kubesandbox.apiserver.schema.structural import RESOURCE_FIELDS
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
Faults = Iterator[str]


def why_invalid(tree: SchemaNode | None, kind: Kind, config: JSON) -> str:
    """Returns why the configuration is invalid, or ""."""
    faults = list(_value_faults(typed_root(tree), config, ()))
    if not faults:
        return ""
    metadata = config.get("metadata") or {}
    group = f"{kind.group}/{kind.version}"
    object_text = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {group}, Kind={kind.kind}"
    text = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in sorted(faults))
    return f"failed to create typed patch object ({object_text}): {text}"


def _value_faults(node: SchemaNode | None, value: Any, path: FieldPath) -> Faults:
    """Yields why a value does not fit its node, in the words of structured-merge-diff."""
    if node is None or value is None:
        return
    if node.type == "object":
        yield from _map_faults(node, value, path)
    elif node.type == "array":
        yield from _list_faults(node, value, path)
    elif node.type == "string":
        if not isinstance(value, str):
            yield f"{show_path(path)}: expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    elif node.type == "boolean":
        if not isinstance(value, bool):
            yield f"{show_path(path)}: expected boolean, got &{{{go_plain(value)}}}"
    elif node.type and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{show_path(path)}: expected numeric (int or float), got {_go_name(value)}"


def _map_faults(node: SchemaNode, value: Any, path: FieldPath) -> Faults:
    """Yields what is wrong with a value that the schema calls a map: its type, an undeclared field, or a field."""
    if not isinstance(value, dict):
        yield f"{show_path(path)}: expected map, got &{{{go_plain(value)}}}"
        return
    for name, member in value.items():
        field_path = (*path, f"f:{name}")
        child = node.member(name)
        if child is None and _is_closed(node) and not (node.embedded and name in RESOURCE_FIELDS):
            yield f"{show_path(field_path)}: field not declared in schema"
        else:
            yield from _value_faults(child, member, field_path)


def _is_closed(node: SchemaNode) -> bool:
    return bool(node.properties) and not node.preserve_unknown and not node.additional_any


def _list_faults(node: SchemaNode, value: Any, path: FieldPath) -> Faults:
    """Yields what is wrong with a value that the schema calls a list: its type, its items' keys, or an item."""
    if not isinstance(value, list):
        yield f"{show_path(path)}: expected list, got &{{{go_plain(value)}}}"
        return
    keys: set[str] = set()
    for index, item in enumerate(value):
        key = f"i:{index}"
        if not is_atomic(node, value):
            if why := _why_no_identity(node, item):
                yield f"{show_path(path)}: element {index}: {why}"
                return
            key = path_element(node, item)
            if key in keys:
                yield f"{show_path(path)}: duplicate entries for key {show_path((key,))}"
            keys.add(key)
        yield from _value_faults(node.items, item, (*path, key))


def _why_no_identity(node: SchemaNode, item: Any) -> str:
    """Returns why an item has no identity in a set or a list-map, or ""."""
    if node.list_type == "set":
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        kinds = ((dict, "that's a map type"), (type(None), "that's an explicit null"))
        return next(
            (f"associative list without keys has an element {text}" for kind, text in kinds if isinstance(item, kind)),
            "",
        )
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    # One key is enough: an absent key is part of the item's identity.
    if any(name in item or _has_default(node, name) for name in node.list_keys):
        return ""
    keys = " ".join(f'"{name}"' for name in node.list_keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default "
        "values for any key fields)"
    )


def _has_default(node: SchemaNode, name: str) -> bool:
    member = node.items.properties.get(name) if node.items else None
    return member is not None and member.has_default


def go_syntax(value: Any) -> str:
    """Returns a value from YAML as Go's `%#v` prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{json.dumps(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value, ensure_ascii=False)


def go_plain(value: Any) -> str:
    """Returns a value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_plain(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_plain, value))}]"
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _go_name(value: Any) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", bool: "bool"}
    return names.get(type(value), "string")
