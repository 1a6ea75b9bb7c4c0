"""The schemas of built-in kinds, made from the table of types.

In: group, version and kind. Out: a compiled Schema, or None for a kind that the table does not have; and for the
OpenAPI documents the definitions by their full names. A null is as good as an absent field, as it is for Go.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from runup.sandbox.apiserver.schema.builtin_types import DESCRIPTIONS, PACKAGES, TYPES
from runup.sandbox.apiserver.schema.schema import Schema

JSON = dict[str, Any]

_FIELD = re.compile(
    r"(?P<name>\w+)(?P<required>!?)(?:=(?P<default>\w+))?(?::(?P<list>\[\])?(?P<type>\w+))?(?P<tail>.*)"
)
_TEXT: JSON = {"type": "string"}
_QUANTITY: JSON = {"oneOf": [{"type": "string"}, {"type": "number"}]}
_SCALARS: dict[str, JSON] = {
    "s": _TEXT,
    "int": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": _QUANTITY,
    "intstr": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "map": {"type": "object", "additionalProperties": _TEXT},
    "bmap": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
    "qmap": {"type": "object", "additionalProperties": _QUANTITY},
}
# Structs that are one value to server-side apply.
_ATOMIC = frozenset({"LabelSelector", "ObjectReference", "LocalObjectReference", "OwnerReference", "RoleRef"})
_FULL_NAMES = {name: f"{package}.{name}" for package, types in TYPES.items() for name in types}


def builtin_schema(group: str, version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind, None when the table has none. Compiled once."""
    return _schema(_full_name(group, version, kind))


def definition_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's definition in OpenAPI documents, or nothing when the table has none."""
    name = _full_name(group, version, kind)
    return name if name in definitions() else ""


def _full_name(group: str, version: str, kind: str) -> str:
    return f"{PACKAGES.get(group, group)}.{version}.{kind}"


@cache
def definitions() -> dict[str, JSON]:
    """Every type by its full name, references as `#/components/schemas/NAME`."""
    return {
        f"{package}.{name}": _definition(name, fields)
        for package, types in TYPES.items()
        for name, fields in types.items()
    }


def _definition(name: str, fields: str) -> JSON:
    words = fields.split()
    result: JSON = {"type": "object"}
    if name in DESCRIPTIONS:
        result["description"] = DESCRIPTIONS[name]
    properties: JSON = {}
    if words[0].startswith("metadata"):
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    required = []
    for word in words:
        if word == "...":
            result["x-kubernetes-preserve-unknown-fields"] = True
            continue
        match = _FIELD.fullmatch(word)
        assert match is not None, word
        properties[match["name"]] = _property(match)
        if match["required"]:
            required.append(match["name"])
    result["properties"] = properties
    if required:
        result["required"] = required
    if name in _ATOMIC:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _property(match: re.Match[str]) -> JSON:
    result = _typed(match["type"] or "s")
    if match["default"]:
        result["default"] = match["default"]
    if not match["list"]:
        return result
    keys = match["tail"].removeprefix("@").split("+") if match["tail"].startswith("@") else []
    array: JSON = {"type": "array", "items": result, "x-kubernetes-list-type": "atomic"}
    if keys:
        array |= {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
            "x-kubernetes-patch-merge-key": keys[0],
            "x-kubernetes-patch-strategy": "merge",
        }
    elif match["tail"] == "~":
        array |= {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
    return array


def _typed(name: str) -> JSON:
    if name in _SCALARS:
        return dict(_SCALARS[name])
    # As a real document has it: what stands beside a reference is ignored, so the reference stands in an allOf.
    return {"allOf": [{"$ref": f"#/components/schemas/{_FULL_NAMES[name]}"}]}


@cache
def _schema(full_name: str) -> Schema | None:
    root = definitions().get(full_name)
    return Schema(_nullable(root), _resolve) if root else None


def _resolve(reference: str) -> JSON:
    return _nullable(definitions()[reference.rsplit("/", 1)[1]])


def _nullable(definition: JSON) -> JSON:
    properties = {name: {**schema, "nullable": True} for name, schema in definition.get("properties", {}).items()}
    return {**definition, "properties": properties}
