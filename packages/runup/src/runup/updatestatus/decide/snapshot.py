"""The input of the insights: the cluster's objects and alerts at one moment, each kind readable or not.

Three cases are distinguished: objects (perhaps none), `Unreadable` (they may exist but could not be read, which is
reported as an insight), and None (they were not queried, so nothing is reported: the example files of `oc` have no
pods)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.rules.machine_config import CONTROL_PLANE_POOL, WORKER_POOL
from runup.updatestatus.decide.alerts import Alert, Unreadable

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment. Pools, operators and nodes are in the order in which they are reported.

    machine_configs: names and annotations suffice. machine_config_operator: the Deployment of that name, None if the
    cluster has none. pending_pods: pods of phase Pending; draining_pods: pods on nodes that are being drained.
    undecoded: objects that could not be decoded and are in none of these lists, as `Node worker-1`, with the reason.
    incomplete: fields that may not hold every object of the cluster, by name, with the reason. drains_read: the nodes
    whose pods are in draining_pods, None if all are that are drained: pods are listed node by node, and not at once.
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
    drains_read: frozenset[str] | None = None


LISTED = {
    "cluster_operators": "ClusterOperator",
    "machine_config_pools": "MachineConfigPool",
    "nodes": "Node",
    "machine_configs": "MachineConfig",
    "pending_pods": "Pod",
    "draining_pods": "Pod",
    "pod_disruption_budgets": "PodDisruptionBudget",
}
"""The fields that are lists, with the kind of each."""


def readable(items: tuple[T, ...] | Unreadable | None) -> tuple[T, ...]:
    """Returns the objects, none if they could not be read; for callers that need not report the difference."""
    return items if isinstance(items, tuple) else ()


def sort_pools(pools: Iterable[MachineConfigPool]) -> tuple[MachineConfigPool, ...]:
    """Returns the pools of a live cluster in report order: master, worker, then custom pools by name."""
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 1}
    return tuple(sorted(pools, key=lambda pool: (rank.get(pool.metadata.name, 2), pool.metadata.name)))
