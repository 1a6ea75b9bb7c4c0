"""Label selectors as text: `a=b,c in (d,e),!f`, read by the grammar of k8s.io/apimachinery/pkg/labels.

In: the text. Out: requirements; raises ApiError 400 in that parser's words. This prevents a selector that a real server
refuses from selecting everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.status_errors import bad_request

_TOKEN = re.compile(r"\s*(==|!=|=|>|<|!|,|\(|\)|[^\s=!<>(),]+)")
_SYMBOLS = frozenset({"==", "!=", "=", ">", "<", "!", ",", "(", ")", ""})
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}
_INTEGER = re.compile(r"[+-]?[0-9]+")


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
    values = _parse_value_list(tokens) if operator in {"in", "notin"} else (_parse_exact_value(tokens),)
    _check_values(key, operator, values)
    return Requirement(key, operator, values)


def _parse_exact_value(tokens: _Tokens) -> str:
    """Returns the value after `=`, "" at the end of the requirement. Raises _Unparsable."""
    if tokens.peek() in {"", ","}:
        return ""
    value = tokens.next()
    if value in _SYMBOLS:
        raise _Unparsable(f"found '{value}', expected: identifier")
    return value


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
            _handle_comma(tokens, values)
        elif word not in _SYMBOLS:
            values.add(word)
            if tokens.peek() not in {",", ")"}:
                raise _Unparsable(f"found '{tokens.peek()}', expected: ',' or ')'")
        else:
            raise _Unparsable(f"found '{word}', expected: ',', or identifier")
        if tokens.peek() == ")":
            tokens.next()
            return tuple(sorted(values))


def _handle_comma(tokens: _Tokens, values: set[str]) -> None:
    """Adds the empty value that a comma with nothing before or after it stands for."""
    if not values or tokens.peek() == ")":
        values.add("")
    elif tokens.peek() == ",":
        tokens.next()
        values.add("")


def _check_values(key: str, operator: str, values: tuple[str, ...]) -> None:
    """Raises _Unparsable for values that are not label values, or not integers where they are compared."""
    whys = []
    for index, value in enumerate(values):
        if operator in {"gt", "lt"} and not _INTEGER.fullmatch(value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            whys.append(f'values[{index}]: Invalid value: "{value}": {why}')
        faults = object_meta.label_faults({"k": value}, "")
        whys += [f'values[{index}][{key}]: Invalid value: "{value}": {fault.detail}' for fault in faults]
    if whys:
        raise _Unparsable(whys[0] if len(whys) == 1 else f"[{', '.join(whys)}]")
