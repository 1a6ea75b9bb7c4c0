"""What the cluster's topology means for a check. A cluster without an Infrastructure counts as a usual one."""

from __future__ import annotations

from runup.api.config_v1 import Infrastructure
from runup.domain.checks.model import Snapshot, Unreadable


def control_plane(snapshot: Snapshot) -> str:
    """`HighlyAvailable`, `SingleReplica`, `External` (hosted), ..., or nothing where it is not known."""
    try:
        infrastructure = snapshot.get(Infrastructure, "cluster")
    except Unreadable:
        return ""
    return infrastructure.status.control_plane_topology if infrastructure else ""
