"""Kubernetes' protobuf encoding: the bytes of an object to its dict in JSON, and the dict to bytes.

Newer Go clients send built-in kinds this way whatever the server prefers (`kubectl create`, `kubectl auth can-i`).
Only clients that accept nothing else are answered so: stored objects are JSON. Field numbers are in
`protobuf_fields.json`, which `tools/generate_protobuf_fields.py` makes from the struct tags of Kubernetes' own modules.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from kubekit.lang.varint import read_varint, write_bytes_field, write_double_field, write_int_field
from kubesandbox.apiserver import kubernetes_version, version_tables

JSON = dict[str, Any]
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
# k8s.io/apimachinery/pkg/runtime/serializer/protobuf: every body begins with these bytes, then a runtime.Unknown.
MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ZERO: dict[str, Any] = {"string": "", "bool": False, "int": 0, "double": 0.0, "bytes": ""}
# Every group has these types as its own (metav1.AddToGroupVersion), so clients send `apps/v1, Kind=DeleteOptions` too.
_OPTIONS = {"DeleteOptions": "meta/v1.DeleteOptions"}


class ProtobufError(ValueError):
    """A body that is not a protobuf object of a kind in the table."""


def decode_protobuf(body: bytes) -> JSON:
    """Decodes the object in `body`. Raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise ProtobufError("the body does not begin with the protobuf prefix of Kubernetes")
    try:
        envelope = dict(read_fields(body[len(MAGIC) :]))
        type_meta = {number: bytes(value).decode() for number, value in read_fields(envelope.get(1, b""))}
        api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
        if envelope.get(4, b"").startswith(b"application/json"):
            return _checked_object(orjson.loads(envelope.get(2, b"")))
        root = _OPTIONS.get(kind) or field_table()["roots"].get(f"{api_version}/{kind}")
        if root is None:
            raise ProtobufError(f'no protobuf encoding is known for kind "{kind}" in version "{api_version}"')
        return {"apiVersion": api_version, "kind": kind} | _decode_message(root, envelope.get(2, b""))
    except OverflowError as error:
        raise ProtobufError("a number in the protobuf body is too long") from error
    except (IndexError, struct.error, UnicodeDecodeError, AttributeError, TypeError, orjson.JSONDecodeError) as error:
        raise ProtobufError(f"the protobuf body cannot be read: {error}") from error


def encode_protobuf(obj: JSON) -> bytes | None:
    """Encodes an object or a list with its envelope; returns None for a kind that the table does not have.

    Values that equal zero are written only if the object has them; Go's readers see no difference.
    """
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    roots, named = field_table()["roots"], f"{api_version or 'v1'}/{kind}"
    if root := roots.get(named):
        content = _encode_message(root, obj)
    elif item := roots.get(named.removesuffix("List")):
        # The lists of all kinds have these two fields.
        content = write_bytes_field(1, _encode_message("meta/v1.ListMeta", obj.get("metadata") or {}))
        content += b"".join(write_bytes_field(2, _encode_message(item, each)) for each in obj.get("items") or ())
    else:
        return None
    type_meta = write_bytes_field(1, api_version.encode()) + write_bytes_field(2, kind.encode())
    return MAGIC + write_bytes_field(1, type_meta) + write_bytes_field(2, content) + b"\x1a\x00\x22\x00"


def encode_event(type_: str, obj: bytes) -> bytes:
    """Returns a watch event with the object of a JSON text: its length in four bytes, then a metav1.WatchEvent.

    Raises ProtobufError for a kind that the table does not have.
    """
    encoded = encode_protobuf(orjson.loads(obj))
    if encoded is None:
        raise ProtobufError(f"no protobuf encoding is known for {obj[:80].decode(errors='replace')}")
    event = write_bytes_field(1, type_.encode()) + write_bytes_field(2, write_bytes_field(1, encoded))
    return struct.pack(">I", len(event)) + event


def encoded_kinds() -> frozenset[str]:
    """Returns the kinds that can be decoded, such as `apps/v1/Deployment`."""
    return frozenset(field_table()["roots"])


@cache
def field_table() -> JSON:
    """Returns the messages of each kind (`roots`) and the fields of each message (`messages`)."""
    content = files("kubesandbox.apiserver.http").joinpath("protobuf_fields.json").read_bytes()
    return kubernetes_version.table("protobuf", version_tables.parse_protobuf(content))


@cache
def _fields_of(message: str) -> tuple[dict[int, list[str]], frozenset[str]]:
    """Returns the fields of a message by number (name in JSON, kind, whether zero is omitted), and their names."""
    fields = {row[0]: row[1:] for row in field_table()["messages"][message]}
    return fields, frozenset(field[0] for field in fields.values())


def _checked_object(value: Any) -> JSON:
    if not isinstance(value, dict):
        raise ProtobufError("the body is not an object")
    return value


def read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yields field numbers and raw values: an int for a varint, bytes for the other wire types."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, at = read_varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(wire, -1)
        if size < 0 or at + size > len(data):
            raise ProtobufError("the protobuf body is cut off or damaged")
        yield key >> 3, data[at : at + size]
        at += size


