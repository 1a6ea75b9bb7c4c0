"""Reads the inputs for the status of hosted clusters, from a live management cluster or its dump.

A dump by `hypershift dump cluster --dump-guest-cluster` has the hosted side of each cluster in a folder
`hostedcluster-NAME`. On a live cluster `updatestatus.control.hosted_side` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.error_types import InputError
from kubekit.lang.gotext import to_ns
from runup.api.config_v1 import ClusterOperator
from runup.api.hypershift_v1beta1 import ControlPlaneComponent, HostedCluster, HostedNodePool
from runup.api.rollouts_v1 import ClusterMachine
from runup.api.update_v1alpha1 import HostedClusterUpdateStatus, UpdateStatusStatus
from runup.updatestatus.control.dump_objects import DumpObjects
from runup.updatestatus.control.kubernetes_objects import versions_of
from runup.updatestatus.control.status_reading import StatusReading, status_json
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import own_status
from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot

if TYPE_CHECKING:
    from datetime import datetime

    from kubekit.kube.client_sync import SyncClient
    from runup.dump.dump_files import Layout
    from runup.dump.load import Dump

K = TypeVar("K", bound=Object)
JSON = dict[str, Any]
Answer = tuple[K, ...] | Unreadable
HOSTED_SIDE = "hostedcluster-"
IN_CONTROL_PLANE: dict[str, type[Object]] = {
    "machines": ClusterMachine,
    "components": ControlPlaneComponent,
    "pods": Pod,
}
"""Fields of a snapshot whose objects are in the namespace of the control plane, with their kinds."""


class NoHostedClusters(InputError):
    """The cluster has no HostedCluster, so it is not a management cluster of HyperShift."""

    def __init__(self) -> None:
        super().__init__("no HostedCluster was found: only a management cluster of HyperShift has them")


def read(
    client: SyncClient, clock: Callable[[], datetime], name: str, refused: tuple[type[Exception], ...]
) -> list[StatusReading]:
    """Returns the status of the hosted cluster `name` ([NAMESPACE/]NAME), or of all if it is empty.

    Raises InputError if there is none. Errors of the types `refused` become `Unreadable`, others are raised. The hosted
    sides are read, too; whatever fails there is part of the status.
    """
    from kubekit.kube.api_errors import NotFound

    def listed(kind: type[K], namespace: str = "") -> Answer[K]:
        for resource in versions_of(kind):
            try:
                listing = client.listing(kind, namespace, resource=resource)
            except NotFound:
                continue
            except refused as error:
                return Unreadable(getattr(error, "message", str(error)))
            return tuple(sorted(listing.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))
        return ()

    try:
        clusters = client.listing(HostedCluster).items
    except NotFound as error:
        raise NoHostedClusters from error
    pools = listed(HostedNodePool)
    snapshots = []
    for cluster in _chosen(clusters, name):
        namespace = cluster.control_plane_namespace
        own: dict[str, Any] = {field: listed(kind, namespace) for field, kind in IN_CONTROL_PLANE.items()}
        snapshots.append(HostedSnapshot(cluster=cluster, pools=pools, **own))
    snapshots = _with_sides(client, snapshots)
    stored = [_stored_status(client, cluster.cluster, refused) for cluster in snapshots]
    now_ns = to_ns(clock())
    return [
        reading_of(snapshot, now_ns, previous=previous) for snapshot, previous in zip(snapshots, stored, strict=True)
    ]


def _with_sides(client: SyncClient, snapshots: Sequence[HostedSnapshot]) -> list[HostedSnapshot]:
    """Returns the snapshots with what is read on the hosted sides, or the reason why a side is not read."""
    import asyncio

    from kubekit.kube.api_errors import KubeError
    from runup.updatestatus.control import hosted_side

    fields: dict[int, dict[str, Any]] = {}
    secrets: dict[int, tuple[HostedCluster, JSON]] = {}
    for number, snapshot in enumerate(snapshots):
        call = hosted_side.secret_call(snapshot.cluster)
        try:
            if call is None:
                fields[number] = {"why_not_read": hosted_side.UNNAMED}
            else:
                secrets[number] = (snapshot.cluster, client.send(call))
        except KubeError as error:
            fields[number] = {"why_not_read": hosted_side.why_no_secret(snapshot.cluster, error)}
    fields |= zip(secrets, asyncio.run(hosted_side.read_all(list(secrets.values()))), strict=True)
    return [structs.replace(snapshot, **fields[number]) for number, snapshot in enumerate(snapshots)]


def _stored_status(
    client: SyncClient, cluster: HostedCluster, refused: tuple[type[Exception], ...]
) -> UpdateStatusStatus | None:
    """Returns the controller's status of the cluster, whose times the cluster itself does not record, or None."""
    from kubekit.kube import calls

    metadata = cluster.metadata
    call = calls.get_raw(resource_of(HostedClusterUpdateStatus), metadata.name, metadata.namespace)
    try:
        stored = client.send(call)
    except refused:
        return None
    return own_status(stored.get("status") or {})


