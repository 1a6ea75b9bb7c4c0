"""What the cluster's topology means for a check. A cluster without an Infrastructure counts as a usual one."""

from __future__ import annotations

from operator import attrgetter

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.of_last import of_last
from runup.checks.decide.model import Snapshot, Unreadable

TODAYS_ROLE, OLDER_ROLE = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"
_NAME = attrgetter("metadata.name")


@of_last
def control_plane_first(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes that matter most first, then by name: lists are cut, and a control plane node must not be cut off."""
    others = [node for node in nodes if not is_control_plane(node)]
    first = [node for node in nodes if is_control_plane(node)] if len(others) < len(nodes) else []
    return (*sorted(first, key=_NAME), *sorted(others, key=_NAME))


def is_control_plane(node: Node) -> bool:
    """Whether the node runs the control plane, by today's label or the older one."""
    labels = node.metadata.labels
    return TODAYS_ROLE in labels or OLDER_ROLE in labels


def control_plane(snapshot: Snapshot) -> str:
    """`HighlyAvailable`, `SingleReplica`, `External` (hosted), ..., or nothing where it is not known."""
    try:
        infrastructure = snapshot.get(Infrastructure, "cluster")
    except Unreadable:
        return ""
    return infrastructure.status.control_plane_topology if infrastructure else ""
