"""Whose entries of an UpdateStatus are whose: ours are written anew, other informers' are kept as they are.

In: the JSON of a status as stored. Out: what others contributed, untouched, and how much room that leaves; and a status
of ours with theirs in it. The lists are keyed by name (informers, worker pools), so an informer owns its entries by its
name. JSON and no types: another informer may write what this version does not know, and that must come back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubekit.api import codec
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.decide import limits
from runup.updatestatus.decide.words import INFORMER

JSON = dict[str, Any]
# Informers a layer may have, by the API.
MAX_INFORMERS = 16


@dataclass(frozen=True, slots=True)
class Others:
    """What informers other than ours contributed. `pools` have others' informers alone, or all of theirs where the pool
    has nothing of ours.
    """

    control_plane: tuple[JSON, ...] = ()
    pools: dict[str, JSON] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.control_plane or self.pools)


@dataclass(frozen=True, slots=True)
class Room:
    """What others leave to us: bytes of JSON, and the worker pools in which they have something."""

    bytes: int = limits.MAX_BYTES
    pools: frozenset[str] = frozenset()


def others_of(status: JSON | None) -> Others:
    """Everything in `status` that is not ours; what is no list of objects is nobody's."""
    status = status or {}
    pools = {}
    for pool in _objects(status.get("workerPools")):
        if (theirs := _theirs(pool)) and isinstance(pool.get("name"), str):
            pools[pool["name"]] = _kept(pool, theirs)
    return Others(_theirs(status.get("controlPlane")), pools)


def ours_of(status: JSON) -> UpdateStatusStatus | None:
    """The status without others' entries; None where what is left cannot be read, so that it is computed anew."""
    control_plane, pools = status.get("controlPlane"), _objects(status.get("workerPools"))
    own = {**status, "workerPools": [_own(pool) for pool in pools if _is_ours(pool)]}
    if isinstance(control_plane, dict):
        own["controlPlane"] = _own(control_plane)
    try:
        return codec.convert(UpdateStatusStatus, own)
    except codec.DecodeError:
        return None


def room_beside(others: Others) -> Room:
    """What the status may have so that all of it stays within the limits; never less than what a report needs."""
    if not others:
        return Room()
    taken = len(codec.encode([others.control_plane, *others.pools.values()]))
    return Room(max(limits.LEAST_BYTES, limits.MAX_BYTES - taken), frozenset(others.pools))


def merged(ours: UpdateStatusStatus, others: Others) -> JSON:
    """The JSON of `ours` with others' entries in it: ours first, theirs as they were."""
    status: JSON = codec.to_dict(ours)
    if not others:
        return status
    if others.control_plane:
        status["controlPlane"] = _with(status.get("controlPlane") or {}, others.control_plane)
    made = [_with(pool, _theirs(others.pools.get(pool["name"]))) for pool in status.get("workerPools") or ()]
    known = {pool["name"] for pool in made}
    status["workerPools"] = [*made, *(pool for name, pool in others.pools.items() if name not in known)]
    return status


def _objects(value: Any) -> list[JSON]:
    # What our own types were turned into has tuples, what was read has lists.
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _informers(layer: Any) -> list[JSON]:
    return _objects(layer.get("informers")) if isinstance(layer, dict) else []


def _theirs(layer: Any) -> tuple[JSON, ...]:
    return tuple(informer for informer in _informers(layer) if informer.get("name") != INFORMER)


def _is_ours(layer: JSON) -> bool:
    """Whether a pool is one that we reported, rather than one that others alone know."""
    return not _theirs(layer) or any(informer.get("name") == INFORMER for informer in _informers(layer))


def _own(layer: JSON) -> JSON:
    return {**layer, "informers": [each for each in _informers(layer) if each.get("name") == INFORMER]}


def _kept(pool: JSON, theirs: Iterable[JSON]) -> JSON:
    """A pool with others' entries alone. What it says of itself is ours, unless the whole pool is theirs."""
    if not _is_ours(pool):
        return pool
    return {**{key: pool[key] for key in ("name", "resource") if key in pool}, "informers": list(theirs)}


def _with(layer: JSON, theirs: tuple[JSON, ...]) -> JSON:
    own = _informers(layer)
    if len(theirs) < MAX_INFORMERS:
        return {**layer, "informers": [*own, *theirs]}
    left_out = list(_insights(own))
    omitted = layer.get("omitted") or {}
    counts = {
        "nodes": omitted.get("nodes", 0) + sum(insight.get("type") == "Node" for insight in left_out),
        "health": omitted.get("health", 0) + sum(insight.get("type") == "Health" for insight in left_out),
    }
    return {**layer, "informers": list(theirs), "omitted": counts}


def _insights(informers: Iterable[JSON]) -> Iterator[JSON]:
    for informer in informers:
        yield from _objects(informer.get("insights"))