def read_dump(path: str, name: str, now_ns: int | None) -> list[StatusReading]:
    """Returns the status of the hosted cluster `name` of a dump, or of all. Raises InputError if the dump lacks it."""
    from runup.dump import archive, dump_files, load
    from runup.updatestatus.control.status_reads import READS

    only = {resource.plural for resource, _ in READS}
    try:
        with archive.open_dump(Path(path)) as folder:
            location = dump_files.find(folder)
            sides = _sides(location)
            management = load.load(replace(location, files=sides.pop("", ())), only=only, of_a_part=True)
            notes = [f"warning: {problem}\n" for problem in management.problems]
            objects = DumpObjects(management, notes)
            chosen = _chosen(objects.of(HostedCluster), name)
            hosted = {
                cluster.metadata.name: _hosted_fields(replace(location, files=files), notes)
                for cluster in chosen
                if (files := sides.get(cluster.metadata.name))
            }
    except dump_files.BadDump as error:
        raise InputError(error.message) from error
    moment = load.time_of_dump(management)
    now = now_ns or _newest_change(chosen, to_ns(moment) if moment else 0, management)
    return [
        reading_of(_of_dump(cluster, objects, hosted.get(cluster.metadata.name, {})), now, tuple(notes))
        for cluster in chosen
    ]


def _chosen(clusters: Iterable[HostedCluster], name: str) -> list[HostedCluster]:
    """Returns the cluster of this name, or all, by namespace and name."""
    ordered = sorted(clusters, key=lambda each: (each.metadata.namespace, each.metadata.name))
    if not ordered:
        raise NoHostedClusters
    namespace, _, short = name.rpartition("/")
    chosen = [
        each
        for each in ordered
        if not name or (each.metadata.name == short and namespace in ("", each.metadata.namespace))
    ]
    known = ", ".join(f"{each.metadata.namespace}/{each.metadata.name}" for each in ordered[:20])
    if not chosen:
        raise InputError(f"there is no HostedCluster {name}; there are: {known}")
    if name and len(chosen) > 1:
        raise InputError(f"several HostedClusters are named {name}; give one as NAMESPACE/NAME: {known}")
    return chosen


def _sides(location: Layout) -> dict[str, tuple[Path, ...]]:
    """Returns the files of a dump by the hosted cluster whose hosted side they are of; "" for the management side."""
    sides: dict[str, list[Path]] = {"": []}
    for file in location.files:
        parts = file.relative_to(location.root).parts if file.is_relative_to(location.root) else file.parts
        side = next((part.removeprefix(HOSTED_SIDE) for part in parts[:-1] if part.startswith(HOSTED_SIDE)), "")
        sides.setdefault(side, []).append(file)
    return {side: tuple(files) for side, files in sides.items()}


def _hosted_fields(location: Layout, notes: list[str]) -> JSON:
    """Returns the fields of a snapshot that a dump has of the hosted side; none if it lacks the ClusterOperators."""
    from runup.dump import dump_files, load
    from runup.updatestatus.control.kubernetes_objects import leaving_nodes

    kinds = (ClusterOperator, Node, Pod, PodDisruptionBudget)
    try:
        hosted = load.load(location, only={resource_of(kind).plural for kind in kinds}, of_a_part=True)
    except dump_files.BadDump as error:
        notes.append(f"warning: the hosted side could not be read: {error.message}\n")
        return {}
    objects = DumpObjects(hosted, notes)
    if not (operators := objects.of(ClusterOperator)):
        return {}
    nodes, pods, budgets = objects.of(Node), objects.known(Pod), objects.known(PodDisruptionBudget)
    if not (leaving := frozenset(leaving_nodes(nodes))):
        return {"operators": operators, "nodes": nodes}
    if isinstance(pods, tuple):
        pods = tuple(pod for pod in pods if pod.spec.node_name in leaving)
    return {
        "operators": operators, "nodes": nodes, "draining_pods": pods, "drains_read": leaving, "budgets": budgets,
    }  # fmt: skip


def _of_dump(cluster: HostedCluster, objects: DumpObjects, hosted: JSON) -> HostedSnapshot:
    namespace = cluster.control_plane_namespace

    def own(kind: type[K]) -> Answer[K]:
        known = objects.known(kind)
        if isinstance(known, Unreadable):
            return known
        return tuple(obj for obj in known if obj.metadata.namespace == namespace)

    return HostedSnapshot(
        cluster=cluster,
        pools=objects.known(HostedNodePool),
        machines=own(ClusterMachine),
        # Older releases have no such kind, so that its absence proves nothing.
        components=objects.of(ControlPlaneComponent) and own(ControlPlaneComponent),
        pods=own(Pod),
        **hosted,
    )


def _newest_change(clusters: Iterable[HostedCluster], recorded_ns: int, management: Dump) -> int:
    """Returns the recorded time of a dump; if none is recorded, that of the newest change of its hosted clusters."""
    if management.now is not None:
        return recorded_ns
    moments = [
        to_ns(condition.last_transition_time)
        for cluster in clusters
        for condition in cluster.status.conditions
        if condition.last_transition_time
    ]
    return max([recorded_ns, *moments])


def reading_of(
    snapshot: HostedSnapshot,
    now_ns: int,
    notes: tuple[str, ...] = (),
    *,
    previous: UpdateStatusStatus | None = None,
) -> StatusReading:
    """Returns the status of a hosted cluster as an object of its name."""
    metadata, resource = snapshot.cluster.metadata, resource_of(HostedClusterUpdateStatus)
    return StatusReading(
        obj={
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"namespace": metadata.namespace, "name": metadata.name},
            "spec": {},
            "status": status_json(snapshot, now_ns, previous=previous),
        },
        now_ns=now_ns,
        notes=notes,
        cluster=f"{metadata.namespace}/{metadata.name}",
    )


def as_list(readings: Sequence[StatusReading]) -> JSON:
    """Returns the objects of several clusters as one list of the API."""
    return {"apiVersion": "v1", "kind": "List", "items": [reading.obj for reading in readings]}
