"""Helpers that fill structs as Go's defaulters do: nil pointers, zero values, structs within structs.

In: a struct as a dict. Out: the same dict, completed. They keep a zero that was given (a pointer's) apart from a value
that was not given (a plain field's zero).
"""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def set_nil(obj: JSON, **values: Any) -> None:
    """Sets the pointers that are nil."""
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


def set_zero(obj: JSON, **values: Any) -> None:
    """Sets the plain fields that have their zero value."""
    for key, value in values.items():
        if not obj.get(key):
            obj[key] = value


def own_struct(obj: JSON, key: str) -> JSON:
    """Returns the struct at `key` after replacing it by a copy, or by an empty one if there was none."""
    obj[key] = dict(obj.get(key) or {})
    part: JSON = obj[key]
    return part
