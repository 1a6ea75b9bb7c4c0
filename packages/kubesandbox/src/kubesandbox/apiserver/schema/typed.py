"""Decoding and encoding of built-in kinds, as Go's codec does both.

In: a type of the table and an object. Out of `decode`: the object without unknown fields (and their paths, in the order
met), without nulls, its times and quantities in canonical form; raises DecodeError in Go's words. Out of `complete`:
the object with the defaults of its types and every zero that Go writes, without those that it omits, its members in the
order of the structs. This prevents an object from being stored in a form that a real server never returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kubesandbox.apiserver.schema import builtin_table, go_defaults, scalars
from kubesandbox.apiserver.schema.builtin_table import Field
from kubesandbox.apiserver.schema.scalars import GoError

JSON = dict[str, Any]

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
        path_text = ".".join(part for part in self.place if type(part) is str)
        return DecodeError(
            f"json: cannot unmarshal {error} into Go struct field {self.struct}.{path_text} of type {error.go_type}"
        )


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
            raise GoError(scalars.kind_of(value), self.go)
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
            raise GoError(scalars.kind_of(value), self.go)
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
        self._rules: list[tuple[str, Field, Shape]] = []
        self._default = go_defaults.default_of(type_.name)

    def fill(self, fields: list[tuple[Field, Shape]]) -> None:
        """Sets the struct's fields."""
        self.fields = {member.name: shape for member, shape in fields}
        self._rules = [(member.name, member, shape) for member, shape in fields]

    def decode(self, value: Any, context: Context) -> Any:
        """Decodes the known members that are not null."""
        if type(value) is not dict:
            raise GoError(scalars.kind_of(value), self.go)
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
            if member is None or not (member or rule.pointer):
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
    f"{_META}.Time": Scalar("string", None, scalars.read_time),
    f"{_META}.MicroTime": Scalar("string", None, scalars.micro_time),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Scalar("", "0", scalars.read_quantity),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Scalar("int32", 0, scalars.int_or_string),
    "s": Scalar("string", "", scalars.read_text),
    "i32": Scalar("int32", 0, scalars.read_int32),
    "i64": Scalar("int64", 0, scalars.read_int64),
    "n": Scalar("float64", 0, scalars.read_number),
    "b": Scalar("bool", False, scalars.read_boolean),
    "bytes": Scalar("[]uint8", None, scalars.base64_text),
}
_ANYTHING = Shape()


def shape_of(name: str) -> Struct | None:
    """Returns the shape of a type by its full name, or None if the table does not have it."""
    shape = _shape_of_word(name)
    return shape if isinstance(shape, Struct) else None


@cache
def _shape_of_word(word: str) -> Shape:
    """Returns the shape of a type as the table writes it."""
    if word[:2] == "[]":
        return List(_shape_of_word(word[2:]))
    if word[:2] == "{}":
        return Map(_shape_of_word(word[2:]))
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("s/"):
        return Scalar(word[2:], "", scalars.read_text)
    struct = builtin_table.find_type(word)
    return _shape_of_struct(struct) if struct else _ANYTHING


_structs: dict[str, Struct] = {}


def _shape_of_struct(type_entry: builtin_table.Type) -> Struct:
    """Returns the shape of a type, made once; a type may contain itself."""
    struct = _structs.get(type_entry.name)
    if struct is None:
        struct = _structs[type_entry.name] = Struct(type_entry)
        struct.fill([(member, _shape_of_word(member.type)) for member in type_entry.fields])
    return struct
