"""Determines the topology of the cluster for checks; a cluster without an Infrastructure counts as an ordinary one."""

from __future__ import annotations

from operator import attrgetter

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.result_cache import cache_last
from runup.checks.decide.model import Snapshot, Unreadable

TODAYS_ROLE, OLDER_ROLE = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"
_NAME = attrgetter("metadata.name")


@cache_last
def control_plane_first(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Returns the nodes of the control plane, then the others, each by name.

    Lists of nodes are cut in messages, and a control plane node must not be cut off.
    """
    other_nodes = [node for node in nodes if not is_control_plane(node)]
    # With a hosted control plane none of thousands is: the second pass is spared.
    control_plane_nodes = [node for node in nodes if is_control_plane(node)] if len(other_nodes) < len(nodes) else []
    return (*sorted(control_plane_nodes, key=_NAME), *sorted(other_nodes, key=_NAME))


def is_control_plane(node: Node) -> bool:
    """Returns whether the node runs the control plane, by today's role label or the older one."""
    labels = node.metadata.labels
    return TODAYS_ROLE in labels or OLDER_ROLE in labels


def control_plane(snapshot: Snapshot) -> str:
    """Returns `HighlyAvailable`, `SingleReplica`, `External` (hosted), ..., or an empty string if it is not known."""
    try:
        infrastructure = snapshot.get(Infrastructure, "cluster")
    # Not an error here: a check then judges as for an ordinary cluster.
    except Unreadable:
        return ""
    return infrastructure.status.control_plane_topology if infrastructure else ""
