"""Determines the groups in which nodes of a cluster without machine config pools are updated.

Services name a node's group in a label, and update a group at a time; elsewhere the nodes of the control plane are one
group and the others are another. Sources of the labels:
https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html,
https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools,
https://learn.microsoft.com/azure/aks/use-labels, https://karpenter.sh/docs/concepts/nodepools/.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.topology import is_control_plane
from runup.checks.decide.distributions import service_group

CONTROL_PLANE, WORKERS = "control-plane", "workers"


def nodes_by_group(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Returns the nodes of each group, in their order."""
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        groups[group_of(node)].append(node)
    return groups


def group_of(node: Node) -> str:
    """Returns the name of the node's group."""
    return service_group(node) or (CONTROL_PLANE if is_control_plane(node) else WORKERS)
