"""Checks of the schema of a CustomResourceDefinition: only the supported part of OpenAPI v3, and a structural schema.

FieldErrors have the words of apiextensions-apiserver's `ValidateCustomResourceDefinitionOpenAPISchema` and
`schema.ValidateStructural`. In a structural schema all fields have their types outside of junctors, so that pruning and
defaulting do not depend on the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubekit.lang.regexp import RegexpError, compile_regexp
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, forbidden, invalid, one_of, required

JSON = dict[str, Any]
Errors = Iterator[FieldError]
# A node, its path, and the path of the enclosing list whose items cannot be correlated with old ones ("" if none).
Rules = Callable[[JSON, str, str], Errors]

_FORBIDDEN = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPE, _LIST_KEYS, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def openapi_faults(schema: JSON, path: str, rules: Rules, uncorrelated: str = "") -> Errors:
    """Yields the faults of `schema` and of all schemas below it; `rules` yields those of a node's CEL rules."""
    kind, additional = schema.get("type") or "", schema.get("additionalProperties")
    if kind:
        yield from one_of(f"{path}.type", kind, _TYPES)
    for key in _FORBIDDEN:
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    if schema.get("properties") and additional is not None and additional is not True:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for child_path, child in child_schemas(schema, path):
        # Items of other lists than list-maps, and members of atomic maps, cannot be correlated with old ones.
        within_list = child_path == f"{path}.items" and schema.get(_LIST_TYPE) != "map"
        within_map = child_path.startswith(f"{path}.properties[") and schema.get(_MAP_TYPE) == "atomic"
        yield from openapi_faults(child, child_path, rules, uncorrelated or (path if within_list or within_map else ""))
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    if (map_type := schema.get(_MAP_TYPE)) is not None:
        yield from _of_type(schema, path, "object", _MAP_TYPE)
        yield from one_of(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))
    list_type, type_path, items = schema.get(_LIST_TYPE), f"{path}.{_LIST_TYPE}", schema.get("items")
    if list_type is not None:
        type_faults = list(_of_type(schema, path, "array", _LIST_TYPE))
        yield from type_faults
        if not type_faults and list_type == "set" and isinstance(items, dict):
            # Sets compare whole items.
            detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
            if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
                yield invalid(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], detail)
            if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
                yield invalid(f"{path}.items.{_MAP_TYPE}", items.get(_LIST_TYPE), detail)
        yield from one_of(type_path, list_type, ("atomic", "set", "map"))
    if schema.get(_LIST_KEYS) and list_type != "map":
        fault = Fault.REQUIRED if list_type is None else Fault.INVALID
        yield FieldError(fault, type_path, list_type, f"must be map if {_LIST_KEYS} is non-empty")
    yield from _list_map_key_faults(schema, path)
    yield from rules(schema, path, uncorrelated)


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


def _of_type(schema: JSON, path: str, expected_type: str, key: str) -> Errors:
    kind = schema.get("type") or ""
    if kind != expected_type:
        detail = f"must be {expected_type} if {key} is specified"
        yield FieldError(Fault.INVALID if kind else Fault.REQUIRED, f"{path}.type", kind, detail)


