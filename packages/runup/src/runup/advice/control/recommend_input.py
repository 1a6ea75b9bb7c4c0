"""Reads the input of `recommend`: ClusterVersion, alerts and the operator's records, of a cluster or of files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from runup.advice.decide import alert_conditions
from runup.dump import clusterversion_files
from runup.process.connection import Connection
from runup.process.names import ACCEPTED, HISTORY

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient


class RecommendInput(msgspec.Struct, frozen=True, kw_only=True):
    """The values read: ClusterVersion as JSON, the prechecks of alerts, and the operator's ConfigMaps as JSON.

    `problem` says why the alerts could not be read; it is empty if they could. `now` is the cluster's time, None for
    files. `lapse` says since when no operator keeps the state of preflights up to date.
    """

    cluster: dict[str, Any]
    checks: tuple[alert_conditions.Check, ...] = ()
    problem: str = ""
    config_maps: tuple[dict[str, Any], ...] = ()
    now: datetime | None = None
    lapse: str = ""


def read(
    connection: Connection, *, dump: str | None, mock: str | None, reject_bad_flags: Callable[[], None]
) -> RecommendInput:
    """Reads the input from the cluster, or from a dump or a mock file in its place. Raises what reading raises.

    `reject_bad_flags` is called once it is clear where to read, before anything is read, as oc does it; it raises
    InputError for flags that contradict each other.
    """
    if not dump and not mock:
        with connection.client("upgrade-recommend") as client:
            reject_bad_flags()
            return read_cluster(client)
    collected = (
        clusterversion_files.mock(mock) if mock else clusterversion_files.dump(str(dump), alerts=True, config_maps=True)
    )
    reject_bad_flags()
    checks: tuple[alert_conditions.Check, ...] = ()
    if not collected.problem:
        if collected.alerts is not None:
            checks = alert_conditions.checks(alert_conditions.alerts_in_answer(collected.alerts))
        elif mock:
            checks = alert_conditions.no_data(collected.alerts_path)
        else:
            checks = alert_conditions.not_collected(str(dump))
    return RecommendInput(
        cluster=collected.cluster, checks=checks, problem=collected.problem, config_maps=collected.config_maps
    )


def read_cluster(client: SyncClient, *, with_records: bool = True) -> RecommendInput:
    """Reads the input of `recommend` by a client; `with_records` also the operator's ConfigMaps."""
    # Reading files needs neither TLS nor the client, whose import takes an eighth of the whole command.
    # With the client, of which reading files needs nothing.
    from runup.process import clusterversion_client as clusters
    from runup.updatestatus.control.thanos import alerts as ask_alerts
    from runup.updatestatus.decide.alerts import Unreadable

    cluster = clusters.read_raw(client)
    alerts_or_error = ask_alerts(client, client.now())
    checks: tuple[alert_conditions.Check, ...] = ()
    problem = ""
    if isinstance(alerts_or_error, Unreadable):
        problem = alerts_or_error.why
    else:
        checks = alert_conditions.checks(
            [
                {"labels": alert.labels, "annotations": alert.annotations, "state": alert.state}
                for alert in alerts_or_error
            ]
        )
    names = (HISTORY, ACCEPTED) if with_records else ()
    maps = tuple(record for name in names if (record := clusters.read_record(client, name)))
    # Without a report there is no result whose age could matter.
    lapse = clusters.read_lapse(client) if maps else ""
    return RecommendInput(
        cluster=cluster, checks=checks, problem=problem, config_maps=maps, now=client.now(), lapse=lapse
    )
