"""Decoding and encoding of built-in kinds, as Go's codec does both.

`decode` returns the object without unknown fields (and their paths, in order), without nulls, its times and quantities
in canonical form; it raises DecodeError in Go's words. `complete` returns the object with the defaults of its types and
every zero that Go writes, its members in the order of the structs.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import Any

from kubekit.lang.quantity import QuantityError, canonical_quantity
from kubesandbox.apiserver.metadata import rfc3339
from kubesandbox.apiserver.schema import builtin_table, go_defaults

JSON = dict[str, Any]


class GoError(ValueError):
    """A value that cannot be decoded: its kind if `go_type` is set, otherwise the whole message."""

    def __init__(self, message: str, go_type: str = "") -> None:
        super().__init__(message)
        self.go_type = go_type


def kind_of(value: Any) -> str:
    """Returns the kind of a JSON value as encoding/json names it in its errors."""
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return kinds.get(type(value), "number")


def _reader(*types: type) -> Callable[[Any, str], Any]:
    """Returns a reader of values of these JSON types."""

    def read(value: Any, go_type: str) -> Any:
        if type(value) not in types:
            raise GoError(kind_of(value), go_type)
        return value

    return read


_read_text = _reader(str)


def _read_integer(value: Any, go_type: str, *, bits: int) -> int:
    """Reads a signed integer of `bits`."""
    if type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    raise GoError(f"number {value}" if type(value) in {int, float} else kind_of(value), go_type)


def _base64_text(value: Any, go_type: str) -> str:
    """Reads base64, or a list of bytes, and returns base64 without line breaks, which Go allows inside."""
    if type(value) is list:
        for item in value:
            if item is not None and not (type(item) is int and 0 <= item <= 255):
                raise GoError(f"number {item}" if type(item) in {int, float} else kind_of(item), "uint8")
        return base64.b64encode(bytes(item or 0 for item in value)).decode()
    plain: str = _read_text(value, go_type).replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        match = re.match(r"[A-Za-z0-9+/]*", plain)
        end = match.end() if match else 0
        at = end if end < len(plain) and plain[end] != "=" else len(plain) // 4 * 4
        raise GoError(f"illegal base64 data at input byte {at}") from None
    return plain


def _read_quantity(value: Any, _go_type: str, scale: int = -9) -> str:
    """Reads a quantity and returns its canonical form, rounded up to multiples of ten to the power of `scale`."""
    if type(value) not in {str, int, float}:
        raise GoError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    try:
        return _cached_quantity(str(value).strip(), scale)
    except QuantityError as error:
        raise GoError(str(error)) from None


_cached_quantity = lru_cache(4096)(canonical_quantity)


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
def _canonical_time(text: str, *, micro: bool) -> str | None:
    """Returns a time in UTC, to the second or microsecond; None for Go's zero time, which is no time."""
    moment = _parse_time(text, _RFC3339_MICRO if micro else _RFC3339)
    return None if moment == _ZERO else rfc3339(moment, "microseconds" if micro else "seconds")


# -- Types -------------------------------------------------------------------------------------------------------------

# The limit of unknown fields that Go's decoder (sigs.k8s.io/json) collects.
_MOST_UNKNOWN = 100


class DecodeError(ValueError):
    """An object that does not fit its type; the message is that of Go's decoder."""


class _Key(str):
    """A map's key in a path: part of an object's path, but not of the path that Go's errors name."""

    __slots__ = ()


