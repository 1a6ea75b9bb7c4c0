"""The live cluster for `recommend`: ClusterVersion, the alerts of its Thanos, and the operator's records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from runup.advice.cli.recommend import alerts, extras
from runup.advice.cli.thanos import alerts as ask_alerts
from runup.cli import cluster as clusters
from runup.cli.connection import Connection
from runup.updatestatus.decide.unreadable import Unreadable

JSON = dict[str, Any]
Read = tuple[JSON, tuple[alerts.Check, ...], str, tuple[JSON, ...], datetime]


def read(connection: Connection, check: Callable[[], None]) -> Read:
    """ClusterVersion, prechecks, why there are none, ConfigMaps, and the cluster's time. `check` refuses flags."""
    with connection.client("upgrade-recommend") as client:
        check()
        cluster = clusters.read_raw(client)
        found = ask_alerts(client, client.now())
        maps = tuple(each for name in (extras.HISTORY, extras.ACCEPTED) if (each := clusters.read_record(client, name)))
        if isinstance(found, Unreadable):
            return cluster, (), found.why, maps, client.now()
        told = [{"labels": each.labels, "annotations": each.annotations, "state": each.state} for each in found]
        return cluster, alerts.checks(told), "", maps, client.now()
