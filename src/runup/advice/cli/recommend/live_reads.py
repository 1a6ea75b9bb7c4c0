"""Reads a live cluster for `recommend`: ClusterVersion, the alerts of its Thanos, and the operator's records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from runup.advice.cli.recommend import additions_to_oc, alert_conditions
from runup.advice.cli.thanos import alerts as ask_alerts
from runup.cli import clusterversion_client as clusters
from runup.cli.connection import Connection
from runup.updatestatus.decide.unreadable import Unreadable

JSON = dict[str, Any]
Read = tuple[JSON, tuple[alert_conditions.Check, ...], str, tuple[JSON, ...], datetime]


def read(connection: Connection, check: Callable[[], None]) -> Read:
    """Returns ClusterVersion, prechecks, why there are none, ConfigMaps, and the cluster's time.

    `check` is called once the cluster can be reached, and rejects contradictory flags.
    """
    with connection.client("upgrade-recommend") as client:
        check()
        cluster = clusters.read_raw(client)
        alerts_or_error = ask_alerts(client, client.now())
        maps = tuple(
            each
            for name in (additions_to_oc.HISTORY, additions_to_oc.ACCEPTED)
            if (each := clusters.read_record(client, name))
        )
        if isinstance(alerts_or_error, Unreadable):
            return cluster, (), alerts_or_error.why, maps, client.now()
        alert_documents = [
            {"labels": each.labels, "annotations": each.annotations, "state": each.state} for each in alerts_or_error
        ]
        return cluster, alert_conditions.checks(alert_documents), "", maps, client.now()
