"""Reads what a simulated drain needs: from a cluster, page by page and with reads only, or from a dump."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from runup.api.config_v1 import ClusterVersion
from runup.rehearse.decide.drain_inputs import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from kubekit.kube.client_sync import SyncClient
    from runup.rehearse.decide.drains.drain_result import DrainResult
    from runup.rehearse.decide.drains.drained_cluster import DrainedCluster
    from runup.rehearse.decide.update_forecast import Forecast

# Seconds after which a pod that never leaves is deleted, at the least.
_AT_ONCE_S = 60
OPENSHIFT = "MachineConfigPool"
VERSION = "ClusterVersion"


@dataclass(slots=True, kw_only=True)
class DrainSource:
    """Objects by kind, and why kinds are missing; `now` is the cluster's time, None of a dump that does not tell it.

    `cluster_version` is None where there is none, or it cannot be read: then `why_no_version` says why. A drain needs
    nothing of it, so it is not among what is missing.
    """

    objects: dict[str, list[Any]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    openshift: bool = False
    now: datetime | None = None
    notes: tuple[str, ...] = ()
    cluster_version: ClusterVersion | None = None
    why_no_version: str = ""


def read_cluster_objects(client: SyncClient) -> DrainSource:
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
    for kind in KINDS:
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
    return source


def read_dump_objects(path: Path) -> DrainSource:
    """Returns the objects of the dump at `path` that a simulated drain reads. Raises BadDump."""
    from runup.dump.load import read, time_of_dump

    dump = read(path, only={kind.resource.plural for kind in KINDS} | {"clusterversions"}, any_kubernetes=True)
    source = DrainSource(openshift=dump.has_cluster_version, now=time_of_dump(dump), notes=dump.problems)
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
    from runup.rehearse.decide.drains.simulation import simulate

    cluster = drained_cluster(source.objects, source.missing, openshift=source.openshift)
    if not cluster.nodes:
        raise InputError(f"there are no nodes to drain: {source.missing.get('Node', 'the cluster has none')}")
    settings = DrainSettings(forces=source.openshift, uncordons_all=source.openshift)
    least_s, most_s = node_s or (NODE_UPDATE_S, NODE_UPDATE_S)
    slow = simulate(cluster, replace(settings, node_update_s=most_s), now)
    version, no_version_reason = source.cluster_version, source.why_no_version
    history = version.status.history if version is not None else ()
    result = update_forecast.forecast(
        history if source.openshift else None,
        cluster.pools,
        nodes=cluster.nodes,
        # At least: a pod that somebody has to delete is deleted at once.
        quick=simulate(cluster, replace(settings, node_update_s=least_s, drain_timeout_s=_AT_ONCE_S), now),
        slow=slow,
        guessed=node_s is None,
        why_no_history=f"what earlier updates took: ClusterVersion: {no_version_reason}" if no_version_reason else "",
    )
    return result, cluster, slow
