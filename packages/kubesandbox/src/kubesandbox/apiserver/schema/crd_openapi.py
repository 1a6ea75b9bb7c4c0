"""Checks that the schema of a CustomResourceDefinition uses only the part of OpenAPI v3 that Kubernetes supports.

In: a schema and its path. Out: FieldErrors in the words of apiextensions-apiserver's
`ValidateCustomResourceDefinitionOpenAPISchema`. The CEL rules of a node are checked by `crd_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesandbox.apiserver.schema.field_errors import (
    Fault,
    FieldError,
    forbidden,
    invalid,
    one_of,
    required,
)

JSON = dict[str, Any]
Errors = Iterator[FieldError]
# A node, its path, and the path of the enclosing list whose items cannot be correlated with old ones ("" if none).
Rules = Callable[[JSON, str, str], Errors]

_FORBIDDEN = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPE, _LIST_KEYS, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_KEY_NEEDED = "this property is in x-kubernetes-list-map-keys, so it must"


def openapi_faults(schema: JSON, path: str, rules: Rules, uncorrelated: str = "") -> Errors:
    """Yields the faults of `schema` and of all schemas below it; `rules` yields those of a node's CEL rules."""
    yield from _forbidden_faults(schema, path)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for child_path, child in child_schemas(schema, path):
        yield from openapi_faults(
            child, child_path, rules, uncorrelated or _uncorrelated_path(schema, path, child_path)
        )
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    yield from _map_type_faults(schema, path)
    yield from _list_type_faults(schema, path)
    yield from _list_map_key_faults(schema, path)
    yield from rules(schema, path, uncorrelated)


def _uncorrelated_path(schema: JSON, path: str, value_path: str) -> str:
    """Returns `path` if the value at `value_path` cannot be correlated with its value in the old object, else ""."""
    within_list = value_path == f"{path}.items" and schema.get(_LIST_TYPE) != "map"
    within_map = value_path.startswith(f"{path}.properties[") and schema.get(_MAP_TYPE) == "atomic"
    return path if within_list or within_map else ""


def child_schemas(schema: JSON, path: str) -> Iterator[tuple[str, JSON]]:
    """Yields every direct subschema of a schema, with its path."""
    for key in ("additionalProperties", "not", "items"):
        if isinstance(schema.get(key), dict):
            yield f"{path}.{key}", schema[key]
    for name, child in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", child
    for key in ("allOf", "oneOf", "anyOf"):
        for index, child in enumerate(schema.get(key) or ()):
            yield f"{path}.{key}[{index}]", child


def can_be_structural(schema: JSON) -> bool:
    """Returns whether a schema uses no keyword that a structural schema forbids."""
    if any(schema.get(key) for key in _FORBIDDEN) or isinstance(schema.get("items"), list):
        return False
    return all(can_be_structural(child) for _, child in child_schemas(schema, ""))


def _forbidden_faults(schema: JSON, path: str) -> Errors:
    """Yields a fault for each keyword that structural schemas must not have."""
    kind = schema.get("type") or ""
    if kind:
        yield from one_of(f"{path}.type", kind, _TYPES)
    for key in _FORBIDDEN:
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")


def _of_type(schema: JSON, path: str, expected_type: str, key: str) -> Errors:
    kind = schema.get("type") or ""
    if kind != expected_type:
        detail = f"must be {expected_type} if {key} is specified"
        yield FieldError(Fault.INVALID if kind else Fault.REQUIRED, f"{path}.type", kind, detail)


def _map_type_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of x-kubernetes-map-type."""
    map_type = schema.get(_MAP_TYPE)
    if map_type is None:
        return
    yield from _of_type(schema, path, "object", _MAP_TYPE)
    yield from one_of(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))


def _list_type_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of x-kubernetes-list-type."""
    list_type, keys = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS)
    type_path = f"{path}.{_LIST_TYPE}"
    if list_type is not None:
        type_faults = list(_of_type(schema, path, "array", _LIST_TYPE))
        yield from type_faults
        if not type_faults and list_type == "set":
            yield from _set_items(schema.get("items"), f"{path}.items")
        yield from one_of(type_path, list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        fault = Fault.REQUIRED if list_type is None else Fault.INVALID
        yield FieldError(fault, type_path, list_type, f"must be map if {_LIST_KEYS} is non-empty")


def _set_items(items: Any, path: str) -> Errors:
    """Yields the faults of a set's item schema: an item must be atomic, since sets compare items as a whole."""
    if not isinstance(items, dict):
        return
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
        yield invalid(f"{path}.{_LIST_TYPE}", items[_LIST_TYPE], detail)
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield invalid(f"{path}.{_MAP_TYPE}", items.get(_LIST_TYPE), detail)


def _list_map_key_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of x-kubernetes-list-map-keys, which only lists of type map have."""
    list_type, keys, items = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or [], schema.get("items")
    if list_type == "map":
        yield from _faults_of_keys(keys, items, path)
    if list_type not in ("map", "set") or not isinstance(items, dict):
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    for key in keys if list_type == "map" else ():
        member = (items.get("properties") or {}).get(key)
        if member is None:
            continue
        property_path = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and member.get("default") is None:
            yield required(f"{property_path}.default", f"{_KEY_NEEDED} have a default or be a required property")
        if member.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{property_path}.nullable", detail)


def _faults_of_keys(keys: list[str], items: Any, path: str) -> Errors:
    """Yields a fault for each key that the items do not have, or that may be absent."""
    keys_path = f"{path}.{_LIST_KEYS}"
    if not keys:
        yield required(keys_path, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    for index, key in enumerate(keys):
        member = (items.get("properties") or {}).get(key)
        if member is None:
            yield invalid(keys_path, keys, "entries must all be names of item properties")
        elif member.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", items["type"], detail)
        if key in keys[:index]:
            yield invalid(keys_path, keys, "must not contain duplicate entries")
