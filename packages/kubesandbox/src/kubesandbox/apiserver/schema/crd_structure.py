"""Checks that the schema of a CustomResourceDefinition is structural: all fields have their types outside of junctors.

In: an OpenAPI v3 schema and its path. Out: FieldErrors in the words of apiextensions-apiserver's
`schema.ValidateStructural`. This prevents a schema whose pruning and defaulting would depend on the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.lang.regexp import RegexpError, compile_regexp
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, forbidden, invalid, required

JSON = dict[str, Any]
Errors = Iterator[FieldError]

_EMBEDDED, _PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"
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
    yield from _extension_faults(schema, path)
    yield from _alternative_faults(schema, path)
    yield from _type_faults(schema, path, level)
    yield from _metadata_faults(schema, path, level)


def _extension_faults(schema: JSON, path: str) -> Errors:
    for key in (_PRESERVE, _EMBEDDED):
        if schema.get(_INT_OR_STRING) and schema.get(key):
            yield invalid(f"{path}.{key}", True, f"must be false if {_INT_OR_STRING} is true")


def _type_faults(schema: JSON, path: str, level: str) -> Errors:
    """Yields a fault for a node without a type, or of one that its extensions exclude."""
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


def _metadata_faults(schema: JSON, path: str, level: str) -> Errors:
    """Yields the faults of apiVersion, kind and metadata: a schema may repeat them, and restrict metadata's name."""
    if level != "root" and not schema.get(_EMBEDDED):
        return
    properties = schema.get("properties") or {}
    for name, expected_type in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type") != expected_type:
            type_path = f"{path}.properties[{name}].type"
            yield invalid(type_path, properties[name].get("type") or "", f"must be {expected_type}")
    if level == "root" and not _only_names(properties.get("metadata") or {}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", detail)


def _only_names(metadata: JSON) -> bool:
    other_keywords = {key for key, value in metadata.items() if value} - {"type", "default", "properties"}
    return not other_keywords and set(metadata.get("properties") or ()) <= {"name", "generateName"}


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
    if pattern := schema.get("pattern"):
        yield from _pattern_faults(pattern, path)


def _pattern_faults(pattern: str, path: str) -> Errors:
    """Yields a fault if the pattern is not a regular expression of RE2."""
    try:
        compile_regexp(pattern)
    except RegexpError as error:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


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
        items = schema.get("items")
        item_schema = items if isinstance(items, dict) else None
        yield from _complete_nested(outer["items"], item_schema, f"{path}.items", f"{fault_path}.items")
    for name, child in (outer.get("properties") or {}).items():
        member = (schema.get("properties") or {}).get(name)
        yield from _complete_nested(child, member, f"{path}.properties[{name}]", f"{fault_path}.properties[{name}]")
