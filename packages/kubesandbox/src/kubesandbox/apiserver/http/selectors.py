"""Label and field selectors: text in, a test on stored entries out; a bad selector is a 400 in the server's words.

Label selectors are read by the grammar of k8s.io/apimachinery/pkg/labels, so that no selector which a real server
refuses selects everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import JSON, bad_request
from kubesandbox.apiserver.store import Entry

_ALWAYS = ("metadata.name", "metadata.namespace")
# The value that a field selector compares with when the field is absent, where that is not the empty string.
_ABSENT = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0", "status.successful": "0"}
_SPECIAL: dict[str, Callable[[JSON], Any]] = {
    "source": lambda obj: (
        (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or obj.get("reportingController")
    ),
    "reportingComponent": lambda obj: obj.get("reportingComponent") or obj.get("reportingController"),
    "reportingController": lambda obj: obj.get("reportingController") or obj.get("reportingComponent"),
    "status.successful": lambda obj: (obj.get("status") or {}).get("succeeded"),
}
_TOKEN = re.compile(r"\s*(==|!=|=|>|<|!|,|\(|\)|[^\s=!<>(),]+)")
_SYMBOLS = frozenset({"==", "!=", "=", ">", "<", "!", ",", "(", ")", ""})
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}
_INTEGER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A term of a field selector."""

    path: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector and a field selector for one kind; falsy when it selects everything."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def matches(self, entry: Entry) -> bool:
        """Returns whether the object in `entry` is selected."""
        if self.labels and not all(requirement.matches(entry.labels) for requirement in self.labels):
            return False
        return all((field_value(entry, term.path) == term.value) is term.equal for term in self.fields)


