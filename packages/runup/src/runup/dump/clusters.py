"""Tells whether the files of a dump come from one cluster: objects of two clusters may have the same names.

A cluster is identified by the id in its ClusterVersion, or by the uid of its namespace kube-system if it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

JSON = dict[str, Any]
MAX_NAMED = 10


class Sighting(NamedTuple):
    """A ClusterVersion or the namespace kube-system, and the folder (or file) of the dump that has it."""

    place: str
    obj: JSON


def why_several(name: str, sightings: Iterable[Sighting]) -> str:
    """Returns an error that names the clusters of the dump `name`, or an empty string if it has one at most."""
    sightings = tuple(sightings)
    for kind in ("ClusterVersion", "Namespace"):
        clusters = list(
            _distinct_clusters(
                [sighting for sighting in sightings if sighting.obj.get("kind", "ClusterVersion") == kind]
            )
        )
        if len(clusters) > 1:
            rows = [f"  {sighting.place}: {_describe_cluster(sighting.obj)}" for sighting in clusters[:MAX_NAMED]]
            more = [f"  and {len(clusters) - MAX_NAMED} more"] * (len(clusters) > MAX_NAMED)
            hint = "give each of them by itself, with its own folder"
            return "\n".join([f"{name} holds {len(clusters)} clusters; {hint}:", *rows, *more])
    return ""


def _distinct_clusters(sightings: Sequence[Sighting]) -> Iterator[Sighting]:
    """Yields the first sighting of each cluster."""
    distinct: list[Sighting] = []
    for sighting in sightings:
        if not any(_is_same(sighting, other) for other in distinct):
            distinct.append(sighting)
            yield sighting


def _is_same(first: Sighting, other: Sighting) -> bool:
    """Compares by the first mark that both have; without any, what is in one place is one cluster."""
    for mark, yours in zip(_identifying_marks(first.obj), _identifying_marks(other.obj), strict=True):
        if mark and yours:
            return mark == yours
    return first.place == other.place


def _identifying_marks(obj: JSON) -> tuple[str, ...]:
    """Returns what stays the same for a cluster: its id, the object's uid and creation, when it was installed."""
    metadata, history = _mapping(obj, "metadata"), _mapping(obj, "status").get("history")
    first = history[-1] if isinstance(history, list) and history and isinstance(history[-1], dict) else {}
    return (
        str(_mapping(obj, "spec").get("clusterID") or ""),
        str(metadata.get("uid") or ""),
        str(metadata.get("creationTimestamp") or ""),
        str(first.get("startedTime") or ""),
    )


def _describe_cluster(obj: JSON) -> str:
    cluster_id, uid, *_ = _identifying_marks(obj)
    version = str(_mapping(_mapping(obj, "status"), "desired").get("version") or "")
    identity_text = f"cluster {cluster_id}" if cluster_id else f"uid {uid}" if uid else "a cluster without an id"
    return f"{identity_text}, at {version}" if version else identity_text


def _mapping(obj: JSON, key: str) -> JSON:
    value = obj.get(key)
    return value if isinstance(value, dict) else {}