def _list_map_key_faults(schema: JSON, path: str) -> Errors:
    """Yields the faults of x-kubernetes-list-map-keys, which only lists of type map have."""
    list_type, keys, items = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or [], schema.get("items")
    if list_type == "map" and not keys:
        yield required(f"{path}.{_LIST_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if list_type == "map" and not isinstance(items, dict):
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if list_type not in ("map", "set") or not isinstance(items, dict):
        return
    if list_type == "map" and items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", detail)
    elif list_type == "map":
        earlier_keys: set[str] = set()
        for key in keys:
            member = (items.get("properties") or {}).get(key)
            if member is None:
                yield invalid(f"{path}.{_LIST_KEYS}", keys, "entries must all be names of item properties")
            elif member.get("type") in ("array", "object"):
                detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                yield invalid(f"{path}.items.properties[{key}].type", items["type"], detail)
            if key in earlier_keys:
                yield invalid(f"{path}.{_LIST_KEYS}", keys, "must not contain duplicate entries")
            earlier_keys.add(key)
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    for key in keys if list_type == "map" else ():
        member = (items.get("properties") or {}).get(key)
        if member is None:
            continue
        property_path, why = f"{path}.items.properties[{key}]", f"this property is in {_LIST_KEYS}, so it"
        if key not in (items.get("required") or ()) and member.get("default") is None:
            yield required(f"{property_path}.default", f"{why} must have a default or be a required property")
        if member.get("nullable"):
            yield forbidden(f"{property_path}.nullable", f"{why} cannot be nullable")


# -- Structural schemas ------------------------------------------------------------------------------------------------

_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# A junctor (allOf, anyOf, oneOf, not) may hold value validations, but no keyword that sets an object's structure.
_NOT_NESTED = {
    "type": "must be empty",
    "additionalProperties": "must be undefined",
    "default": "must be undefined",
    "title": "must be empty",
    "description": "must be empty",
    "nullable": "must be false",
    _PRESERVE: "must be false",
    _EMBEDDED: "must be false",
    _INT_OR_STRING: "must be false",
    "x-kubernetes-list-map-keys": "must be empty",
    "x-kubernetes-list-type": "must be undefined",
    "x-kubernetes-map-type": "must be undefined",
    "x-kubernetes-validations": "must be empty",
}
_INT_OR_STRING_TYPES = [{"type": "integer"}, {"type": "string"}]


def structural(schema: JSON, path: str) -> list[FieldError]:
    """Returns the faults that keep `schema` from being structural."""
    return [*_shape_faults(schema, path, "root"), *_completeness_faults(schema, schema, path, path)]


def _shape_faults(schema: JSON, path: str, level: str) -> Errors:
    """Yields what a schema lacks or has too much to be structural; `level` is root, field or item."""
    if schema.get("type") == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _shape_faults(schema["items"], f"{path}.items", "item")
    for name, child in (schema.get("properties") or {}).items():
        yield from _shape_faults(child, f"{path}.properties[{name}]", "field")
    if schema.get("additionalProperties") is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(schema["additionalProperties"], dict):
            yield from _shape_faults(schema["additionalProperties"], f"{path}.additionalProperties", "field")
    for key in (_PRESERVE, _EMBEDDED):
        if schema.get(_INT_OR_STRING) and schema.get(key):
            yield invalid(f"{path}.{key}", True, f"must be false if {_INT_OR_STRING} is true")
    yield from _alternative_faults(schema, path)
    kind, type_path = schema.get("type") or "", f"{path}.type"
    if schema.get(_EMBEDDED) and kind != "object":
        detail = f"must be object if {_EMBEDDED} is true"
        yield FieldError(Fault.INVALID if kind else Fault.REQUIRED, type_path, kind, detail)
    elif not kind and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        yield required(type_path, _EMPTY_TYPE[level])
    if schema.get(_EMBEDDED) and schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set")
    if level == "root" and kind and kind != "object":
        yield invalid(type_path, kind, "must be object at the root")
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        yield required(f"{path}.properties", f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")
    # A schema may repeat apiVersion, kind and metadata, and restrict metadata's name.
    properties = schema.get("properties") or {}
    names = (("kind", "string"), ("apiVersion", "string"), ("metadata", "object"))
    for name, expected_type in names if level == "root" or schema.get(_EMBEDDED) else ():
        if name in properties and properties[name].get("type") != expected_type:
            actual = properties[name].get("type") or ""
            yield invalid(f"{path}.properties[{name}].type", actual, f"must be {expected_type}")
    metadata = properties.get("metadata") or {}
    if level == "root":
        others = {key for key, value in metadata.items() if value} - {"type", "default", "properties"}
        if others or set(metadata.get("properties") or ()) - {"name", "generateName"}:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(f"{path}.properties[metadata]", detail)


# -- alternatives ------------------------------------------------------------------------------------------------------


def _alternative_faults(schema: JSON, path: str, *, nested: bool = False) -> Errors:
    """Yields the faults of the schemas below anyOf, allOf, oneOf and not."""
    any_of = schema.get("anyOf") or []
    if not (any_of == _INT_OR_STRING_TYPES and not nested):
        for index, child in enumerate(any_of):
            yield from _nested_faults(child, f"{path}.anyOf[{index}]")
    for index, child in enumerate(schema.get("allOf") or ()):
        # The second accepted form of an int-or-string.
        spared = not nested and index == 0 and (child.get("anyOf") or []) == _INT_OR_STRING_TYPES
        yield from _nested_faults({**child, "anyOf": []} if spared else child, f"{path}.allOf[{index}]")
    for index, child in enumerate(schema.get("oneOf") or ()):
        yield from _nested_faults(child, f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested_faults(schema["not"], f"{path}.not")
    try:
        compile_regexp(schema.get("pattern") or "")
    except RegexpError as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        yield invalid(f"{path}.pattern", schema["pattern"], why)


def _nested_faults(schema: JSON, path: str) -> Errors:
    """Yields a fault for each keyword that a schema within an alternative must not have."""
    yield from _alternative_faults(schema, path, nested=True)
    if isinstance(schema.get("items"), dict):
        yield from _nested_faults(schema["items"], f"{path}.items")
    for name, child in (schema.get("properties") or {}).items():
        yield from _nested_faults(child, f"{path}.properties[{name}]")
    for key, detail in _NOT_NESTED.items():
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{detail} to be structural")
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness_faults(outer: JSON, schema: JSON | None, path: str, fault_path: str) -> Errors:
    """Yields a fault for each field that a junctor restricts and that is not also defined outside of it."""
    alternatives = [("not", outer["not"])] if isinstance(outer.get("not"), dict) else []
    for key in ("allOf", "anyOf", "oneOf"):
        alternatives += [(f"{key}[{index}]", child) for index, child in enumerate(outer.get(key) or ())]
    for key, child in alternatives:
        yield from _complete_nested(child, schema, path, f"{fault_path}.{key}")


def _complete_nested(outer: JSON, schema: JSON | None, path: str, fault_path: str) -> Errors:
    """Yields the faults of one alternative against the schema outside of it."""
    if schema is None:
        yield required(path, f"because it is defined in {fault_path}")
        return
    yield from _completeness_faults(outer, schema, path, fault_path)
    if isinstance(outer.get("items"), dict):
        items = schema["items"] if isinstance(schema.get("items"), dict) else None
        yield from _complete_nested(outer["items"], items, f"{path}.items", f"{fault_path}.items")
    for name, child in (outer.get("properties") or {}).items():
        member = (schema.get("properties") or {}).get(name)
        yield from _complete_nested(child, member, f"{path}.properties[{name}]", f"{fault_path}.properties[{name}]")
