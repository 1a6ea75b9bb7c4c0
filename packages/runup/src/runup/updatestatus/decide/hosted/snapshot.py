"""The input of the status of a hosted cluster: objects of the management cluster, and of the hosted one if it answers.

As in `runup.updatestatus.decide.snapshot`, None means that a kind was not asked for, `Unreadable` that it may exist.
"""

from __future__ import annotations

import msgspec

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion, ClusterVersionStatus
from runup.api.hypershift_v1beta1 import ControlPlaneComponent, HostedCluster, HostedNodePool
from runup.api.rollouts_v1 import ClusterMachine
from runup.updatestatus.decide.alerts import Unreadable

MANAGEMENT, HOSTED = "Management", "Hosted"
# The NodePool of a Machine (openshift/hypershift, `hypershift-operator/controllers/nodepool`: nodePoolAnnotation).
POOL_OF_MACHINE = "hypershift.openshift.io/nodePool"
# The release of a Machine; of a pool that is updated in place, its `spec.version` stays as it was made.
RELEASE_OF_MACHINE = "hypershift.openshift.io/release-version"

INPUTS = {
    "pools": "NodePools",
    "machines": "Machines of the node pools",
    "components": "ControlPlaneComponents",
    "pods": "Pods of the control plane",
    "operators": "ClusterOperators of the hosted cluster",
    "nodes": "Nodes of the hosted cluster",
    "draining_pods": "Pods on nodes of the hosted cluster that are drained",
    "budgets": "PodDisruptionBudgets of the hosted cluster",
}
"""Snapshot fields that are reported if they cannot be read, each with its name in messages."""


class HostedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A hosted cluster at one moment: its pools, and what is in the namespace of its control plane.

    `components` is empty where the release of HyperShift has no such kind. `operators`, `nodes`, `draining_pods` of
    the nodes in `drains_read`, and `budgets` are read on the hosted side; `why_not_read` is set if it was not asked.
    """

    cluster: HostedCluster
    pools: tuple[HostedNodePool, ...] | Unreadable = ()
    machines: tuple[ClusterMachine, ...] | Unreadable = ()
    components: tuple[ControlPlaneComponent, ...] | Unreadable | None = None
    pods: tuple[Pod, ...] | Unreadable | None = None
    operators: tuple[ClusterOperator, ...] | Unreadable | None = None
    nodes: tuple[Node, ...] | Unreadable | None = None
    draining_pods: tuple[Pod, ...] | Unreadable | None = None
    drains_read: frozenset[str] = frozenset()
    budgets: tuple[PodDisruptionBudget, ...] | Unreadable | None = None
    why_not_read: str = ""

    def as_cluster_version(self) -> ClusterVersion:
        """Returns what HyperShift copies from the ClusterVersion of the hosted side, with its own conditions."""
        status = self.cluster.status
        prefix = "ClusterVersion"
        conditions = tuple(
            msgspec.structs.replace(each, type=each.type.removeprefix(prefix))
            for each in status.conditions
            if each.type.startswith(prefix) and each.type != "ClusterVersionSucceeding"
        )
        version = status.version
        return ClusterVersion(
            metadata=self.cluster.metadata,
            status=ClusterVersionStatus(desired=version.desired, history=version.history, conditions=conditions),
        )
