"""Checks that several kinds share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError

JSON = dict[str, Any]
Faults = Iterator[FieldError]

PROTOCOLS = ("SCTP", "TCP", "UDP")
NOT_NEGATIVE = "must be greater than or equal to 0"


def at(obj: JSON, path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def not_negative(obj: JSON, path: str, *names: str) -> Faults:
    """Yields a fault for each member that is a negative number."""
    for name in names:
        value = obj.get(name)
        if isinstance(value, int) and value < 0:
            yield FieldError(Fault.INVALID, f"{path}.{name}", value, NOT_NEGATIVE)


def immutable(obj: JSON, old: JSON, *paths: str) -> Faults:
    """Yields a fault for each path whose value changed."""
    for path in paths:
        if at(obj, path) != at(old, path):
            yield FieldError(Fault.INVALID, path, at(obj, path), "field is immutable")


def port_number(value: Any, path: str) -> Faults:
    """Yields a fault unless the value is a port from 1 to 65535."""
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield FieldError(Fault.INVALID, path, value, "must be between 1 and 65535, inclusive")
