"""Computes an UpdateStatus object from a snapshot of the cluster; raises oc's error if the snapshot lacks objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import NAME, UpdateStatus, UpdateStatusStatus
from runup.updatestatus.control.status_reading import datetime_of_ns
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.draft import started_at
from runup.updatestatus.decide.memory import insights_of
from runup.updatestatus.decide.snapshot import Snapshot
from runup.updatestatus.decide.unreadable import Unreadable

JSON = dict[str, Any]

NO_OPERATORS = "no cluster operator information available - you must be connected to an OpenShift version 4 server"
NO_PROGRESSING = "no current Progressing info, see `oc describe clusterversion` for more details.\n"


def complete_status(
    snapshot: Snapshot, now_ns: int, *, node_now: datetime | None = None, stored_status: JSON | None = None
) -> JSON:
    """Returns the complete UpdateStatus object for `snapshot`; raises InputError where `oc` ends with an error.

    `stored_status` is an earlier object of the controller. If it is about the same update, the times at which states
    and findings began are taken from it.
    """
    refuse_unreadable(snapshot)
    previous = _of_same_update(snapshot, stored_status) if stored_status else None
    status = assess(snapshot, previous, datetime_of_ns(now_ns), node_now=node_now, max_bytes=None, watched=False)
    resource = resource_of(UpdateStatus)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": NAME},
        "spec": {},
        "status": codec.to_dict(status),
    }


def _of_same_update(snapshot: Snapshot, stored_status: JSON) -> UpdateStatusStatus | None:
    """Returns the controller's entries; None if they are about another update, in which nodes were drained before."""
    # Imported here because it brings dataclasses, which a first look does not need.
    from runup.updatestatus.decide.informers import own_status

    previous, cluster = own_status(stored_status.get("status") or {}), snapshot.cluster_version
    if previous is None or isinstance(cluster, Unreadable):
        return None
    begun = [insight.cluster_version.started_at for insight in insights_of(previous) if insight.cluster_version]
    return previous if begun == [started_at(cluster)] else None


def refuse_unreadable(snapshot: Snapshot) -> None:
    """Raises InputError if the snapshot holds too little for any report."""
    cluster = snapshot.cluster_version
    if isinstance(cluster, Unreadable):
        # Imported here because it brings a client, which reading files does not need.
        from runup.process.clusterversion_client import NO_CLUSTER_VERSION

        raise InputError(NO_CLUSTER_VERSION.format(no="no", server="version 4 "))
    if snapshot.cluster_operators == ():
        raise InputError(NO_OPERATORS)
    _needs_progressing(cluster)


def _needs_progressing(cluster: ClusterVersion) -> None:
    if find(cluster.status.conditions, "Progressing") is None:
        raise InputError(NO_PROGRESSING)
