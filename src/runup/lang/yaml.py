"""YAML as Kubernetes reads it: text in, JSON-like values out (dict, list, str, int, float, bool, None), and back.

The scalar rules are those of the Go library behind sigs.k8s.io/yaml, which differ from PyYAML's: `y` and `on` are true,
`0644` and `0o644` are 420, `1e3` is 1000, times of day and dates stay text, every key becomes a string. A loader with
other rules would apply a file mode of 644, or read an annotation that the cluster's own tools refuse.

Values are built from libyaml's events rather than from PyYAML's node tree: its composer recurses without a limit, so
that a file of 50,000 brackets ends the process.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable
from typing import Any

import yaml

MAX_DEPTH = 200
"""Levels of nesting; the deepest CRD of OpenShift has fewer than 60."""

MAX_ALIASED = 100_000
"""Values that aliases may add to one document: small files that expand to gigabytes are refused."""

_TAG = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT = (_TAG + name for name in ("str", "null", "bool", "int", "float"))
_BINARY, _MERGE, _TIMESTAMP = (_TAG + name for name in ("binary", "merge", "timestamp"))

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FIRST_OF_NUMBER = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOATING = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
# What YAML 1.1 reads as something else though Kubernetes does not: quoted on the way out, for other readers.
_SEXAGESIMAL_OR_DATE = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_UNSIGNED_MAX = 2**64 - 1
_SIGNED_MIN, _SIGNED_MAX = -(2**63), 2**63 - 1


class YamlError(ValueError):
    """The text is no YAML that Kubernetes would read. `line` and `column` count from 1, 0 where unknown."""

    def __init__(self, problem: str, *, name: str = "", line: int = 0, column: int = 0) -> None:
        place = [name] if name else []
        if line:
            place.append(f"line {line}" if not column else f"line {line}, column {column}")
        super().__init__(": ".join([", ".join(place), problem] if place else [problem]))
        self.problem = problem
        self.name = name
        self.line = line
        self.column = column


def load(text: str | bytes, *, name: str = "", strict: bool = False) -> Any:
    """The one document of `text`, None where it is empty.

    `name` is the file's, for errors; `strict` makes a duplicate key an error instead of letting the last one win.
    Raises YamlError, also for more than one document.
    """
    documents = load_all(text, name=name, strict=strict)
    if len(documents) > 1:
        raise YamlError(f"holds {len(documents)} documents where one is expected", name=name)
    return documents[0] if documents else None


def load_all(text: str | bytes, *, name: str = "", strict: bool = False) -> list[Any]:
    """Every document of `text` in order; an empty document is None. Raises YamlError as `load` does."""
    decoded = _decoded(text, name)
    if not strict and decoded.lstrip()[:1] == "{":
        # JSON may be indented with tabs, which YAML forbids; and decoding it as JSON is many times as fast.
        import msgspec  # which YAML does not need

        try:
            return [msgspec.json.decode(decoded)]
        except (msgspec.DecodeError, RecursionError):
            pass
    return _Builder(decoded, name, strict).documents()


def dump(value: Any) -> str:
    """`value` as one document, block style, keys in the order given; what a YAML 1.1 reader would misread is quoted."""
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=4096, allow_unicode=True)


def dump_all(values: Iterable[Any]) -> str:
    """`values` as documents separated by `---`."""
    return "---\n".join(dump(value) for value in values)


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted scalar means to Kubernetes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER:
        return text
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    # Underscores are dropped everywhere but in a number that begins with its decimal point, as in Go.
    plain = text if text[0] == "." else text.replace("_", "")
    whole = _INTEGER.match(plain)
    if whole is not None:
        value = _integer(whole)
        if _SIGNED_MIN <= value <= _SIGNED_MAX or (not whole[1] and value <= _UNSIGNED_MAX):
            return value
    if _FLOATING.match(plain) is None:
        return None
    number = float(plain)
    if math.isinf(number):
        return None
    # JSON knows one kind of number: what Go writes without a point, the API server reads as an integer.
    return int(number) if number.is_integer() and _SIGNED_MIN <= number <= _SIGNED_MAX else number


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits is not None:
            return -int(digits, base) if sign == "-" else int(digits, base)
    raise AssertionError("the pattern has four alternatives")


def _decoded(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise YamlError(f"is not UTF-8 text (byte {error.object[error.start]:#x})", name=name, line=line) from error


class _Events(yaml.CSafeLoader):
    """libyaml's parser, asked for events only."""


