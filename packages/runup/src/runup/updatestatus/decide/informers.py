"""Separates this controller's entries of an UpdateStatus from those of other informers, and merges them again.

Takes the JSON of a stored status; returns what others contributed, untouched, and how much room it leaves. The lists
are keyed by name (informers, worker pools), so an informer owns its entries by its name. Works on JSON, not on types:
another informer may write fields that this version does not know, and they must be kept as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kubekit.api import codec
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.decide import limits
from runup.updatestatus.decide.insight_names import INFORMER
from runup.updatestatus.decide.memory import CONTROL_PLANE

JSON = dict[str, Any]
# Informers a layer may have, by the API.
MAX_INFORMERS = 16


@dataclass(frozen=True, slots=True)
class OtherInformers:
    """The contributions of other informers.

    Each pool holds others' informers only; a pool that has none of ours is kept whole.
    """

    control_plane: tuple[JSON, ...] = ()
    pools: dict[str, JSON] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.control_plane or self.pools)


@dataclass(frozen=True, slots=True)
class Room:
    """The room that other informers leave in bytes of JSON, and the names of the worker pools with their entries.

    `full` are the layers, CONTROL_PLANE or the name of a worker pool, in which they have taken every place.
    """

    bytes: int = limits.MAX_BYTES
    pools: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()


def others_of(status: JSON | None) -> OtherInformers:
    """Returns the entries in `status` that are not ours; a value that is not a list of objects is ignored."""
    status = status or {}
    pools = {}
    for pool in _objects(status.get("workerPools")):
        if (other_informers := _informers_of_others(pool)) and isinstance(pool.get("name"), str):
            pools[pool["name"]] = _keep_others(pool, other_informers)
    return OtherInformers(_informers_of_others(status.get("controlPlane")), pools)


def own_status(status: JSON) -> UpdateStatusStatus | None:
    """Returns the status without others' entries; None if it cannot be decoded, so that it is computed anew."""
    control_plane, pools = status.get("controlPlane"), _objects(status.get("workerPools"))
    own_document = {**status, "workerPools": [_with_own_informer(pool) for pool in pools if _is_ours(pool)]}
    if isinstance(control_plane, dict):
        own_document["controlPlane"] = _with_own_informer(control_plane)
    try:
        return codec.convert(UpdateStatusStatus, own_document)
    except codec.DecodeError:
        return None


def room_beside(other_informers: OtherInformers) -> Room:
    """Returns the room for our status within the limits, never less than a report needs."""
    if not other_informers:
        return Room()
    taken_bytes = len(codec.encode([other_informers.control_plane, *other_informers.pools.values()]))
    layers = {CONTROL_PLANE: other_informers.control_plane} | {
        name: tuple(_informers(pool)) for name, pool in other_informers.pools.items()
    }
    return Room(
        max(limits.LEAST_BYTES, limits.MAX_BYTES - taken_bytes),
        frozenset(other_informers.pools),
        frozenset(name for name, informers in layers.items() if len(informers) >= MAX_INFORMERS),
    )


def merge_informers(own_status: UpdateStatusStatus, other_informers: OtherInformers) -> JSON:
    """Returns the JSON of `own_status` with others' entries after ours, unchanged.

    `own_status` has no informer in the layers that `room_beside` calls full.
    """
    status: JSON = codec.to_dict(own_status)
    if not other_informers:
        return status
    if other_informers.control_plane:
        status["controlPlane"] = _with_informers(status.get("controlPlane") or {}, other_informers.control_plane)
    our_pools = [
        _with_informers(pool, _informers_of_others(other_informers.pools.get(pool["name"])))
        for pool in status.get("workerPools") or ()
    ]
    our_names = {pool["name"] for pool in our_pools}
    status["workerPools"] = [
        *our_pools,
        *(pool for name, pool in other_informers.pools.items() if name not in our_names),
    ]
    return status


def _objects(value: Any) -> list[JSON]:
    # JSON that was built from our own types has tuples, decoded JSON has lists.
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _informers(layer: Any) -> list[JSON]:
    return _objects(layer.get("informers")) if isinstance(layer, dict) else []


def _informers_of_others(layer: Any) -> tuple[JSON, ...]:
    return tuple(informer for informer in _informers(layer) if informer.get("name") != INFORMER)


def _is_ours(layer: JSON) -> bool:
    """Reports whether this controller has reported the pool, and not only other informers."""
    return not _informers_of_others(layer) or any(informer.get("name") == INFORMER for informer in _informers(layer))


def _with_own_informer(layer: JSON) -> JSON:
    return {**layer, "informers": [informer for informer in _informers(layer) if informer.get("name") == INFORMER]}


def _keep_others(pool: JSON, other_informers: Iterable[JSON]) -> JSON:
    """Returns a pool with others' entries only. Its own fields are ours, unless the whole pool is theirs."""
    if not _is_ours(pool):
        return pool
    return {**{key: pool[key] for key in ("name", "resource") if key in pool}, "informers": list(other_informers)}


def _with_informers(layer: JSON, other_informers: tuple[JSON, ...]) -> JSON:
    """Returns the layer with others' informers after ours."""
    return {**layer, "informers": [*_informers(layer), *other_informers]}
