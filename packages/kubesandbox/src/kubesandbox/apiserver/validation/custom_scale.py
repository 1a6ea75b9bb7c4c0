"""Validation of the numbers in a custom resource's scale subresource: they must be valid replica counts."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
_MOST = 2**31 - 1


def scale_faults(kind: Kind, obj: JSON) -> list[FieldError]:
    """Returns the faults of the desired and observed replicas, as the registry of custom resources words them."""
    paths = kind.scale_paths or {}
    path_texts = (paths.get(name) for name in ("specReplicasPath", "statusReplicasPath"))
    return [fault for path in path_texts if path for fault in _replicas_faults(path, value_at(obj, path))]


def value_at(obj: JSON, path: str) -> Any:
    """Returns the value at a path such as `.spec.replicas`, or None."""
    value: Any = obj
    for part in path.lstrip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _replicas_faults(path: str, value: Any) -> list[FieldError]:
    """Returns the fault of a number of replicas outside 0 to 2^31 - 1."""
    # Other types are the schema's to refuse.
    if not isinstance(value, int) or isinstance(value, bool) or 0 <= value <= _MOST:
        return []
    why = "should be a non-negative integer" if value < 0 else f"should be less than or equal to {_MOST}"
    return [FieldError(Fault.INVALID, path, value, why)]
