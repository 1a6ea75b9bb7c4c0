"""How Go's defaulters fill structs: pointers that are nil, values that are zero, structs within structs.

In: a struct as a dict. Out: the same dict, completed. The mistake prevented: a zero that was meant (a pointer's) being
taken for one that was not given (a plain value's).
"""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def nil(obj: JSON, **values: Any) -> None:
    """Set pointers that are nil."""
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


def zero(obj: JSON, **values: Any) -> None:
    """Set plain values that are zero."""
    for key, value in values.items():
        if not obj.get(key):
            obj[key] = value


def part(obj: JSON, key: str) -> JSON:
    """A struct within a struct, a copy of its own: what was given is not changed."""
    obj[key] = dict(obj.get(key) or {})
    part: JSON = obj[key]
    return part
