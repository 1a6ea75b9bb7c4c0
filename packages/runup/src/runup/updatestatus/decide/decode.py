"""Decodes the JSON of an UpdateStatus of any release, and collects the types of insights that it cannot decode.

Each insight is decoded separately, so that one with changed fields does not affect the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, Wire
from kubekit.lang.text import count
from runup.api import update_v1alpha1 as api
from runup.updatestatus.decide.finding import SCOPE_CLUSTER, UNKNOWN, UNKNOWN_IMPACT

JSON = dict[str, Any]

_MEMBERS = {
    "ClusterVersion": "clusterVersion",
    "KubernetesVersion": "kubernetesVersion",
    "ClusterOperator": "clusterOperator",
    "MachineConfigPool": "machineConfigPool",
    "Node": "node",
    "Health": "health",
    "HostedCluster": "hostedCluster",
    "NodePool": "nodePool",
    "Machine": "machine",
}
# The enhancement's sample spells one type otherwise than every definition of it.
_ALIASES = {"UpdateHealth": "Health"}


def decode(obj: JSON) -> tuple[api.UpdateStatusStatus, tuple[str, ...]]:
    """Returns what can be decoded, and the types of the insights that cannot.

    Raises codec.DecodeError if what is around the insights cannot be decoded either.
    """
    status = obj.get("status") or {}
    if not isinstance(status, dict):
        raise codec.DecodeError("Expected `object` - at `$.status`")
    unknown: list[str] = []
    decodable: JSON = {
        "conditions": _conditions(status),
        "workerPools": [
            {"resource": _NOWHERE, **_layer(pool, unknown)}
            for pool in _dicts(status.get("workerPools"))
            if isinstance(pool.get("name"), str)
        ],
    }
    if isinstance(status.get("omittedWorkerPools"), int):
        decodable["omittedWorkerPools"] = status["omittedWorkerPools"]
    if isinstance(control_plane := status.get("controlPlane"), dict):
        decodable["controlPlane"] = _layer(control_plane, unknown)
    return codec.convert(api.UpdateStatusStatus, decodable), tuple(unknown)


# Placeholder for a pool's reference that cannot be read; the pool's name is in its own field.
_NOWHERE = {"resource": "unknown", "name": "unknown"}
_PARTS: dict[str, type[Wire]] = {"resource": api.ResourceRef, "poolResource": api.ResourceRef, "omitted": api.Omitted}


def _layer(layer: JSON, unknown: list[str]) -> JSON:
    """Returns the parts of a layer that can be decoded; adds the types of the other insights to `unknown`."""
    informers = []
    for informer in _dicts(layer.get("informers")):
        insights = []
        for insight in _dicts(informer.get("insights")):
            # Some drafts nest the union fields instead of having them next to the uid.
            inner = insight.get("insight")
            flat = {**insight, **inner} if isinstance(inner, dict) else dict(insight)
            type_ = str(flat.get("type"))
            if type_ in _ALIASES:
                flat["type"] = type_ = _ALIASES[type_]
                flat.setdefault("health", flat.get("updateHealth"))
            member = _MEMBERS.get(type_)
            if member and flat.get(member) is not None and _is_decodable(api.Insight, flat):
                insights.append(flat)
            else:
                unknown.append(str(flat.get("type") or "none"))
        informers.append({"name": str(informer.get("name", "")), "insights": insights})
    decodable = {name: layer[name] for name, kind in _PARTS.items() if _is_decodable(kind, layer.get(name))}
    return {**decodable, "name": layer.get("name", ""), "informers": informers, "conditions": _conditions(layer)}


def _conditions(holder: JSON) -> list[JSON]:
    return [condition for condition in _dicts(holder.get("conditions")) if _is_decodable(Condition, condition)]


def _dicts(items: Any) -> list[JSON]:
    # An object that was built by this process, not decoded from JSON, has tuples.
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list | tuple) else []


def _is_decodable(kind: type[Wire], value: Any) -> bool:
    """Reports whether the value has the form of `kind`."""
    try:
        codec.convert(kind, value)
    except codec.DecodeError:
        return False
    return True


def unknown_insights(types: Iterable[str]) -> Iterator[api.HealthInsight]:
    """Yields a health insight for each type in `types`, which says how many of them could not be read."""
    counts: dict[str, int] = {}
    for type_ in types:
        counts[type_] = counts.get(type_, 0) + 1
    for type_, number in sorted(counts.items()):
        insights_text = count(number, "insight")
        yield api.HealthInsight(
            scope=api.HealthScope(type=SCOPE_CLUSTER),
            impact=api.HealthImpact(
                level=UNKNOWN,
                type=UNKNOWN_IMPACT,
                summary=f"{insights_text} of type {type_} cannot be read by this version of runup",
                description="Another version of the update status controller wrote the report; a runup of its release "
                "reads it whole.",
            ),
            check="InsightUnknown",
        )


def with_unknown(status: api.UpdateStatusStatus, unknown: Iterable[str], now: datetime) -> api.UpdateStatusStatus:
    """Returns `status` with a health insight for each type in `unknown`, for callers that show insights themselves."""
    added = tuple(
        api.Insight(uid=f"unknown-{i}", acquired_at=now, type="Health", health=health)
        for i, health in enumerate(unknown_insights(unknown))
    )
    if not added:
        return status
    layer = status.control_plane or api.ControlPlane()
    informers = (*layer.informers, api.Informer(name="unknown", insights=added))
    return replace(status, control_plane=replace(layer, informers=informers))
