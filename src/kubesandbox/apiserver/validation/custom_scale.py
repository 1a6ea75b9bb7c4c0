"""The numbers that a custom resource's scale subresource shows: they must be numbers of replicas."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.kinds import Kind
from kubesandbox.apiserver.schema import Fault, FieldError

JSON = dict[str, Any]
_MOST = 2**31 - 1


def faults(kind: Kind, obj: JSON) -> list[FieldError]:
    """What is wrong with the replicas wished and seen, as the registry of custom resources words it."""
    paths = kind.scale_paths or {}
    wanted = (paths.get(name) for name in ("specReplicasPath", "statusReplicasPath"))
    return [fault for path in wanted if path for fault in _replicas(path, at(obj, path))]


def at(obj: JSON, path: str) -> Any:
    """What stands at `.spec.replicas`, None where nothing does."""
    value: Any = obj
    for part in path.lstrip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _replicas(path: str, value: Any) -> list[FieldError]:
    if not isinstance(value, int) or isinstance(value, bool) or 0 <= value <= _MOST:
        return []
    why = "should be a non-negative integer" if value < 0 else f"should be less than or equal to {_MOST}"
    return [FieldError(Fault.INVALID, path, value, why)]
