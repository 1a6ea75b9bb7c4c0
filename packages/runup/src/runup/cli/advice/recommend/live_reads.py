"""Reads the input of `recommend` from a live cluster: ClusterVersion, the alerts of its Thanos, the operator's records.

In: a connection. Out: a `RecommendInput`. The cluster is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from runup.advice.decide import alert_conditions
from runup.cli.advice.recommend import additions_to_oc
from runup.cli.advice.recommend.recommend_input import RecommendInput
from runup.process import clusterversion_client as clusters
from runup.process.connection import Connection
from runup.updatestatus.control.thanos import alerts as ask_alerts
from runup.updatestatus.decide.unreadable import Unreadable

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient


def read(connection: Connection, reject_bad_flags: Callable[[], None]) -> RecommendInput:
    """Reads the input of `recommend` from the cluster. Raises what the client raises.

    `reject_bad_flags` is called once a client could be made, before anything is read, as oc does it; it raises
    InputError for flags that contradict each other.
    """
    with connection.client("upgrade-recommend") as client:
        reject_bad_flags()
        return read_cluster(client)


def read_cluster(client: SyncClient, *, with_records: bool = True) -> RecommendInput:
    """Reads the input of `recommend` by a client; `with_records` also the operator's ConfigMaps."""
    cluster = clusters.read_raw(client)
    alerts_or_error = ask_alerts(client, client.now())
    maps = tuple(
        record
        for name in ((additions_to_oc.HISTORY_MAP, additions_to_oc.ACCEPTED_MAP) if with_records else ())
        if (record := clusters.read_record(client, name))
    )
    if isinstance(alerts_or_error, Unreadable):
        return RecommendInput(cluster, (), alerts_or_error.why, maps, client.now())
    alert_documents = [
        {"labels": alert.labels, "annotations": alert.annotations, "state": alert.state} for alert in alerts_or_error
    ]
    return RecommendInput(cluster, alert_conditions.checks(alert_documents), "", maps, client.now())
