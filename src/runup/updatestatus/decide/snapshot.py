"""What the insights are computed from: the cluster's objects at one moment, each kind readable or not.

Three answers are told apart: objects (perhaps none), `Unreadable` (they may exist and could not be read, which is said
as an insight), and None (nobody asked for them, so nothing is said: `oc`'s own example files know no pods).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.updatestatus.decide.alerts import Alert as Alert
from runup.updatestatus.decide.node_words import CONTROL_PLANE_POOL, WORKER_POOL
from runup.updatestatus.decide.unreadable import Unreadable as Unreadable

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment. Pools, operators and nodes stand in the order in which they are to be reported.

    machine_configs: names and annotations suffice. machine_config_operator: the Deployment of that name, None where the
    cluster has none. pending_pods: those of phase Pending; draining_pods: those on nodes that are being drained.
    undecoded: single objects that could not be read and are in none of these lists, as `Node worker-1`, and why.
    incomplete: of the fields that may not have everything that there is, by name, and why.
    """

    cluster_version: ClusterVersion | Unreadable
    cluster_operators: tuple[ClusterOperator, ...] | Unreadable
    machine_config_pools: tuple[MachineConfigPool, ...] | Unreadable
    nodes: tuple[Node, ...] | Unreadable
    machine_configs: tuple[MachineConfig, ...] | Unreadable
    machine_config_operator: Deployment | Unreadable | None = None
    alerts: tuple[Alert, ...] | Unreadable | None = None
    pending_pods: tuple[Pod, ...] | Unreadable | None = None
    draining_pods: tuple[Pod, ...] | Unreadable | None = None
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] | Unreadable | None = None
    undecoded: tuple[tuple[str, str], ...] = ()
    incomplete: Mapping[str, str] = msgspec.field(default_factory=dict)


LISTED = {
    "cluster_operators": "ClusterOperator",
    "machine_config_pools": "MachineConfigPool",
    "nodes": "Node",
    "machine_configs": "MachineConfig",
    "pending_pods": "Pod",
    "draining_pods": "Pod",
    "pod_disruption_budgets": "PodDisruptionBudget",
}
"""The fields that are lists, and of which kind."""


def readable(items: tuple[T, ...] | Unreadable | None) -> tuple[T, ...]:
    """The objects, none where they could not be read; for callers to whom `unreadable_inputs` tells the rest."""
    return items if isinstance(items, tuple) else ()


def in_report_order(pools: Iterable[MachineConfigPool]) -> tuple[MachineConfigPool, ...]:
    """Pools of a live cluster as they are reported: master, worker, then custom pools by name."""
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 1}
    return tuple(sorted(pools, key=lambda pool: (rank.get(pool.metadata.name, 2), pool.metadata.name)))


DRAIN_ANNOTATIONS = (
    "machineconfiguration.openshift.io/desiredDrain",
    "machineconfiguration.openshift.io/lastAppliedDrain",
)


def is_drain_wanted(node: Node) -> bool:
    """Whether a drain of `node` was asked for and is not finished: only then are its pods worth reading."""
    desired, applied = (node.metadata.annotations.get(name, "") for name in DRAIN_ANNOTATIONS)
    return desired.startswith("drain-") and desired != applied
