"""Determines the topology of the cluster for checks; a cluster without an Infrastructure counts as an ordinary one."""

from __future__ import annotations

from operator import attrgetter

from kubekit.api.core_v1 import Node
from kubekit.rules.node_rules import REPELLING
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.result_cache import cache_last
from runup.checks.writing import Snapshot, Unreadable
from runup.rules.node_groups import is_control_plane

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


def control_plane(snapshot: Snapshot) -> str:
    """Returns `HighlyAvailable`, `SingleReplica`, `External` (hosted), ..., or an empty string if it is not known."""
    try:
        infrastructure = snapshot.get(Infrastructure, "cluster")
    # Not an error here: a check then evaluates as for an ordinary cluster.
    except Unreadable:
        return ""
    return infrastructure.status.control_plane_topology if infrastructure else ""


# Key, value and effect of a taint that keeps new pods away unless they tolerate it.
Repelling = frozenset[tuple[str, str, str]]
_NO_TAINTS: Repelling = frozenset()


def repelling_taints(node: Node) -> Repelling:
    """Returns the taints that keep new pods away.

    Pods that run on a node are assumed to tolerate its taints, and so to fit on any node without further taints.
    """
    if not node.spec.taints:
        return _NO_TAINTS
    return frozenset((taint.key, taint.value, taint.effect) for taint in node.spec.taints if taint.effect in REPELLING)
