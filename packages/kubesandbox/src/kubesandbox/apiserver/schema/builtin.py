"""The schemas of the built-in kinds, built from the table of types on first use, and their OpenAPI definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from kubesandbox.apiserver.schema import builtin_table, typed
from kubesandbox.apiserver.schema.structural import Compiler, SchemaNode

JSON = dict[str, Any]

_REFERENCE = "#/components/schemas/"
# The table's words for scalar types, with their OpenAPI schemas and Go's zero values.
_SCALARS: dict[str, JSON] = {
    "s": {"type": "string"},
    "i32": {"type": "integer", "format": "int32"},
    "i64": {"type": "integer", "format": "int64"},
    "n": {"type": "number", "format": "double"},
    "b": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
}
_ZEROS: dict[str, Any] = {"s": "", "i32": 0, "i64": 0, "n": 0, "b": False}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
# Types with their own marshaller in Go, which the table of structs cannot describe. An empty schema takes any JSON.
_SPECIAL: dict[str, JSON] = {
    f"{_META}.Time": {"type": "string", "format": "date-time"},
    f"{_META}.MicroTime": {"type": "string", "format": "date-time"},
    f"{_META}.FieldsV1": {"type": "object"},
    # Any JSON object, owned as one (structured-merge-diff's untyped atomic).
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "x-kubernetes-map-type": "atomic"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    f"{_APIEXTENSIONS}.CustomResourceSubresourceStatus": {"type": "object"},
    f"{_APIEXTENSIONS}.JSON": {},
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrArray": {},
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrBool": {},
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrStringArray": {},
}


class BuiltinSchema:
    """The schema of one built-in kind: `root` is the merge tree; the methods decode and encode as Go's codec does."""

    def __init__(self, name: str, shape: typed.Struct) -> None:
        self._name = name
        self._shape = shape

    @cached_property
    def root(self) -> SchemaNode:
        """The merge tree."""
        return _COMPILER.compile_schema_node({"$ref": self._name})

    def decode(self, obj: JSON) -> tuple[JSON, list[str]]:
        """Returns `obj` as the server stores it, and the paths of its unknown fields. Raises DecodeError."""
        return typed.decode_object(self._shape, obj)

    def complete(self, obj: JSON) -> JSON:
        """Returns `obj` with its defaults and every zero value that the server writes, without those that it omits."""
        result: JSON = self._shape.complete(obj)
        return result

    def empty(self) -> JSON:
        """Returns the object in which no field is set."""
        result: JSON = self._shape.complete({}, defaults=False)
        return result


@cache
def builtin_schema(group: str, version: str, kind: str) -> BuiltinSchema | None:
    """Returns the schema of a built-in kind, or None. Each schema is built once."""
    name = builtin_table.full_name(group, version, kind)
    shape = typed.shape_of(name)
    return BuiltinSchema(name, shape) if shape else None


class Definitions(Mapping[str, JSON]):
    """The built-in types by their full names, as OpenAPI v3 schemas that are built on first use.

    Their references are `#/components/schemas/NAME`.
    """

    def __getitem__(self, name: str) -> JSON:
        return _build_definition(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*builtin_table.type_names(), *_SPECIAL))

    def __len__(self) -> int:
        return len(builtin_table.type_names()) + len(_SPECIAL)


@cache
def _build_definition(name: str) -> JSON:
    """Returns the OpenAPI definition of a built-in type. Raises KeyError for an unknown one."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    struct = builtin_table.find_type(name)
    if struct is None:
        raise KeyError(name)
    result: JSON = {"type": "object", "properties": {field.name: _property_schema(field) for field in struct.fields}}
    if required := [field.name for field in struct.fields if field.required]:
        result["required"] = required
    if struct.atomic:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _property_schema(field: builtin_table.Field) -> JSON:
    """Returns the schema of a field, with its default and merge strategy."""
    result = _type_schema(field.type)
    if field.default is not None:
        result["default"] = field.default
    # A field that is always written cannot be absent: the published default is its zero value.
    elif field.written and not field.pointer:
        if (bare := field.type.partition("/")[0]) in _ZEROS:
            result["default"] = _ZEROS[bare]
        elif builtin_table.find_type(field.type) is not None:
            result["default"] = {}
    if field.merge:
        result[f"x-kubernetes-{'list' if field.type.startswith('[]') else 'map'}-type"] = field.merge
    if field.keys:
        result["x-kubernetes-list-map-keys"] = list(field.keys)
    if field.strategy:
        result["x-kubernetes-patch-strategy"] = field.strategy
    if field.merge_key:
        result["x-kubernetes-patch-merge-key"] = field.merge_key
    return result


def _type_schema(word: str) -> JSON:
    """Returns the schema of a type as the table writes it: `[]` for lists, `{}` for maps."""
    if word.startswith("[]"):
        return {"type": "array", "items": _type_schema(word[2:])}
    if word.startswith("{}"):
        return {"type": "object", "additionalProperties": _type_schema(word[2:])}
    bare = word.partition("/")[0]
    if bare in _SCALARS:
        return dict(_SCALARS[bare])
    # As in a real document: fields next to a reference are ignored, so the reference is in an allOf.
    return {"allOf": [{"$ref": f"{_REFERENCE}{word}"}]}


_COMPILER = Compiler(lambda reference: _build_definition(reference.removeprefix(_REFERENCE)))
