"""Reads what a simulated drain needs: from a cluster, page by page and with reads only, or from a dump."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as with_fields

from kubekit.api import codec
from kubekit.api.core_v1 import Event
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, Lease
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from runup.api.config_v1 import ClusterVersion
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.process.steps import each, step
from runup.rehearse.decide.drain_inputs import KINDS
from runup.rules.node_events import EVENTS_NAMESPACE, is_of_node_step
from runup.updatestatus.decide.alerts import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from kubekit.kube.client_sync import SyncClient
    from runup.dump.load import Dump
    from runup.rehearse.decide.drains.drain_result import DrainResult
    from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings
    from runup.rehearse.decide.update_forecast import Forecast
    from runup.updatestatus.decide.assess import AnySnapshot

# Seconds after which a pod that never leaves is deleted, at the least.
_AT_ONCE_S = 60
OPENSHIFT = "MachineConfigPool"
# Kinds that show whether an update is held up, and that a simulated drain does not read.
_OF_STATUS: tuple[type[Object], ...] = (Deployment, Lease, CertificateSigningRequest, VolumeAttachment, Event)
VERSION = "ClusterVersion"


@dataclass(slots=True, kw_only=True)
class DrainSource:
    """Objects by kind, and why kinds are missing; `now` is the cluster's time, None of a dump that does not tell it.

    `cluster_version` is None where there is none, or it cannot be read: then `why_no_version` says why. A drain needs
    nothing of it, so it is not among what is missing. `status` shows whether an update is held up, and `node_events`
    are those that record steps of nodes, if they were asked for.
    """

    objects: dict[str, list[Any]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    openshift: bool = False
    now: datetime | None = None
    notes: tuple[str, ...] = ()
    cluster_version: ClusterVersion | None = None
    why_no_version: str = ""
    status: AnySnapshot | None = None
    why_no_status: str = ""
    node_events: tuple[Event, ...] = ()
    why_no_events: str = ""


def read_cluster_objects(client: SyncClient, *, with_status: bool = False, with_events: bool = False) -> DrainSource:
    """Lists every kind. What cannot be listed is named; a kind that the server does not have is empty."""
    source = DrainSource()
    try:
        source.cluster_version = client.send(calls.get(ClusterVersion, "version"))
        source.openshift = True
    except NotFound:
        pass
    except (ApiError, codec.DecodeError) as error:
        # A user who may not read it sees the kinds of both.
        source.openshift = True
        source.why_no_version = str(error)
    for kind in each(KINDS, "Listing kinds"):
        name = kind.resource.kind
        if name == OPENSHIFT and not source.openshift:
            continue
        try:
            listing = client.listing(kind.type, resource=kind.resource)
        except ApiError as error:
            source.missing[name] = str(error)
            continue
        source.objects[name] = list(listing.items)
        problems = [str(problem) for problem in listing.undecoded] + list(listing.incomplete)
        if problems:
            source.missing[name] = "; ".join(problems[:3])
    source.now = client.now()
    if with_status:
        _read_status(client, source)
    if with_events:
        try:
            events = client.listing(Event, EVENTS_NAMESPACE, field_selector="involvedObject.kind=Node")
        except ApiError as error:
            source.why_no_events = str(error)
        else:
            source.node_events = tuple(event for event in events.items if _is_node_step(event))
            source.why_no_events = "; ".join(events.incomplete[:3])
    return source


def _is_node_step(event: Event) -> bool:
    return is_of_node_step(event.involved_object.kind, event.reason)


def _read_status(client: SyncClient, source: DrainSource) -> None:
    """Reads what shows whether an update is held up; without it, the reason is among what is missing."""
    from runup.process.clusterversion_client import NoClusterVersion
    from runup.updatestatus.control import kubernetes_objects, live_status

    try:
        if source.openshift:
            source.status = live_status.observe(client, client.now(), live_status.TOLERATED, ahead=True)
        else:
            source.status = kubernetes_objects.observe(client, live_status.TOLERATED)
    except (ApiError, NoClusterVersion, codec.DecodeError) as error:
        source.why_no_status = str(error)


def read_dump_objects(path: Path, *, with_status: bool = False) -> DrainSource:
    """Returns the objects of the dump at `path` that a simulated drain reads. Raises BadDump."""
    from runup.dump.load import read, time_of_dump

    only = {kind.resource.plural for kind in KINDS} | {"clusterversions"}
    if with_status:
        from runup.updatestatus.control.status_reads import READS

        only |= {resource.plural for resource, _ in READS}
    dump = read(path, only=only, any_kubernetes=True)
    source = DrainSource(openshift=dump.has_cluster_version, now=time_of_dump(dump), notes=dump.problems)
    if with_status:
        _status_of_dump(dump, source)
        _events_of_dump(dump, source)
    kinds = {(kind.resource.group, kind.resource.kind): kind for kind in KINDS}
    for obj in dump.objects:
        if obj["kind"] == VERSION and obj["apiVersion"].startswith("config.openshift.io/"):
            try:
                source.cluster_version = codec.convert(ClusterVersion, obj)
            except codec.DecodeError as error:
                source.why_no_version = f"it cannot be read: {error}"
        kind = kinds.get((obj["apiVersion"].rpartition("/")[0], obj["kind"]))
        if kind is not None:
            try:
                source.objects.setdefault(obj["kind"], []).append(codec.convert(kind.type, obj))
            except codec.DecodeError as error:
                source.missing[obj["kind"]] = f"{obj['metadata'].get('name')} cannot be read: {error}"
    # A kind is not known, or not wholly, unless the dump's form proves that it has all of it.
    for kind in KINDS:
        name, key = kind.resource.kind, (kind.resource.group, kind.resource.plural)
        is_known = name in source.missing or dump.collected.covers(key) or key in dump.collected.absent
        if is_known or (name == OPENSHIFT and not source.openshift):
            continue
        if name not in source.objects:
            source.missing[name] = f"the dump holds no {kind.resource.name}"
        elif key in dump.collected.partly:
            source.missing[name] = dump.collected.why_partly(key)
    return source


def _status_of_dump(dump: Dump, source: DrainSource) -> None:
    from runup.updatestatus.control.dump_objects import DumpObjects, convert_item
    from runup.updatestatus.control.kubernetes_objects import of_dump
    from runup.updatestatus.control.status_files import snapshot_of

    objects = DumpObjects(dump, [])
    if not dump.has_cluster_version:
        source.status = of_dump(objects, dump.kubernetes.version)
        return
    try:
        version = convert_item(dump.cluster_version, ClusterVersion, dump.cluster_version_file)
    except InputError as error:
        source.why_no_status = error.message
    else:
        source.status = snapshot_of(version, objects)
        lacking = [resource_of(kind).plural for kind in _OF_STATUS if isinstance(objects.known(kind), Unreadable)]
        if lacking:
            source.why_no_status = f"the dump holds no {', '.join(lacking)}"


def simulated(cluster: DrainedCluster, settings: DrainSettings, now: datetime) -> DrainResult:
    """Returns the drains of the cluster's pools if they begin now, simulated as a step that counts nodes."""
    from runup.rehearse.decide.drains.simulation import Simulation

    simulation = Simulation(cluster, settings, now)
    with step("Simulating drains of nodes", simulation.node_count) as current:

        def count_drained() -> None:
            current.done = simulation.drained_count

        simulation.run(count_drained)
        return simulation.result()


