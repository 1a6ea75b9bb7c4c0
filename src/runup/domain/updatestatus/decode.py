"""The JSON of an UpdateStatus of any release in, what this release can decode of it out, and the types of the rest.

Each insight is decoded by itself, so that one whose fields are not what they were costs no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from runup.api import codec
from runup.api.update_v1alpha1 import (
    ControlPlane,
    HealthImpact,
    HealthInsight,
    HealthScope,
    Informer,
    Insight,
    UpdateStatusStatus,
)
from runup.domain.updatestatus.finding import SCOPE_CLUSTER, UNKNOWN, UNKNOWN_IMPACT

JSON = dict[str, Any]

_MEMBERS = {
    "ClusterVersion": "cluster_version",
    "ClusterOperator": "cluster_operator",
    "MachineConfigPool": "machine_config_pool",
    "Node": "node",
    "Health": "health",
}
# The enhancement's sample spells one type otherwise than every definition of it.
_ALIASES = {"UpdateHealth": "Health"}


def decode(obj: JSON) -> tuple[UpdateStatusStatus, tuple[str, ...]]:
    """What can be decoded, and the types of the insights that cannot.

    Raises codec.DecodeError where even the frame cannot be read.
    """
    status = obj.get("status") or {}
    if not isinstance(status, dict):
        raise codec.DecodeError("Expected `object` - at `$.status`")
    unknown: list[str] = []
    frame = _framed(status, unknown)
    return codec.convert(UpdateStatusStatus, frame), tuple(unknown)


def _framed(status: JSON, unknown: list[str]) -> JSON:
    """`status` with only those insights that can be decoded; the types of the others go to `unknown`."""
    layers = []
    control_plane = status.get("controlPlane")
    if isinstance(control_plane, dict):
        layers.append(control_plane)
    layers += [pool for pool in status.get("workerPools") or () if isinstance(pool, dict)]
    framed = [
        {**layer, "informers": [_informer(each, unknown) for each in layer.get("informers") or ()]} for layer in layers
    ]
    if isinstance(control_plane, dict):
        return {**status, "controlPlane": framed[0], "workerPools": framed[1:]}
    return {**status, "workerPools": framed}


def _informer(informer: JSON, unknown: list[str]) -> JSON:
    kept = []
    for insight in informer.get("insights") or ():
        flat = _flat(insight)
        if _is_readable(flat):
            kept.append(flat)
        else:
            unknown.append(str(flat.get("type") or "none"))
    return {**informer, "insights": kept}


def _flat(insight: JSON) -> JSON:
    """With the union beside the uid, where some drafts nest it."""
    inner = insight.get("insight")
    flat = {**insight, **inner} if isinstance(inner, dict) else dict(insight)
    type_ = flat.get("type")
    alias = _ALIASES.get(type_) if isinstance(type_, str) else None
    if alias:
        flat["type"] = alias
        flat.setdefault("health", flat.get("updateHealth"))
    return flat


def _is_readable(insight: JSON) -> bool:
    member = _MEMBERS.get(str(insight.get("type")))
    if member is None:
        return False
    try:
        return getattr(codec.convert(Insight, insight), member) is not None
    except codec.DecodeError:
        return False


def unknown_insights(types: Iterable[str]) -> Iterator[HealthInsight]:
    """A health insight for each of `types`, which says how many of them could not be read."""
    counted: dict[str, int] = {}
    for type_ in types:
        counted[type_] = counted.get(type_, 0) + 1
    for type_, number in sorted(counted.items()):
        what = f"{number} insights" if number > 1 else "1 insight"
        yield HealthInsight(
            scope=HealthScope(type=SCOPE_CLUSTER),
            impact=HealthImpact(
                level=UNKNOWN,
                type=UNKNOWN_IMPACT,
                summary=f"{what} of type {type_} cannot be read by this version of runup",
                description="Another version of the update status controller wrote the report; a runup of its release "
                "reads it whole.",
            ),
            check="InsightUnknown",
        )


def with_unknown(status: UpdateStatusStatus, unknown: Iterable[str], now: datetime) -> UpdateStatusStatus:
    """`status` with a health insight for each type in `unknown`, for those who show the insights themselves."""
    added = tuple(
        Insight(uid=f"unknown-{i}", acquired_at=now, type="Health", health=health)
        for i, health in enumerate(unknown_insights(unknown))
    )
    if not added:
        return status
    layer = status.control_plane or ControlPlane()
    informers = (*layer.informers, Informer(name="unknown", insights=added))
    return replace(status, control_plane=replace(layer, informers=informers))
