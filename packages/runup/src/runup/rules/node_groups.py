"""Reports the nodes of the control plane from workers, and the groups of nodes that a service updates together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kubekit.api.core_v1 import Node

# In which a service names the group of a node that it updates together with others. Sources:
# https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html,
# https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools,
# https://learn.microsoft.com/azure/aks/use-labels, https://karpenter.sh/docs/concepts/nodepools/.
GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
# Cluster API notes on a Node who owns its Machine (`api/core/v1beta2/common_types.go`).
MACHINE, OWNER_KIND, OWNER_NAME = (
    "cluster.x-k8s.io/machine", "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name",
)  # fmt: skip
# Today's label of the control plane's nodes, and the older one.
_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
CONTROL_PLANE, WORKERS = "control-plane", "workers"
DISRUPTED = frozenset({"karpenter.sh/disrupted", "karpenter.sh/disruption"})
"""The keys of Karpenter's taints of a node that it is going to replace (karpenter, `pkg/apis/v1/taints.go`)."""


def is_control_plane(node: Node) -> bool:
    """Returns whether the node runs the control plane, by today's role label or the older one."""
    labels = node.metadata.labels
    return _ROLES[0] in labels or _ROLES[1] in labels


def is_leaving(node: Node) -> bool:
    """Returns whether the node is cordoned, or being deleted or replaced: its pods are moved elsewhere."""
    return (
        node.spec.unschedulable
        or node.metadata.deletion_timestamp is not None
        or any(taint.key in DISRUPTED for taint in node.spec.taints)
    )


def service_group(node: Node) -> str:
    """Returns the name of the node's group, as its service has it in a label, or an empty string."""
    return next((node.metadata.labels[label] for label in GROUP_LABELS if node.metadata.labels.get(label)), "")


def machine_deployment(node: Node) -> str:
    """Returns the MachineDeployment that the node's Machine belongs to, or an empty string.

    A MachineSet is named after its MachineDeployment, with a hash behind.
    """
    annotations = node.metadata.annotations
    return annotations.get(OWNER_NAME, "").rpartition("-")[0] if annotations.get(OWNER_KIND) == "MachineSet" else ""


def nodes_by_group(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Returns the nodes of each group, in their order.

    Groups are those of a service or of MachineDeployments, else the control plane and the workers.
    """
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        worker = machine_deployment(node) or WORKERS
        groups[service_group(node) or (CONTROL_PLANE if is_control_plane(node) else worker)].append(node)
    return groups
