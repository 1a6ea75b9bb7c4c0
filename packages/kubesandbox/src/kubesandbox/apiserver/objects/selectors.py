"""Label and field selectors: text in, a test on stored entries out; a bad selector is a 400 in the server's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesandbox.apiserver.objects.label_selectors import Requirement, parse_labels
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import bad_request
from kubesandbox.apiserver.store import Entry

JSON = dict[str, Any]


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


def parse_selector(kind: Kind, label_text: str, field_text: str) -> Selector:
    """Returns both selectors of a request. Raises ApiError 400."""
    return Selector(parse_labels(label_text), parse_fields(kind, field_text))


# -- fields ------------------------------------------------------------------------------------------------------------

_ALWAYS = ("metadata.name", "metadata.namespace")
# The value that a field selector compares with when the field is absent, where that is not the empty string.
_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}


def parse_fields(kind: Kind, text: str) -> tuple[FieldTerm, ...]:
    """Parses `metadata.name=x,status.phase!=Running`. Raises ApiError 400, also for an unsupported field."""
    terms = []
    for part in filter(None, _split_unescaped(text)):
        operator = next((op for op in ("!=", "==", "=") if op in part), "")
        if not operator:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path, _, value = part.partition(operator)
        path = path.strip()
        if path not in _ALWAYS and path not in kind.fields:
            raise bad_request(_unsupported_text(kind, path))
        terms.append(FieldTerm(path, _unescape(value), equal=operator != "!="))
    return tuple(terms)


def _unsupported_text(kind: Kind, path: str) -> str:
    # The real server's message depends on whether the kind has a field label conversion function of its own.
    if kind.custom or kind.fields:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _split_unescaped(text: str) -> list[str]:
    # A backslash escapes commas in field selectors (k8s.io/apimachinery/pkg/fields).
    return re.split(r"(?<!\\),", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", text)


def field_value(entry: Entry, path: str) -> str:
    """Returns the value that a field selector compares `path` with; read from the object once and cached."""
    if path == "metadata.name":
        return entry.name
    if path == "metadata.namespace":
        return entry.namespace
    fields: dict[str, str] | None = entry.cache.get("fields")
    if fields is None or path not in fields:
        fields = entry.cache.setdefault("fields", {})
        fields[path] = _field_value(entry.load(), path)
    return fields[path]


_SPECIAL: dict[str, Callable[[JSON], Any]] = {
    "source": lambda obj: (
        (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or obj.get("reportingController")
    ),
    "reportingComponent": lambda obj: obj.get("reportingComponent") or obj.get("reportingController"),
    "reportingController": lambda obj: obj.get("reportingController") or obj.get("reportingComponent"),
    "status.successful": lambda obj: (obj.get("status") or {}).get("succeeded"),
}


def _field_value(obj: JSON, path: str) -> str:
    """Returns the field at `path` as a field selector compares it: text, "" if it is absent."""
    if special := _SPECIAL.get(path):
        value = special(obj)
    else:
        value = obj
        # Events are stored in the form of core/v1, whichever group they are requested from.
        for part in path.replace("regarding.", "involvedObject.").split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return _ABSENT.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)
