"""Label and field selectors: text in, a test on stored entries out; a wrong selector is a 400 in the server's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runup.sandbox.apiserver.errors import bad_request
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.store import Entry

JSON = dict[str, Any]

_TOKEN = re.compile(r"\s*(==|!=|=|>|<|!|,|\(|\)|[^\s=!<>(),]+)")
_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a label selector. `operator` is =, !=, in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or not _is_int(value):
            return False
        return int(value) > int(self.values[0]) if self.operator == "gt" else int(value) < int(self.values[0])


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One part of a field selector."""

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
        """Whether the object, as it is in `entry`, is selected."""
        if self.labels and not all(requirement.matches(entry.labels) for requirement in self.labels):
            return False
        return all((field_value(entry, term.path) == term.value) is term.equal for term in self.fields)

    @property
    def single_name(self) -> str:
        """The one name that can match, when the selector says `metadata.name=x`."""
        return next((term.value for term in self.fields if term.path == "metadata.name" and term.equal), "")


def parse_selector(kind: Kind, label_text: str, field_text: str) -> Selector:
    """Both selectors of a request; raises ApiError 400."""
    return Selector(parse_labels(label_text), parse_fields(kind, field_text))


# -- labels ------------------------------------------------------------------------------------------------------------


class _Tokens:
    def __init__(self, text: str) -> None:
        self.items: list[str] = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.items[self.at] if self.at < len(self.items) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """`a=b,c in (d,e),!f` as requirements; raises ApiError 400."""
    if not text.strip():
        return ()
    tokens = _Tokens(text)
    found = [_requirement(tokens)]
    while tokens.peek():
        if (token := tokens.next()) != ",":
            raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or 'end of string'")
        found.append(_requirement(tokens))
    return tuple(found)


def _requirement(tokens: _Tokens) -> Requirement:
    negated = tokens.peek() == "!"
    if negated:
        tokens.next()
    key = _checked_key(tokens.next())
    if negated:
        return Requirement(key, "!")
    operator = tokens.peek()
    if operator in {"", ","}:
        return Requirement(key, "exists")
    tokens.next()
    if operator in {"=", "==", "!="}:
        value = "" if tokens.peek() in {"", ","} else tokens.next()
        return Requirement(key, "!=" if operator == "!=" else "=", (_checked_value(key, value),))
    if operator in {"in", "notin"}:
        return Requirement(key, operator, _value_list(tokens, key))
    if operator in {">", "<"}:
        value = tokens.next()
        if not _is_int(value):
            raise bad_request(
                f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        return Requirement(key, "gt" if operator == ">" else "lt", (value,))
    raise bad_request(f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _value_list(tokens: _Tokens, key: str) -> tuple[str, ...]:
    if (token := tokens.next()) != "(":
        raise bad_request(f"unable to parse requirement: found '{token}', expected: '('")
    values: list[str] = []
    while (part := tokens.next()) != ")":
        if not part:
            raise bad_request("unable to parse requirement: found '', expected: ',', ')' or identifier")
        if part != ",":
            values.append(_checked_value(key, part))
    return tuple(values) or ("",)


def _checked_key(key: str) -> str:
    if key in {"", ",", "(", ")", "=", "==", "!=", ">", "<"}:
        raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
    if not _KEY.match(key):
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {_KEY_RULE}')
    return key


def _checked_value(key: str, value: str) -> str:
    if not _VALUE.match(value):
        raise bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {_VALUE_RULE}')
    return value


def _is_int(text: str) -> bool:
    return text.lstrip("+-").isdigit()


# -- fields ------------------------------------------------------------------------------------------------------------

_ALWAYS = ("metadata.name", "metadata.namespace")
# What a field selector compares with when the field is left out, where that is not the empty string.
_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}


def parse_fields(kind: Kind, text: str) -> tuple[FieldTerm, ...]:
    """`metadata.name=x,status.phase!=Running`; raises ApiError 400, also for a field that cannot be selected on."""
    terms = []
    for part in filter(None, _split_unescaped(text)):
        operator = next((op for op in ("!=", "==", "=") if op in part), "")
        if not operator:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path, _, value = part.partition(operator)
        path = path.strip()
        if path not in _ALWAYS and path not in kind.fields:
            raise bad_request(_unsupported(kind, path))
        terms.append(FieldTerm(path, _unescaped(value), equal=operator != "!="))
    return tuple(terms)


def _unsupported(kind: Kind, path: str) -> str:
    # Kinds with a conversion function of their own say one thing, the rest what the default one says.
    if kind.custom or kind.fields:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _split_unescaped(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", text)


def field_value(entry: Entry, path: str) -> str:
    """What a field selector compares `path` with; read from the object once and remembered."""
    if path == "metadata.name":
        return entry.name
    if path == "metadata.namespace":
        return entry.namespace
    fields: dict[str, str] | None = entry.cache.get("fields")
    if fields is None or path not in fields:
        fields = entry.cache.setdefault("fields", {})
        fields[path] = _read(entry.load(), path)
    return fields[path]


_SPECIAL: dict[str, Callable[[JSON], Any]] = {
    "source": lambda obj: (
        (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or obj.get("reportingController")
    ),
    "reportingComponent": lambda obj: obj.get("reportingComponent") or obj.get("reportingController"),
    "status.successful": lambda obj: (obj.get("status") or {}).get("succeeded"),
}


def _read(obj: JSON, path: str) -> str:
    if special := _SPECIAL.get(path):
        value = special(obj)
    else:
        value = obj
        # Events lie in core's form whichever group asks.
        for part in path.replace("regarding.", "involvedObject.").split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return _ABSENT.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)
