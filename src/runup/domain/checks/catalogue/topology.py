"""What the cluster's topology means for a check. A cluster without an Infrastructure counts as a usual one."""

from __future__ import annotations

from collections.abc import Iterable

from runup.api.config_v1 import Infrastructure
from runup.api.core_v1 import Node
from runup.domain.checks.model import Snapshot, Unreadable

CONTROL_PLANE_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def control_plane_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that matter most first, then by name: lists are cut, and a control plane node must not be cut off."""
    return sorted(nodes, key=lambda node: (not is_control_plane(node), node.metadata.name))


def is_control_plane(node: Node) -> bool:
    """Whether the node runs the control plane, by today's label or the older one."""
    return any(role in node.metadata.labels for role in CONTROL_PLANE_ROLES)


def control_plane(snapshot: Snapshot) -> str:
    """`HighlyAvailable`, `SingleReplica`, `External` (hosted), ..., or nothing where it is not known."""
    try:
        infrastructure = snapshot.get(Infrastructure, "cluster")
    except Unreadable:
        return ""
    return infrastructure.status.control_plane_topology if infrastructure else ""
