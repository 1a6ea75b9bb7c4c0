"""The OpenAPI v2 document in protobuf, the only form that kubectl and other Go clients request.

In: the document as a dict. Out: its bytes as `openapi.v2.Document`. Field numbers are those of
github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto; only the fields that our document uses are here. Without
it, kubectl fails on a kind that it does not know before it can report the kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from kubekit.lang.varint import write_bytes_field, write_double_field, write_int_field

JSON = dict[str, Any]
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# The second is the older name that clients send, which is not a valid media type by RFC 2045.
_ASKED = (MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")


def encode_openapi(document: JSON) -> bytes:
    """Encodes the document."""
    info, paths = document["info"], b""
    for path, item in document["paths"].items():
        operations = (write_bytes_field(_METHODS[method], _encode_operation(each)) for method, each in item.items())
        paths += _named_field(2, path, b"".join(operations))
    head = _text_field(1, document["swagger"])
    head += write_bytes_field(2, _text_field(1, info["title"]) + _text_field(2, info["version"]))
    return head + write_bytes_field(8, paths) + write_bytes_field(9, _encode_schemas(document["definitions"]))


def is_wanted(accept: str) -> bool:
    """Returns whether an Accept header asks for this form."""
    return any(clause.split(";")[0].strip() in _ASKED for clause in accept.split(","))


def _text_field(number: int, value: str) -> bytes:
    return write_bytes_field(number, value.encode())


def _repeated(write: Callable[[int, Any], bytes]) -> Callable[[int, Iterable[Any]], bytes]:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _any_field(number: int, value: Any) -> bytes:
    """Encodes any value as its YAML; values other than strings are written as JSON, which is YAML."""
    plain = isinstance(value, str)
    return write_bytes_field(number, _text_field(2, yaml.safe_dump(value) if plain else json.dumps(value)))


def _named_field(number: int, name: str, value: bytes) -> bytes:
    return write_bytes_field(number, _text_field(1, name) + write_bytes_field(2, value))


def _extension_fields(number: int, value: JSON) -> bytes:
    """Returns the extensions (`x-...`) of an element as repeated fields `number`."""
    return b"".join(
        write_bytes_field(number, _text_field(1, key) + _any_field(2, item))
        for key, item in value.items()
        if key.startswith("x-")
    )


# -- paths and schemas -------------------------------------------------------------------------------------------------

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _encode_operation(operation: JSON) -> bytes:
    """Encodes an operation with its parameters and responses."""
    result = _text_field(5, operation["operationId"])
    for parameter in operation.get("parameters", ()):
        # A query parameter: a NonBodyParameter, within a Parameter, within a ParametersItem.
        query = _text_field(2, parameter["in"]) + _text_field(4, parameter["name"]) + _text_field(6, "string")
        result += write_bytes_field(
            8, write_bytes_field(1, write_bytes_field(2, write_bytes_field(3, query + write_int_field(20, True))))
        )
    answers = (
        _named_field(1, code, write_bytes_field(1, _text_field(1, answer["description"])))
        for code, answer in operation["responses"].items()
    )
    return result + write_bytes_field(9, b"".join(answers)) + _extension_fields(13, operation)


def _encode_schemas(schemas: JSON) -> bytes:
    return b"".join(_named_field(1, name, _encode_schema(schema)) for name, schema in schemas.items())


def _encode_schema(schema: JSON) -> bytes:
    members = ((_FIELDS[name], value) for name, value in schema.items() if name in _FIELDS and value is not None)
    return b"".join(write(number, value) for (number, write), value in members) + _extension_fields(31, schema)


def _schema_field(number: int, schema: JSON) -> bytes:
    return write_bytes_field(number, _encode_schema(schema))


def _list_field(number: int, value: Any, write: Callable[[int, Any], bytes]) -> bytes:
    """Returns a message with one repeated field, from a list or its only item."""
    return write_bytes_field(number, _repeated(write)(1, value if isinstance(value, list) else [value]))


def _additional_field(number: int, value: JSON | bool) -> bytes:
    return write_bytes_field(number, write_int_field(2, value) if isinstance(value, bool) else _schema_field(1, value))


_FIELDS: dict[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text_field),
    "format": (2, _text_field),
    "title": (3, _text_field),
    "description": (4, _text_field),
    "default": (5, _any_field),
    "multipleOf": (6, write_double_field),
    "maximum": (7, write_double_field),
    "exclusiveMaximum": (8, write_int_field),
    "minimum": (9, write_double_field),
    "exclusiveMinimum": (10, write_int_field),
    "maxLength": (11, write_int_field),
    "minLength": (12, write_int_field),
    "pattern": (13, _text_field),
    "maxItems": (14, write_int_field),
    "minItems": (15, write_int_field),
    "uniqueItems": (16, write_int_field),
    "maxProperties": (17, write_int_field),
    "minProperties": (18, write_int_field),
    "required": (19, _repeated(_text_field)),
    "enum": (20, _repeated(_any_field)),
    "additionalProperties": (21, _additional_field),
    "type": (22, lambda number, value: _list_field(number, value, _text_field)),
    "items": (23, lambda number, value: _list_field(number, value, _schema_field)),
    "allOf": (24, _repeated(_schema_field)),
    "properties": (25, lambda number, value: write_bytes_field(number, _encode_schemas(value))),
    "example": (30, _any_field),
}
