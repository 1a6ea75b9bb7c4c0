"""JSON merge patch (RFC 7386), as a real server applies it: no null survives, not even inside a new list."""

from __future__ import annotations

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged into it; null removes. Neither argument is changed."""
    if not isinstance(target, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _without_nulls(value: Any) -> Any:
    """What is new has no fields that are null; an item of a list may be."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
