"""Reads what the gates of an update are evaluated on from a dump."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from runup.advice.decide import acceptance, alert_conditions
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.cli.errors import CommandError
from runup.dump import clusterversion_files
from runup.preflight.decide import stored_reports
from runup.process.connection import Connection
from runup.rehearse.control import drain_source
from runup.rollout.control.observe import ClusterInputs, forecast_or_reason, missing_kinds
from runup.rollout.decide.assemble import ClusterObjects
from runup.updatestatus.decide.alerts import Alert, Unreadable, read_alerts


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
    unreadable = missing_kinds(source)
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
            forecast=forecast_or_reason(source, now, node_s),
            unreadable=unreadable,
            why_pools_unknown=source.missing.get(drain_source.OPENSHIFT, ""),
        ),
        now=now,
        notes=source.notes,
    )


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