def _events_of_dump(dump: Dump, source: DrainSource) -> None:
    events = []
    for obj in dump.objects:
        if obj["kind"] == "Event":
            with suppress(codec.DecodeError):
                events.append(codec.convert(Event, obj))
    source.node_events = tuple(event for event in events if _is_node_step(event))
    key = ("", "events")
    if not dump.collected.covers(key, EVENTS_NAMESPACE):
        source.why_no_events = dump.collected.why_partly(key) if events else "the dump holds no events"


def forecast_of(
    source: DrainSource, now: datetime, node_s: tuple[int, int] | None
) -> tuple[Forecast, DrainedCluster, DrainResult]:
    """Returns the forecast of an update from `now` on, the cluster, and its slowest drains.

    `node_s` are the seconds that a node takes at least and at most; None: they are guessed. Raises InputError if the
    cluster has no nodes.
    """
    # Simulations are loaded only where something is simulated: many commands import this module.
    from runup.rehearse.decide import update_forecast
    from runup.rehearse.decide.drain_inputs import drained_cluster
    from runup.rehearse.decide.drains.drained_cluster import NODE_UPDATE_S, DrainSettings
    from runup.updatestatus.decide.holdups import Holdups, holdups

    cluster = drained_cluster(source.objects, source.missing, openshift=source.openshift)
    if not cluster.nodes:
        raise InputError(f"there are no nodes to drain: {source.missing.get('Node', 'the cluster lists no nodes')}")
    settings = DrainSettings(forces=source.openshift, uncordons_all=source.openshift)
    least_s, most_s = node_s or (NODE_UPDATE_S, NODE_UPDATE_S)
    slow = simulated(cluster, replace(settings, node_update_s=most_s), now)
    version, no_version_reason = source.cluster_version, source.why_no_version
    history = version.status.history if version is not None else ()
    result = update_forecast.forecast(
        history if source.openshift else None,
        cluster.pools,
        nodes=cluster.nodes,
        # At least: a pod that somebody has to delete is deleted at once.
        quick=simulated(cluster, replace(settings, node_update_s=least_s, drain_timeout_s=_AT_ONCE_S), now),
        slow=slow,
        guessed=node_s is None,
        why_no_history=f"what earlier updates took: ClusterVersion: {no_version_reason}" if no_version_reason else "",
    )
    held = holdups(source.status, now) if source.status is not None else Holdups()
    if source.why_no_status:
        why = f"whether the update is held up: {source.why_no_status}"
        held = with_fields(held, unknown=(*held.unknown, why))
    return update_forecast.with_holdups(result, held), cluster, slow
