"""Scalars as Go's decoders read them: each function checks a value and returns it as Go would write it back.

In: a JSON value and the name of the Go type that it is for. Out: the value in canonical form. Raises GoError with the
message of encoding/json (or of the type's own decoder). Nulls are handled before.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kubekit.lang.quantity import QuantityError, canonical_quantity
from kubesandbox.apiserver.metadata import rfc3339


class GoError(ValueError):
    """A value that cannot be decoded: its kind if `go_type` is set, otherwise the whole message."""

    def __init__(self, message: str, go_type: str = "") -> None:
        super().__init__(message)
        self.go_type = go_type


def kind_of(value: Any) -> str:
    """Returns the kind of a JSON value as encoding/json names it in its errors."""
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return kinds.get(type(value), "number")


def read_text(value: Any, go_type: str) -> str:
    """Reads a string."""
    if type(value) is not str:
        raise GoError(kind_of(value), go_type)
    return value


def read_boolean(value: Any, go_type: str) -> bool:
    """Reads a boolean."""
    if type(value) is not bool:
        raise GoError(kind_of(value), go_type)
    return value


def _read_integer(value: Any, go_type: str, bits: int) -> int:
    """Returns a signed integer of `bits`. Raises GoError as Go's JSON decoder words it."""
    if type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    if type(value) in {int, float}:
        raise GoError(f"number {value}", go_type)
    raise GoError(kind_of(value), go_type)


def read_int32(value: Any, go_type: str) -> int:
    """Reads an integer of 32 bits."""
    return _read_integer(value, go_type, 32)


def read_int64(value: Any, go_type: str) -> int:
    """Reads an integer of 64 bits."""
    return _read_integer(value, go_type, 64)


def read_number(value: Any, go_type: str) -> float:
    """Reads any number."""
    if type(value) not in {int, float}:
        raise GoError(kind_of(value), go_type)
    result: float = value
    return result


def int_or_string(value: Any, go_type: str) -> Any:
    """Reads an integer of 32 bits or any string."""
    return value if type(value) is str else _read_integer(value, go_type, 32)


def base64_text(value: Any, go_type: str) -> str:
    """Reads base64 and returns it without line breaks, which Go allows inside."""
    plain = read_text(value, go_type).replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        raise GoError(f"illegal base64 data at input byte {_first_fault(plain)}") from None
    return plain


def _first_fault(plain: str) -> int:
    match = re.match(r"[A-Za-z0-9+/]*", plain)
    end = match.end() if match else 0
    return end if end < len(plain) and plain[end] != "=" else len(plain) // 4 * 4


def read_quantity(value: Any, _go_type: str) -> str:
    """Reads a quantity and returns its canonical form."""
    if type(value) not in {str, int, float}:
        raise GoError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return _canonical_or_error(str(value).strip())


@lru_cache(4096)
def _canonical_or_error(text: str) -> str:
    try:
        return canonical_quantity(text)
    except QuantityError as error:
        raise GoError(str(error)) from None


# Go's time layouts by element: name in errors, pattern, name of its number if it has a range, and that range.
_Element = tuple[str, re.Pattern[str], str, int, int]
_TWO, _SECONDS = re.compile(r"\d\d"), re.compile(r"\d\d(?:[.,]\d+)?")


def _literal_element(text_: str) -> _Element:
    return text_, re.compile(re.escape(text_)), "", 0, 0


def _time_layout(seconds: re.Pattern[str], *fraction: _Element) -> tuple[_Element, ...]:
    """Returns the elements of Go's layout RFC3339, with `seconds` and a fraction as given."""
    return (
        ("2006", re.compile(r"\d{4}"), "", 0, 0), _literal_element("-"),
        ("01", _TWO, "month", 1, 12), _literal_element("-"),
        ("02", _TWO, "day", 1, 31), _literal_element("T"), ("15", _TWO, "hour", 0, 23), _literal_element(":"),
        ("04", _TWO, "minute", 0, 59), _literal_element(":"), ("05", seconds, "second", 0, 59), *fraction,
        ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d"), "", 0, 0),
    )  # fmt: skip


_RFC3339 = "2006-01-02T15:04:05Z07:00", _time_layout(_SECONDS)
_RFC3339_MICRO = (
    "2006-01-02T15:04:05.000000Z07:00",
    _time_layout(_TWO, (".000000", re.compile(r"\.\d{6}(?!\d)"), "", 0, 0)),
)


def _parse_time(text: str, layout: tuple[str, tuple[_Element, ...]]) -> datetime:
    """Returns a time in UTC. Raises GoError with the message of Go's time.Parse."""
    name, elements = layout
    at = 0
    for element, pattern, range_, low, high in elements:
        match = pattern.match(text, at)
        if match is None:
            raise GoError(f'parsing time "{text}" as "{name}": cannot parse "{text[at:]}" as "{element}"')
        if range_ and not low <= int(match[0][:2]) <= high:
            raise GoError(f'parsing time "{text}": {range_} out of range')
        at = match.end()
    if at < len(text):
        raise GoError(f'parsing time "{text}": extra text: "{text[at:]}"')
    zone = text.rfind("Z") if text.endswith("Z") else len(text) - 6
    try:
        fraction = text[19:zone][:7].replace(",", ".")
        return datetime.fromisoformat(text[:19] + fraction + text[zone:]).astimezone(UTC)
    except (ValueError, OverflowError):
        raise GoError(f'parsing time "{text}": day out of range') from None


# Go's time.Time in which nothing is set: it is written as null.
_ZERO = datetime(1, 1, 1, tzinfo=UTC)


@lru_cache(4096)
def _time_to_second(text: str) -> str | None:
    moment = _parse_time(text, _RFC3339)
    return None if moment == _ZERO else rfc3339(moment)


def read_time(value: Any, go_type: str) -> str | None:
    """Reads a time and returns it in UTC, to the second; None for Go's zero time, which is no time."""
    return _time_to_second(read_text(value, go_type))


def micro_time(value: Any, go_type: str) -> str | None:
    """Reads a time and returns it in UTC, to the microsecond; None for Go's zero time."""
    moment = _parse_time(read_text(value, go_type), _RFC3339_MICRO)
    return None if moment == _ZERO else rfc3339(moment, "microseconds")
