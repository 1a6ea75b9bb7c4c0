"""Bytes and dicts on one side, wire types on the other. camelCase and null live on the outer side alone."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
JSON = dict[str, Any]


# Of the decoder's words, which quote the value that did not fit, however long it is.
LONGEST_WORDS = 300
# What other people's text does to a decoder: no JSON, another type, nested without end, no UTF-8.
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class DecodeError(ValueError):
    """What was read is not the type that was asked for; the message names the field."""


class Undecodable(msgspec.Struct, frozen=True, order=True):
    """An object that is not as its kind should be: which one, as far as that can be read, and the decoder's words."""

    namespace: str
    name: str
    problem: str
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        name = self.name or "(without a name)"
        return f"{self.namespace}/{name}" if self.namespace else name

    def __str__(self) -> str:
        return f"{self.key} cannot be read: {self.problem}"


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], data: bytes | str) -> T:
    """Decode JSON into `kind`; raises DecodeError.

    A null where a value is expected means the same as leaving the field out, as it does for the API server.
    """
    try:
        return exactly(kind, data)
    except DecodeError as error:
        if not isinstance(error.__cause__, msgspec.ValidationError):
            raise
        # Rare, so the quick path does not pay for it: Go writes empty lists and times as null.
        return convert(kind, _parsed(data))


def exactly(kind: type[T], data: bytes | str) -> T:
    """Decode JSON in which no null stands for an absent value; raises DecodeError."""
    try:
        return cast("T", _decoder(cast("Hashable", kind)).decode(data))
    except _UNREADABLE as error:
        raise DecodeError(_words(error)) from error


def undecodable(data: bytes | str, error: DecodeError) -> Undecodable:
    """Which object `data` is, as far as it says so, and that `error` kept it from being read."""
    obj = _parsed(data)
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    namespace, name, version = (
        value if isinstance(metadata, dict) and isinstance(value := metadata.get(field), str) else ""
        for field in ("namespace", "name", "resourceVersion")
    )
    return Undecodable(namespace, name, str(error), version)


def _parsed(data: bytes | str) -> Any:
    # A value of another kind at the start (`404: Not Found`) is reported before the rest is seen to be no JSON at all.
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise DecodeError(_words(error)) from error


def convert(kind: type[T], obj: Any) -> T:
    """Make a `kind` out of dicts and lists, nulls left out; raises DecodeError."""
    try:
        return msgspec.convert(obj, kind, strict=True)
    except (msgspec.ValidationError, RecursionError):
        pass  # as in `decode`: the quick path does not pay for nulls
    try:
        return msgspec.convert(without_nulls(obj), kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(_words(error)) from error


def _words(error: Exception) -> str:
    """The decoder's words; of long ones the middle is left out, since the field stands at the end."""
    text = str(error)
    half = LONGEST_WORDS // 2
    return text if len(text) <= LONGEST_WORDS else f"{text[: half - 5]} ... {text[-half:]}"


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
