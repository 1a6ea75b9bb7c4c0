"""Converts between JSON (bytes or dicts) and wire types. camelCase and null exist on the JSON side only."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
JSON = dict[str, Any]


# Characters kept of a decoder's message, which quotes the invalid value, however long that is.
LONGEST_WORDS = 300
# Errors of a decoder on untrusted input: invalid JSON, another type, nested too deeply, invalid UTF-8, half of a
# surrogate pair in a str.
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, UnicodeEncodeError)


class DecodeError(ValueError):
    """The data does not have the requested type; the message names the field."""


class Undecodable(msgspec.Struct, frozen=True, order=True):
    """An object that could not be decoded: its identity, as far as that can be read, and the decoder's message."""

    namespace: str
    name: str
    problem: str
    resource_version: str = ""

    @property
    def key(self) -> str:
        """The object's key: `namespace/name`, or the name alone."""
        name = self.name or "(without a name)"
        return f"{self.namespace}/{name}" if self.namespace else name

    def __str__(self) -> str:
        return f"{self.key} cannot be read: {self.problem}"


@cache
def _decoder_of(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], data: bytes | str) -> T:
    """Decodes JSON into `kind`; a null member is an absent one, as for the API server. Raises DecodeError."""
    try:
        return decode_strictly(kind, data)
    except DecodeError as error:
        if not isinstance(error.__cause__, msgspec.ValidationError):
            raise
        # Go writes empty lists and times as null. That is rare, so only the slow path handles it.
        return convert(kind, _parse_json(data))


def decode_strictly(kind: type[T], data: bytes | str) -> T:
    """Decodes JSON in which no null represents an absent value. Raises DecodeError."""
    try:
        return cast("T", _decoder_of(cast("Hashable", kind)).decode(data))
    except _UNREADABLE as error:
        raise DecodeError(_error_text(error)) from error


def decode_bounded(kind: type[T], data: bytes, *, most_values: int) -> T:
    """Decodes JSON of other people into `kind`. Raises DecodeError, before any object is made, for too many values."""
    if (values := values_in(data)) > most_values:
        raise DecodeError(f"it has {values} values; the limit is {most_values}")
    return decode(kind, data)


def values_in(data: bytes) -> int:
    """Returns a number that the values in the JSON `data` do not exceed, in linear time and without decoding them.

    Every value but the outermost follows a comma or an opening bracket, or is the value of a member, whose name does.
    """
    return 1 + sum(map(data.count, (b",", b"[", b"{")))


def identify_undecodable(data: bytes | str, error: DecodeError) -> Undecodable:
    """Returns the identity of the object in `data`, as far as it can be read, with `error` as its problem."""
    obj = _parse_json(data)
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    namespace, name, version = (
        value if isinstance(metadata, dict) and isinstance(value := metadata.get(field), str) else ""
        for field in ("namespace", "name", "resourceVersion")
    )
    return Undecodable(namespace, name, str(error), version)


def _parse_json(data: bytes | str) -> Any:
    """Returns the document. Raises DecodeError."""
    # A type error at the start (`404: Not Found`) is raised before the decoder sees that the rest is not JSON.
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise DecodeError(_error_text(error)) from error


def convert(kind: type[T], obj: Any) -> T:
    """Converts dicts and lists into a `kind`, ignoring nulls. Raises DecodeError."""
    try:
        return msgspec.convert(obj, kind, strict=True)
    except (msgspec.ValidationError, RecursionError):
        pass  # as in `decode`: only the slow path handles nulls
    try:
        return msgspec.convert(without_nulls(obj), kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(_error_text(error)) from error


def _error_text(error: Exception) -> str:
    """Returns the decoder's message; the middle of a long one is left out, because the field is named at the end."""
    text = str(error)
    half = LONGEST_WORDS // 2
    return text if len(text) <= LONGEST_WORDS else f"{text[: half - 5]} ... {text[-half:]}"


def encode(obj: Any) -> bytes:
    """Returns the compact JSON of a wire type, dict or list; fields at their default are omitted."""
    return msgspec.json.encode(obj)


def to_dict(obj: Any) -> JSON:
    """Returns the dict that `encode` would write."""
    return cast("JSON", msgspec.to_builtins(obj))


def without_nulls(obj: Any) -> Any:
    """Returns `obj` with every null member of a dict removed, at any depth."""
    if isinstance(obj, dict):
        return {key: without_nulls(value) for key, value in obj.items() if value is not None}
    if isinstance(obj, list):
        return [without_nulls(item) for item in obj]
    return obj
