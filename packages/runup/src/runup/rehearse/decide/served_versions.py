"""Finds the objects of a cluster that are written in versions which a target's Kubernetes no longer serves.

The table is that of the checks (`runup.checks.decide.removal_tables`): the lifecycle that Kubernetes' types declare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.decide.removal_tables import removed_versions, table
from runup.rehearse.decide.rehearsal_outcome import LeftOut, Unserved
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
# Programs of the control plane, which is of the target when the target is there.
_CONTROL_PLANE = frozenset({"kube-apiserver", "kube-controller-manager", "kube-scheduler"})


def unserved(objects: Iterable[JSON], source: int, target: int) -> tuple[Unserved, ...]:
    """Returns the objects that are written in a version which goes between two minor versions, and by whom."""
    return _users_of_versions(objects, removed_versions(source, target))


def unserved_by_server(
    objects: Iterable[JSON], served: Collection[tuple[str, str, str]], source: int, server: int
) -> tuple[Unserved, ...]:
    """Returns the objects in versions of Kubernetes' own groups that a server does not serve, and who wrote them.

    `served` has group, version and kind of all that it does; `source` and `server` are the minor versions. What an
    object was written in, in a group that is now another, is of the table of removed versions.
    """
    all_objects = list(objects)
    used = {
        (*_group_and_version(api_version), str(obj["kind"]))
        for obj in all_objects
        for api_version, _ in _versions_of_object(obj)
        if _group_and_version(api_version)[0] == _group_and_version(str(obj["apiVersion"]))[0]
    }
    removed = {triple: server for triple in used if triple not in served and is_built_in(triple[0])}
    return _users_of_versions(all_objects, {**removed, **removed_versions(source, server)})


def _group_and_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _users_of_versions(objects: Iterable[JSON], removed: Mapping[tuple[str, str, str], int]) -> tuple[Unserved, ...]:
    """Returns the objects written in each removed version, with their field managers."""
    users: dict[tuple[str, str, str], dict[Identity, set[str]]] = {}
    for obj in objects:
        kind = str(obj["kind"])
        for api_version, manager in _versions_of_object(obj):
            group, version = _group_and_version(api_version)
            if (group, version, kind) in removed:
                metadata = obj["metadata"]
                identity = Identity(group, kind, metadata.get("namespace") or "", metadata["name"])
                writers = users.setdefault((group, version, kind), {}).setdefault(identity, set())
                writers |= {manager} if manager else set()
    return tuple(
        Unserved(
            *triple,
            removed[triple],
            tuple(sorted(by_object, key=str)),
            tuple(sorted(set[str]().union(*by_object.values()))),
        )
        for triple, by_object in sorted(users.items())
    )


def _versions_of_object(obj: JSON) -> Iterator[tuple[str, str]]:
    """Yields the versions in which the object is shown or was written, and by which manager."""
    yield str(obj["apiVersion"]), ""
    for entry in obj["metadata"].get("managedFields") or ():
        if isinstance(entry, dict) and entry.get("manager") not in _CONTROL_PLANE:
            yield str(entry.get("apiVersion") or ""), str(entry.get("manager") or "")


def kinds_losing_versions(source: int, target: int) -> tuple[tuple[str, str], ...]:
    """Returns group and kind of all that loses a version between two minor versions."""
    return tuple(sorted({(group, kind) for group, _, kind in removed_versions(source, target)}))


def kinds_beyond_table(target: int) -> tuple[LeftOut, ...]:
    """Returns what is not known of that minor version, because the table does not reach it."""
    in_table = table("removed-apis")
    if in_table.knows(target):
        return ()
    text = f"what Kubernetes 1.{target} removes is not known: the table reaches 1.{in_table.last}, of {in_table.date}"
    return (LeftOut("versions of the API", text),)
