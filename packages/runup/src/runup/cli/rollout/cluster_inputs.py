"""Reads what the gates of an update are evaluated on: from a cluster, or from a dump."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.kube.api_errors import ApiError
from runup.advice.decide import acceptance, alert_conditions
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.update_policy_v1alpha1 import UpdateCalendar, UpdatePolicy
from runup.cli.errors import CommandError
from runup.cli.rehearse.forecast_command import forecast_of
from runup.dump import clusterversion_files
from runup.preflight.control import cluster_records
from runup.preflight.decide import stored_reports
from runup.process import clusterversion_client
from runup.process.connection import Connection
from runup.rehearse.control import drain_source
from runup.rehearse.control.drain_source import DrainSource
from runup.rollout.control import policy_objects
from runup.rollout.decide.assemble import ClusterObjects
from runup.updatestatus.control import thanos
from runup.updatestatus.decide.alerts import Alert, Unreadable, read_alerts

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.rehearse.decide.update_forecast import Forecast


class ClusterInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What was read: the objects of the cluster, its policies and calendars, and its time."""

    objects: ClusterObjects
    policies: tuple[UpdatePolicy, ...] = ()
    calendars: tuple[UpdateCalendar, ...] = ()
    now: datetime
    notes: tuple[str, ...] = ()


def read_cluster(client: SyncClient, node_s: tuple[int, int] | None, *, with_policy: bool) -> ClusterInputs:
    """Reads a live cluster; `with_policy` also its policy and calendars. Raises InputError without a ClusterVersion."""
    cluster = clusterversion_client.read(client)
    policy = policy_objects.policy(client) if with_policy else None
    source = drain_source.read_cluster_objects(client)
    operators: list[ClusterOperator] = []
    unreadable = _missing(source)
    try:
        operators = client.list_all(ClusterOperator)[0]
    except (ApiError, codec.DecodeError) as error:
        unreadable = (*unreadable, f"ClusterOperator: {error}")
    objects = ClusterObjects(
        cluster=cluster,
        history=cluster_records.read_history(client, clusterversion_client.namespace()),
        accepted=cluster_records.read_accepted(client, cluster),
        operators=operators,
        pools=source.objects.get(drain_source.OPENSHIFT, []),
        nodes=source.objects.get("Node", []),
        alerts=thanos.alerts(client, client.now()),
        forecast=_forecast(source, client.now(), node_s),
        unreadable=unreadable,
    )
    return ClusterInputs(
        objects=objects,
        policies=(policy,) if policy is not None else (),
        calendars=policy_objects.calendars(client) if with_policy and policy is not None else (),
        now=client.now(),
    )


def read_dump(path: str, node_s: tuple[int, int] | None, at: datetime | None) -> ClusterInputs:
    """Reads a dump as of `at`, or of the time at which it was made. Raises InputError."""
    from runup.cli.rehearse.drain_command import read_source
    from runup.dump.load import read

    source = read_source(Connection(), path)
    now = at or source.now
    if now is None:
        raise CommandError(f"{path} does not show when it was made: give --at TIME")
    files = clusterversion_files.dump(path, alerts=True, config_maps=True)
    cluster = codec.convert(ClusterVersion, files.cluster)
    maps = {str(each.get("metadata", {}).get("name")): each for each in files.config_maps}
    found = read(Path(path), only={"clusteroperators"}, any_kubernetes=True)
    key = ("config.openshift.io", "clusteroperators")
    unreadable = _missing(source)
    if not found.collected.covers(key) or key in found.collected.partly:
        unreadable = (*unreadable, "ClusterOperator: the dump may lack some")
    operators = [codec.convert(ClusterOperator, obj) for obj in found.objects if obj["kind"] == "ClusterOperator"]
    history = maps.get(stored_reports.NAME)
    return ClusterInputs(
        objects=ClusterObjects(
            cluster=cluster,
            history=stored_reports.read(codec.convert(ConfigMap, history) if history else None),
            accepted=acceptance.accepted(cluster, _texts(maps.get(acceptance.NAME)), now),
            operators=operators,
            pools=source.objects.get(drain_source.OPENSHIFT, []),
            nodes=source.objects.get("Node", []),
            alerts=_alerts_of(files),
            forecast=_forecast(source, now, node_s),
            unreadable=unreadable,
        ),
        now=now,
        notes=source.notes,
    )


def _missing(source: DrainSource) -> tuple[str, ...]:
    """Returns why the cluster's health is not known: its nodes or pools could not be read."""
    return tuple(
        f"{kind}: {source.missing[kind]}" for kind in ("Node", drain_source.OPENSHIFT) if kind in source.missing
    )


def _forecast(source: DrainSource, now: datetime, node_s: tuple[int, int] | None) -> Forecast | str:
    """Returns the forecast, or why there is none."""
    try:
        return forecast_of(source, now, node_s)[0]
    except CommandError as error:
        return error.message


def _texts(config_map: Mapping[str, Any] | None) -> dict[str, str]:
    data = (config_map or {}).get("data") or {}
    return {str(key): str(value) for key, value in data.items()}


def _alerts_of(files: clusterversion_files.Read) -> tuple[Alert, ...] | Unreadable:
    """Returns the alerts of a dump, or why they are not known."""
    if files.problem or files.alerts is None:
        return Unreadable(files.problem or "the dump has no alerts")
    try:
        return read_alerts(codec.encode({"data": {"alerts": alert_conditions.alerts_in_answer(files.alerts)}}))
    except codec.DecodeError as error:
        return Unreadable(str(error))