def _decode_message(name: str, data: bytes) -> JSON:
    """Decodes the message `name` into its JSON; fields that the table does not know are dropped."""
    fields_by_number, _ = _fields_of(name)
    result: JSON = {}
    for number, raw in read_fields(data):
        if number not in fields_by_number:
            continue  # a field newer than the table
        json_name, kind, *omit = fields_by_number[number]
        if kind.startswith("[]"):
            if not isinstance(result.get(json_name), list):
                result[json_name] = []
            result[json_name].append(_decode_value(kind[2:], raw))
        elif kind.startswith("{}"):
            entry = dict(read_fields(raw))
            has_value = 2 in entry or kind.startswith("{}@")
            value = _decode_value(kind[2:], entry.get(2, b"")) if has_value else _ZERO.get(kind[2:])
            result.setdefault(json_name, {})[entry.get(1, b"").decode()] = value
        else:
            value, zero = _decode_value(kind, raw), _ZERO.get(kind) if omit else None
            if value is None or (zero is not None and value == zero):
                continue
            if not json_name:
                result.update(value)  # inlined in JSON
            elif json_name == "@items":
                result.setdefault(json_name, []).append(value)
            else:
                result[json_name] = value
    return result


def _decode_value(kind: str, raw: Any) -> Any:
    """Decodes a value of a scalar kind, or of the message `@NAME`."""
    if kind.startswith("@"):
        decoded, (_, names) = _decode_message(kind[1:], raw), _fields_of(kind[1:])
        if "@items" in names:
            return decoded.get("@items", [])
        return decoded.get("@value") if "@value" in names else decoded
    return _SCALARS[kind](raw)


def _signed_int(raw: int) -> int:
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _decode_time(raw: bytes, *, micro: bool = False) -> str | None:
    parts = dict(read_fields(raw))
    if not parts.get(1):
        return None  # the zero time is null in JSON
    seconds = datetime.fromtimestamp(_signed_int(parts[1]), UTC).isoformat().removesuffix("+00:00")
    return f"{seconds}.{parts.get(2, 0) // 1000:06d}Z" if micro else f"{seconds}Z"


def _read_first(raw: bytes, default: Any) -> Any:
    return dict(read_fields(raw)).get(1, default)


def _int_or_string(raw: bytes) -> int | str:
    parts = dict(read_fields(raw))
    return bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed_int(parts.get(2, 0))


_SCALARS: dict[str, Any] = {
    "string": lambda raw: raw.decode(),
    "bool": bool,
    "int": _signed_int,
    "double": lambda raw: struct.unpack("<d", raw)[0],
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "time": _decode_time,
    "microtime": lambda raw: _decode_time(raw, micro=True),
    "duration": lambda raw: f"{_signed_int(_read_first(raw, 0)) / 1e9:g}s",
    "quantity": lambda raw: bytes(_read_first(raw, b"")).decode(),
    "intorstring": _int_or_string,
    "raw": lambda raw: orjson.loads(text) if (text := _read_first(raw, b"")) else None,
}


def _encode_message(name: str, obj: Any) -> bytes:
    """Encodes the message `name` from its JSON; members that the table does not know are left out."""
    parts: list[bytes] = []
    for number, json_name, kind, *_ in field_table()["messages"][name]:
        if not json_name:  # inlined in JSON
            if inlined := _encode_message(kind[1:], obj):
                parts.append(write_bytes_field(number, inlined))
        elif json_name == "@items":
            parts.append(_encode_field(number, kind, obj))
        elif json_name == "@value":
            parts.append(_encode_choice(number, kind, obj))
        elif (value := obj.get(json_name)) is not None:
            parts.append(_encode_field(number, kind, value))
    return b"".join(parts)


def _encode_choice(number: int, kind: str, value: Any) -> bytes:
    """Encodes a member of a message that is one of several values, if it is the one that `value` has."""
    if kind == "bool":  # a schema instead of a boolean allows what it describes (apiextensions/v1/marshal.go)
        return write_int_field(number, value is not False)
    if isinstance(value, bool) or kind.startswith("[]") is not isinstance(value, list):
        return b""
    return _encode_field(number, kind, value)


def _encode_field(number: int, kind: str, value: Any) -> bytes:
    """Encodes a field of any kind from its JSON."""
    if kind.startswith("[]"):
        return b"".join(_encode_field(number, kind[2:], item) for item in value)
    if kind.startswith("{}"):
        return b"".join(
            write_bytes_field(number, write_bytes_field(1, key.encode()) + _encode_field(2, kind[2:], item))
            for key, item in value.items()
        )
    if kind.startswith("@"):
        return write_bytes_field(number, _encode_message(kind[1:], value))
    return _WRITERS[kind](number, value)


def _write_time(number: int, value: str) -> bytes:
    moment = datetime.fromisoformat(value)
    nanos = write_int_field(2, moment.microsecond * 1000)
    return write_bytes_field(number, write_int_field(1, int(moment.timestamp() // 1)) + nanos)


def _write_int_or_string(number: int, value: int | str) -> bytes:
    if isinstance(value, int):
        return write_bytes_field(number, write_int_field(2, value))
    return write_bytes_field(number, write_int_field(1, 1) + write_bytes_field(3, value.encode()))


_WRITERS: dict[str, Callable[[int, Any], bytes]] = {
    "string": lambda number, value: write_bytes_field(number, value.encode()),
    "bool": write_int_field,
    "int": write_int_field,
    "double": write_double_field,
    "bytes": lambda number, value: write_bytes_field(number, base64.b64decode(value)),
    "time": _write_time,
    "microtime": _write_time,
    "quantity": lambda number, value: write_bytes_field(number, write_bytes_field(1, str(value).encode())),
    "intorstring": _write_int_or_string,
    "raw": lambda number, value: write_bytes_field(number, write_bytes_field(1, orjson.dumps(value))),
}
