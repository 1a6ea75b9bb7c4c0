"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged into it; null removes. Neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result