class _Builder:
    """Values out of the events of one text."""

    __slots__ = ("_aliased", "_anchors", "_depth", "_events", "_name", "_strict")

    def __init__(self, text: str, name: str, strict: bool) -> None:
        self._name = name
        self._strict = strict
        self._depth = 0
        self._aliased = 0
        # What an anchor stands for; None while it is being built, when an alias to it would contain itself.
        self._anchors: dict[str, tuple[Any] | None] = {}
        try:
            self._events = _Events(text)
        except yaml.YAMLError as error:
            raise self._from_libyaml(error) from error

    def documents(self) -> list[Any]:
        found: list[Any] = []
        try:
            while True:
                event = self._events.get_event()
                if event is None or isinstance(event, yaml.StreamEndEvent):
                    return found
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    self._aliased = 0
                    found.append(self._value(self._events.get_event()))
        except yaml.YAMLError as error:
            raise self._from_libyaml(error) from error
        finally:
            self._events.dispose()

    def _value(self, event: Any) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
        else:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error(event, f"is nested more than {MAX_DEPTH} levels deep")
            value = self._mapping() if kind is yaml.MappingStartEvent else self._sequence()
            self._depth -= 1
        if anchor is not None:
            self._anchors[anchor] = (value,)
        return value

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        while type(event := self._events.get_event()) is not yaml.SequenceEndEvent:
            items.append(self._value(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        own: set[str] = set()
        while type(event := self._events.get_event()) is not yaml.MappingEndEvent:
            if type(event) is yaml.ScalarEvent and _is_merge(event):
                # In the order written, later members over earlier ones, as the Go library has it.
                for merged in self._merged(event):
                    members.update(merged)
                continue
            key = self._key(event)
            value = self._value(self._events.get_event())
            if self._strict and key in own:
                raise self._error(event, f"key {key!r} is there twice")
            own.add(key)
            members[key] = value
        return members

    def _merged(self, event: Any) -> list[dict[str, Any]]:
        value = self._value(self._events.get_event())
        # Of a sequence the earlier mapping takes precedence.
        sources = list(reversed(value)) if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._error(event, "`<<` wants a mapping, or a sequence of mappings")
        return sources

    def _key(self, event: Any) -> str:
        key = self._value(event)
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, int | float):
            return str(key)
        raise self._error(event, "a key is null, a mapping or a sequence; only text, numbers and booleans can be keys")

    def _alias(self, event: Any) -> Any:
        known = self._anchors.get(event.anchor, ())
        if known is None:
            raise self._error(event, f"anchor {event.anchor!r} contains itself")
        if not known:
            raise self._error(event, f"alias {event.anchor!r} has no anchor before it")
        return self._copy(known[0], event)

    def _copy(self, value: Any, event: Any) -> Any:
        # A copy, so that no two places of the result change together; counted, so that it stays small.
        self._aliased += 1
        if self._aliased > MAX_ALIASED:
            raise self._error(event, f"aliases expand to more than {MAX_ALIASED} values")
        if isinstance(value, dict):
            return {key: self._copy(member, event) for key, member in value.items()}
        if isinstance(value, list):
            return [self._copy(item, event) for item in value]
        return value

    def _scalar(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        plain = tag is None and event.implicit[0]
        value = scalar(text) if plain else self._tagged(tag, text, event)
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(event, f"{text!r} is no number that JSON can hold")
        return value

    def _tagged(self, tag: str, text: str, event: Any) -> Any:
        if tag == _BINARY:
            try:
                return base64.b64decode(text).decode("utf-8", "surrogateescape")
            except binascii.Error as error:
                raise self._error(event, "!!binary is no base64") from error
        wanted = _TAGGED.get(tag)
        if wanted is None:
            return text
        value = scalar(text)
        if type(value) not in wanted:
            raise self._error(event, f"cannot read {text!r} as !!{tag.removeprefix(_TAG)}")
        return value

    def _error(self, event: Any, problem: str) -> YamlError:
        mark = event.start_mark
        return YamlError(problem, name=self._name, line=mark.line + 1, column=mark.column + 1)

    def _from_libyaml(self, error: yaml.YAMLError) -> YamlError:
        if isinstance(error, yaml.MarkedYAMLError):
            problem = ", ".join(part for part in (error.context, error.problem) if part)
            mark = error.problem_mark or error.context_mark
            if mark is not None:
                return YamlError(problem, name=self._name, line=mark.line + 1, column=mark.column + 1)
            return YamlError(problem, name=self._name)
        return YamlError(" ".join(str(error).split()), name=self._name)


# Which types a tag admits; any other tag, also one's own, leaves the text as it is.
_TAGGED: dict[str, tuple[type, ...]] = {
    _NULL: (type(None),),
    _BOOL: (bool,),
    _INT: (int,),
    _FLOAT: (float, int),
}


def _is_merge(event: Any) -> bool:
    return event.value == "<<" and (event.tag == _MERGE or (event.tag is None and event.implicit[0]))


class _Dumper(yaml.CSafeDumper):
    """Writes JSON-like values; never an anchor, however often one object appears."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif scalar(text) is not text or _SEXAGESIMAL_OR_DATE.match(text):
        style = '"'
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _write_text)