@dataclass(slots=True)
class Context:
    """The decoder's position in the object, and the unknown fields met so far."""

    place: list[str | int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    struct: str = ""

    def path(self) -> str:
        """Returns the path, for example `spec.containers[0].image`."""
        text = ""
        for part in self.place:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    def mismatch(self, error: GoError) -> DecodeError:
        """Returns the error with its field, as encoding/json words it: innermost struct, path without indices."""
        if not error.go_type:
            return DecodeError(str(error))
        if not self.struct:
            return DecodeError(f"json: cannot unmarshal {error} into Go value of type {error.go_type}")
        field_path = ".".join([self.struct, *(part for part in self.place if type(part) is str)])
        return DecodeError(f"json: cannot unmarshal {error} into Go struct field {field_path} of type {error.go_type}")


class Shape:
    """The reading and writing of one type's values; this base class accepts any value unchanged."""

    go = "interface {}"
    zero: Any = None

    def decode(self, value: Any, _context: Context) -> Any:
        """Returns `value` as it is stored."""
        return value

    def complete(self, value: Any, *, defaults: bool = True) -> Any:  # noqa: ARG002 - those within a struct use it
        """Returns `value` as it is answered; without `defaults` with its zero values only."""
        return value


class Scalar(Shape):
    """A string, number or time: `read` checks and normalizes it, raising GoError."""

    def __init__(self, go: str, zero: Any, read: Callable[[Any, str], Any]) -> None:
        self.go, self.zero, self._read = go, zero, read

    def decode(self, value: Any, _context: Context) -> Any:
        """Returns the checked value in canonical form."""
        return self._read(value, self.go)


class List(Shape):
    """A list of items of one shape; a null item becomes the zero value."""

    def __init__(self, items: Shape) -> None:
        self.items, self.go = items, f"[]{items.go}"
        self._nested = not isinstance(items, Scalar)

    def decode(self, value: Any, context: Context) -> Any:
        """Decodes each item."""
        if type(value) is not list:
            raise GoError(kind_of(value), self.go)
        result, place = [], context.place
        for index, item in enumerate(value):
            place.append(index)
            result.append(_decode_or_zero(self.items, item, context))
            place.pop()
        return result

    def complete(self, value: Any, *, defaults: bool = True) -> Any:
        """Completes each item."""
        if not self._nested or not isinstance(value, list):
            return value
        return [self.items.complete(item, defaults=defaults) for item in value]


class Map(Shape):
    """A map with values of one shape and any keys."""

    def __init__(self, values: Shape) -> None:
        self.values, self.go = values, f"map[string]{values.go}"
        self._nested = not isinstance(values, Scalar)

    def decode(self, value: Any, context: Context) -> Any:
        """Decodes each value."""
        if type(value) is not dict:
            raise GoError(kind_of(value), self.go)
        result = {}
        for key, member in value.items():
            context.place.append(_Key(key))
            result[key] = _decode_or_zero(self.values, member, context)
            context.place.pop()
        return result

    def complete(self, value: Any, *, defaults: bool = True) -> Any:
        """Completes each value."""
        if not self._nested or not isinstance(value, dict):
            return value
        return {key: self.values.complete(member, defaults=defaults) for key, member in value.items()}


def _decode_or_zero(shape: Shape, value: Any, context: Context) -> Any:
    return _zero_value(shape) if value is None else shape.decode(value, context)


class Struct(Shape):
    """The fields of one struct of the table. Built in two steps, since types are recursive."""

    def __init__(self, type_: builtin_table.Type) -> None:
        package, _, self.name = type_.name.rpartition(".")
        self.go = f"{package.rpartition('.')[2]}.{self.name}"
        self.fields: dict[str, Shape] = {}
        self._rules: list[tuple[str, builtin_table.Field, Shape]] = []
        self._default = go_defaults.default_of(type_.name)

    def fill(self, fields: list[tuple[builtin_table.Field, Shape]]) -> None:
        """Sets the struct's fields."""
        self.fields = {member.name: shape for member, shape in fields}
        self._rules = [(member.name, member, shape) for member, shape in fields]

    def decode(self, value: Any, context: Context) -> Any:
        """Decodes the known members that are not null."""
        if type(value) is not dict:
            raise GoError(kind_of(value), self.go)
        result, place, fields = {}, context.place, self.fields
        outer, context.struct = context.struct, self.name
        for name, member in value.items():
            place.append(name)
            shape = fields.get(name)
            if shape is None:
                if len(context.unknown) < _MOST_UNKNOWN:
                    context.unknown.append(context.path())
            elif member is not None:
                result[name] = shape.decode(member, context)
            place.pop()
        context.struct = outer
        return result

    def complete(self, value: Any, *, defaults: bool = True) -> Any:
        """Returns every field that Go writes."""
        if not isinstance(value, dict):
            return value
        if defaults and self._default is not None:
            value = dict(value)
            self._default(value)
        result: JSON = {}
        for name, rule, shape in self._rules:
            member = value.get(name)
            # An IntOrString that is an empty text is another value than its zero, the number 0.
            if member is None or not (member or rule.pointer or (member == "" and shape.zero == 0)):
                if defaults and rule.default is not None:
                    result[name] = rule.default
                elif rule.written:
                    result[name] = None if rule.pointer else _zero_value(shape, defaults=defaults)
            else:
                result[name] = shape.complete(member, defaults=defaults)
        if len(result) < len(value):  # what was stored by a server that knew more
            result |= {name: member for name, member in value.items() if name not in self.fields}
        return result


def _zero_value(shape: Shape, *, defaults: bool = True) -> Any:
    return shape.complete({}, defaults=defaults) if isinstance(shape, Struct) else shape.zero


def decode_object(shape: Shape, obj: JSON) -> tuple[JSON, list[str]]:
    """Returns `obj` as the server stores it, and the paths of its unknown fields. Raises DecodeError."""
    context = Context()
    try:
        return shape.decode(obj, context), list(dict.fromkeys(context.unknown))
    except GoError as error:
        raise context.mismatch(error) from None


# -- shapes of the table's words ---------------------------------------------------------------------------------------

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED: dict[str, Shape] = {
    f"{_META}.Time": Scalar("string", None, lambda value, go: _canonical_time(_read_text(value, go), micro=False)),
    f"{_META}.MicroTime": Scalar("string", None, lambda value, go: _canonical_time(_read_text(value, go), micro=True)),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Scalar("", "0", _read_quantity),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Scalar(
        "int32", 0, lambda value, go: value if type(value) is str else _read_integer(value, go, bits=32)
    ),
    # A ResourceList, whose amounts are multiples of a milli (SetDefaults_ResourceList of core/v1).
    "{}io.k8s.apimachinery.pkg.api.resource.Quantity": Map(Scalar("", "0", partial(_read_quantity, scale=-3))),
    "s": Scalar("string", "", _read_text),
    "i32": Scalar("int32", 0, partial(_read_integer, bits=32)),
    "i64": Scalar("int64", 0, partial(_read_integer, bits=64)),
    "n": Scalar("float64", 0, _reader(int, float)),
    "b": Scalar("bool", False, _reader(bool)),
    "bytes": Scalar("[]uint8", None, _base64_text),
}
_ANYTHING = Shape()


def shape_of(name: str) -> Struct | None:
    """Returns the shape of a type by its full name, or None if the table does not have it."""
    shape = _shape_of_word(name)
    return shape if isinstance(shape, Struct) else None


@cache
def _shape_of_word(word: str) -> Shape:
    """Returns the shape of a type as the table writes it."""
    if word in _NAMED:
        return _NAMED[word]
    if word[:2] == "[]":
        return List(_shape_of_word(word[2:]))
    if word[:2] == "{}":
        return Map(_shape_of_word(word[2:]))
    if word.startswith("s/"):
        return Scalar(word[2:], "", _read_text)
    struct, entry = _structs.get(word), builtin_table.find_type(word)
    if struct is None and entry is not None:
        # Registered before its fields are known: a type may contain itself.
        struct = _structs[word] = Struct(entry)
        struct.fill([(member, _shape_of_word(member.type)) for member in entry.fields])
    return struct or _ANYTHING


_structs: dict[str, Struct] = {}
