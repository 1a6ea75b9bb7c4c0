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


def encode(document: JSON) -> bytes:
    """Encodes the document."""
    return b"".join(
        (
            _text(1, document["swagger"]),
            _bytes(2, _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])),
            _bytes(8, b"".join(_named(2, path, _path_item(item)) for path, item in document["paths"].items())),
            _bytes(9, _schemas(document["definitions"])),
        )
    )


def is_wanted(accept: str) -> bool:
    """Returns whether an Accept header asks for this form."""
    return any(clause.split(";")[0].strip() in _ASKED for clause in accept.split(","))


def _varint(value: int) -> bytes:
    # Negative numbers are encoded in two's complement of 64 bits (protobuf.dev/programming-guides/encoding).
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _texts(number: int, values: list[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _int(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value))


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    """Encodes any value as its YAML; values other than strings are written as JSON, which is YAML."""
    plain = isinstance(value, str)
    return _bytes(number, _text(2, yaml.safe_dump(value) if plain else json.dumps(value)))


def _anys(number: int, values: list[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _named(number: int, name: str, value: bytes) -> bytes:
    return _bytes(number, _text(1, name) + _bytes(2, value))


def _extensions(number: int, value: JSON) -> bytes:
    return b"".join(
        _bytes(number, _text(1, key) + _any(2, item)) for key, item in value.items() if key.startswith("x-")
    )


# -- paths -------------------------------------------------------------------------------------------------------------

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path_item(item: JSON) -> bytes:
    return b"".join(_bytes(_METHODS[method], _operation(operation)) for method, operation in item.items())


def _operation(operation: JSON) -> bytes:
    answers = (
        _named(1, code, _bytes(1, _text(1, answer["description"]))) for code, answer in operation["responses"].items()
    )
    parameters = (_bytes(8, _bytes(1, _bytes(2, _bytes(3, _query(each))))) for each in operation.get("parameters", ()))
    return b"".join(
        (
            _text(5, operation["operationId"]),
            *parameters,
            _bytes(9, b"".join(answers)),
            _extensions(13, operation),
        )
    )


def _query(parameter: JSON) -> bytes:
    return _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, "string") + _int(20, True)


# -- schemas -----------------------------------------------------------------------------------------------------------


def _schemas(schemas: JSON) -> bytes:
    return b"".join(_named(1, name, _schema(schema)) for name, schema in schemas.items())


def _schema(schema: JSON) -> bytes:
    return b"".join(_members(schema)) + _extensions(31, schema)


def _members(schema: JSON) -> Iterator[bytes]:
    for name, value in schema.items():
        if (field := _FIELDS.get(name)) is not None and value is not None:
            number, write = field
            yield write(number, value)


def _type(number: int, value: str | list[str]) -> bytes:
    return _bytes(number, _texts(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: JSON | list[JSON]) -> bytes:
    return _bytes(
        number, b"".join(_bytes(1, _schema(each)) for each in (value if isinstance(value, list) else [value]))
    )


def _additional(number: int, value: JSON | bool) -> bytes:
    return _bytes(number, _int(2, value) if isinstance(value, bool) else _bytes(1, _schema(value)))


def _all_of(number: int, value: list[JSON]) -> bytes:
    return b"".join(_bytes(number, _schema(each)) for each in value)


def _properties(number: int, value: JSON) -> bytes:
    return _bytes(number, _schemas(value))


_FIELDS: dict[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _int),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _int),
    "maxLength": (11, _int),
    "minLength": (12, _int),
    "pattern": (13, _text),
    "maxItems": (14, _int),
    "minItems": (15, _int),
    "uniqueItems": (16, _int),
    "maxProperties": (17, _int),
    "minProperties": (18, _int),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "allOf": (24, _all_of),
    "properties": (25, _properties),
    "example": (30, _any),
}
