"""Bytes and dicts on one side, wire types on the other. camelCase and null live on the outer side alone."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
JSON = dict[str, Any]


class DecodeError(ValueError):
    """What was read is not the type that was asked for; the message names the field."""


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], data: bytes | str) -> T:
    """Decode JSON into `kind`; raises DecodeError.

    A null where a value is expected means the same as leaving the field out, as it does for the API server.
    """
    try:
        return cast("T", _decoder(cast("Hashable", kind)).decode(data))
    except msgspec.ValidationError:
        # Rare, so the quick path does not pay for it: Go writes empty lists and times as null.
        return convert(kind, _parsed(data))
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from error


def _parsed(data: bytes | str) -> Any:
    # A value of another kind at the start (`404: Not Found`) is reported before the rest is seen to be no JSON at all.
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from error


def convert(kind: type[T], obj: Any) -> T:
    """Make a `kind` out of dicts and lists, nulls left out; raises DecodeError."""
    try:
        return msgspec.convert(without_nulls(obj), kind, strict=True)
    except msgspec.ValidationError as error:
        raise DecodeError(str(error)) from error


def encode(obj: Any) -> bytes:
    """Compact JSON of a wire type, dict or list; fields at their default are left out."""
    return msgspec.json.encode(obj)


def to_dict(obj: Any) -> JSON:
    """The dict that `encode` would write."""
    return cast("JSON", msgspec.to_builtins(obj))


def without_nulls(obj: Any) -> Any:
    """`obj` with every null member of a dict left out, at any depth."""
    if isinstance(obj, dict):
        return {key: without_nulls(value) for key, value in obj.items() if value is not None}
    if isinstance(obj, list):
        return [without_nulls(item) for item in obj]
    return obj
