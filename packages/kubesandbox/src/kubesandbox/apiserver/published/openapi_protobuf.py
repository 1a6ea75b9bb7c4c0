"""The OpenAPI v2 document in protobuf, the only form that kubectl and other Go clients request.

In: the document as a dict. Out: its bytes as `openapi.v2.Document`. Field numbers are those of
github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto; only the fields that our document uses are here. Without
it, kubectl fails on a kind that it does not know before it can report the kind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import yaml

JSON = dict[str, Any]
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# The second is the older name that clients send, which is not a valid media type by RFC 2045.
_ASKED = (MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode_openapi(document: JSON) -> bytes:
    """Encodes the document."""
    return b"".join(
        (
            _text_field(1, document["swagger"]),
            _bytes_field(2, _text_field(1, document["info"]["title"]) + _text_field(2, document["info"]["version"])),
            _bytes_field(
                8, b"".join(_named_field(2, path, _path_item(item)) for path, item in document["paths"].items())
            ),
            _bytes_field(9, _encode_schemas(document["definitions"])),
        )
    )


def is_wanted(accept: str) -> bool:
    """Returns whether an Accept header asks for this form."""
    return any(clause.split(";")[0].strip() in _ASKED for clause in accept.split(","))


def _encode_varint(value: int) -> bytes:
    """Encodes a number as a protobuf varint."""
    # Negative numbers are encoded in two's complement of 64 bits (protobuf.dev/programming-guides/encoding).
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _bytes_field(number: int, value: bytes) -> bytes:
    return _encode_varint(number << 3 | _BYTES) + _encode_varint(len(value)) + value


def _text_field(number: int, value: str) -> bytes:
    return _bytes_field(number, value.encode())


def _text_fields(number: int, values: list[str]) -> bytes:
    return b"".join(_text_field(number, value) for value in values)


def _int_field(number: int, value: int) -> bytes:
    return _encode_varint(number << 3 | _VARINT) + _encode_varint(int(value))


def _double_field(number: int, value: float) -> bytes:
    return _encode_varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def _any_field(number: int, value: Any) -> bytes:
    """Encodes any value as its YAML; values other than strings are written as JSON, which is YAML."""
    plain = isinstance(value, str)
    return _bytes_field(number, _text_field(2, yaml.safe_dump(value) if plain else json.dumps(value)))


def _any_fields(number: int, values: list[Any]) -> bytes:
    return b"".join(_any_field(number, value) for value in values)


def _named_field(number: int, name: str, value: bytes) -> bytes:
    return _bytes_field(number, _text_field(1, name) + _bytes_field(2, value))


def _extension_fields(number: int, value: JSON) -> bytes:
    """Returns the extensions (`x-...`) of an element as repeated fields `number`."""
    return b"".join(
        _bytes_field(number, _text_field(1, key) + _any_field(2, item))
        for key, item in value.items()
        if key.startswith("x-")
    )


# -- paths -------------------------------------------------------------------------------------------------------------

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path_item(item: JSON) -> bytes:
    return b"".join(_bytes_field(_METHODS[method], _encode_operation(operation)) for method, operation in item.items())


def _encode_operation(operation: JSON) -> bytes:
    """Encodes an operation with its parameters and responses."""
    answers = (
        _named_field(1, code, _bytes_field(1, _text_field(1, answer["description"])))
        for code, answer in operation["responses"].items()
    )
    parameters = (
        _bytes_field(8, _bytes_field(1, _bytes_field(2, _bytes_field(3, _encode_query(parameter)))))
        for parameter in operation.get("parameters", ())
    )
    return b"".join(
        (
            _text_field(5, operation["operationId"]),
            *parameters,
            _bytes_field(9, b"".join(answers)),
            _extension_fields(13, operation),
        )
    )


def _encode_query(parameter: JSON) -> bytes:
    """Returns a query parameter as a NonBodyParameter of openapi.v2."""
    return (
        _text_field(2, parameter["in"])
        + _text_field(4, parameter["name"])
        + _text_field(6, "string")
        + _int_field(20, True)
    )


# -- schemas -----------------------------------------------------------------------------------------------------------


def _encode_schemas(schemas: JSON) -> bytes:
    return b"".join(_named_field(1, name, _encode_schema(schema)) for name, schema in schemas.items())


def _encode_schema(schema: JSON) -> bytes:
    return b"".join(_encode_members(schema)) + _extension_fields(31, schema)


def _encode_members(schema: JSON) -> Iterator[bytes]:
    for name, value in schema.items():
        if (field := _FIELDS.get(name)) is not None and value is not None:
            number, write = field
            yield write(number, value)


def _type_field(number: int, value: str | list[str]) -> bytes:
    return _bytes_field(number, _text_fields(1, [value] if isinstance(value, str) else value))


def _items_field(number: int, value: JSON | list[JSON]) -> bytes:
    return _bytes_field(
        number,
        b"".join(_bytes_field(1, _encode_schema(schema)) for schema in (value if isinstance(value, list) else [value])),
    )


def _additional_field(number: int, value: JSON | bool) -> bytes:
    return _bytes_field(
        number, _int_field(2, value) if isinstance(value, bool) else _bytes_field(1, _encode_schema(value))
    )


def _all_of(number: int, value: list[JSON]) -> bytes:
    return b"".join(_bytes_field(number, _encode_schema(member_schema)) for member_schema in value)


def _properties_field(number: int, value: JSON) -> bytes:
    return _bytes_field(number, _encode_schemas(value))


_FIELDS: dict[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text_field),
    "format": (2, _text_field),
    "title": (3, _text_field),
    "description": (4, _text_field),
    "default": (5, _any_field),
    "multipleOf": (6, _double_field),
    "maximum": (7, _double_field),
    "exclusiveMaximum": (8, _int_field),
    "minimum": (9, _double_field),
    "exclusiveMinimum": (10, _int_field),
    "maxLength": (11, _int_field),
    "minLength": (12, _int_field),
    "pattern": (13, _text_field),
    "maxItems": (14, _int_field),
    "minItems": (15, _int_field),
    "uniqueItems": (16, _int_field),
    "maxProperties": (17, _int_field),
    "minProperties": (18, _int_field),
    "required": (19, _text_fields),
    "enum": (20, _any_fields),
    "additionalProperties": (21, _additional_field),
    "type": (22, _type_field),
    "items": (23, _items_field),
    "allOf": (24, _all_of),
    "properties": (25, _properties_field),
    "example": (30, _any_field),
}