def selector_of(kind: Kind, labels: tuple[Requirement, ...], fields: tuple[FieldTerm, ...]) -> Selector:
    """Returns both parsed selectors for one kind. Raises ApiError 400 for a field that the kind does not support."""
    for term in fields:
        if term.path == "metadata.namespace" and not kind.namespaced and (kind.custom or kind.fields):
            raise bad_request(f"field label not supported: {term.path}")
        if term.path not in _ALWAYS and term.path not in kind.fields:
            # The real server's message depends on whether the kind has its own field label conversion function.
            if kind.custom or kind.fields:
                raise bad_request(f"field label not supported: {term.path}")
            raise bad_request(
                f'"{term.path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    return Selector(labels, fields)


# -- fields ------------------------------------------------------------------------------------------------------------


def parse_field_terms(text: str) -> tuple[FieldTerm, ...]:
    """Parses `metadata.name=x,status.phase!=Running` (k8s.io/apimachinery/pkg/fields). Raises ApiError 400."""
    terms = []
    # A backslash escapes the character after it, so that an escaped comma does not end a term.
    for part in sorted(re.findall(r"(?:\\.|[^\\,]|\\$)+", text, re.DOTALL)):
        found = re.search("!=|==|=", part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescape_value(part[found.end() :])
        terms.append(FieldTerm(part[: found.start()], value, equal=found[0] != "!="))
    return tuple(terms)


def _unescape_value(text: str) -> str:
    """Returns a term's value without its backslashes (fields.UnescapeValue). Raises ApiError 400."""

    def unescape(found: re.Match[str]) -> str:
        if found[1] and found[1] in "\\,=":
            return found[1]
        if found[0] == "=":
            raise bad_request("invalid field selector: unescaped character in value: 61")
        raise bad_request(f"invalid field selector: invalid escape sequence: {found[0]}")

    return re.sub(r"\\(.?)|=", unescape, text, flags=re.DOTALL)


def field_value(entry: Entry, path: str) -> str:
    """Returns the value that a field selector compares `path` with; read from the object once and cached."""
    if path == "metadata.name":
        return entry.name
    if path == "metadata.namespace":
        return entry.namespace
    fields: dict[str, str] | None = entry.cache.get("fields")
    if fields is None or path not in fields:
        fields = entry.cache.setdefault("fields", {})
        obj = entry.load()
        if special := _SPECIAL.get(path):
            value = special(obj)
        else:
            value = obj
            # Events are stored in the form of core/v1, whichever group they are requested from.
            for part in path.replace("regarding.", "involvedObject.").split("."):
                value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            fields[path] = _ABSENT.get(path, "")
        else:
            fields[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return fields[path]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement of a label selector. `operator` is =, !=, in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Returns whether an object with these labels is selected."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                # Kubernetes: != and notin also select objects without the label.
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        # gt and lt never match a label that is not an integer.
        if value is None or not _INTEGER.fullmatch(value):
            return False
        return int(value) > int(self.values[0]) if self.operator == "gt" else int(value) < int(self.values[0])


class _Unparsable(Exception):
    """A requirement that cannot be parsed; the message names the unexpected token."""


class _Tokens:
    def __init__(self, text: str) -> None:
        self._items: list[str] = _TOKEN.findall(text)
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def next(self) -> str:
        word = self.peek()
        self._at += 1
        return word


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Returns the requirements of a label selector, as labels.Parse does. Raises ApiError (400)."""
    tokens, requirements = _Tokens(text), []
    while (word := tokens.peek()) != "":
        if word in _SYMBOLS and word != "!":
            raise bad_request(f"found '{word}', expected: !, identifier, or 'end of string'")
        try:
            requirements.append(_parse_requirement(tokens))
        except _Unparsable as error:
            raise bad_request(f"unable to parse requirement: {error}") from None
        after = tokens.next()
        if after == ",":
            if tokens.peek() in _SYMBOLS and tokens.peek() != "!":
                raise bad_request(f"found '{tokens.peek()}', expected: identifier after ','")
        elif after:
            raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
    return tuple(requirements)


def _parse_requirement(tokens: _Tokens) -> Requirement:
    """Returns the next requirement, such as `a=b`, `a in (b,c)` or `!a`. Raises _Unparsable."""
    absent = tokens.peek() == "!"
    if absent:
        tokens.next()
    key = tokens.next()
    if key in _SYMBOLS:
        raise _Unparsable(f"found '{key}', expected: identifier")
    if whys := object_meta.qualified_name(key):
        raise _Unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(whys)}')
    if tokens.peek() in {"", ","}:
        return Requirement(key, "!" if absent else "exists")
    token = tokens.next()
    if token not in _OPERATORS:
        raise _Unparsable(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
    operator = _OPERATORS[token]
    values: tuple[str, ...] = ("",)
    if operator in {"in", "notin"}:
        values = _parse_value_list(tokens)
    elif tokens.peek() not in {"", ","}:
        values = (tokens.next(),)
        if values[0] in _SYMBOLS:
            raise _Unparsable(f"found '{values[0]}', expected: identifier")
    whys = []
    for index, value in enumerate(values):
        if operator in {"gt", "lt"} and not _INTEGER.fullmatch(value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            whys.append(f'values[{index}]: Invalid value: "{value}": {why}')
        faults = object_meta.label_faults({"k": value}, "")
        whys += [f'values[{index}][{key}]: Invalid value: "{value}": {fault.detail}' for fault in faults]
    if whys:
        raise _Unparsable(whys[0] if len(whys) == 1 else f"[{', '.join(whys)}]")
    return Requirement(key, operator, values)


def _parse_value_list(tokens: _Tokens) -> tuple[str, ...]:
    """Returns the values in parentheses after `in` and `notin`, sorted. Raises _Unparsable."""
    if (word := tokens.next()) != "(":
        raise _Unparsable(f"found '{word}' expected: '('")
    if tokens.peek() == ")":
        tokens.next()
        return ("",)
    if tokens.peek() in _SYMBOLS and tokens.peek() != ",":
        raise _Unparsable(f"found '{tokens.peek()}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while True:
        word = tokens.next()
        if word == ",":
            # A comma with nothing before or after it is an empty value.
            if not values or tokens.peek() == ")":
                values.add("")
            elif tokens.peek() == ",":
                tokens.next()
                values.add("")
        elif word not in _SYMBOLS:
            values.add(word)
            if tokens.peek() not in {",", ")"}:
                raise _Unparsable(f"found '{tokens.peek()}', expected: ',' or ')'")
        else:
            raise _Unparsable(f"found '{word}', expected: ',', or identifier")
        if tokens.peek() == ")":
            tokens.next()
            return tuple(sorted(values))
