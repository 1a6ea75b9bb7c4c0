"""The input of the insights: the cluster's objects and alerts at one moment, each kind readable or not.

Three cases are distinguished: objects (perhaps none), `Unreadable` (they may exist but could not be read, which is
reported as an insight), and None (they were not queried, so nothing is reported: the example files of `oc` have no
pods)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kubekit.api.conditions import status_of
from kubekit.api.core_v1 import Event, Node, Pod
from kubekit.api.workloads_v1 import Deployment, Lease, PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigNode, MachineConfigPool
from runup.rules.machine_config import CONTROL_PLANE_POOL, WORKER_POOL, machines_behind
from runup.updatestatus.decide.alerts import Alert, Unreadable
from runup.updatestatus.decide.control_plane import is_progressing

if TYPE_CHECKING:
    # Not needed at run time: importing these types takes as long as all others.
    from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment. Pools, operators and nodes are in the order in which they are reported.

    machine_configs: names and annotations suffice. machine_config_operator: the Deployment of that name, None if the
    cluster has none. pending_pods: pods of phase Pending; draining_pods: pods on nodes that are being updated.
    undecoded: objects that could not be decoded and are in none of these lists, as `Node worker-1`, with the reason.
    incomplete: fields that may not hold every object of the cluster, by name, with the reason. drains_read: the nodes
    whose pods are in draining_pods, None if all are that are updated: pods are listed node by node, and not at once.
    component_pods, component_deployments, leases: those of the components that carry out an update
    (`runup.rules.update_components`). Deployments, leases, volume_attachments, machine_config_nodes and events
    that could not be read are only missing. MachineConfigNodes are known about nodes that are being updated, and events
    about pods that were not created.
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
    component_pods: tuple[Pod, ...] | Unreadable | None = None
    component_deployments: tuple[Deployment, ...] = ()
    leases: tuple[Lease, ...] = ()
    certificate_requests: tuple[CertificateSigningRequest, ...] | Unreadable | None = None
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    machine_config_nodes: tuple[MachineConfigNode, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def as_oc(self) -> bool:
        """True for the example files of oc, which have no pods: they are assessed by oc's rules alone."""
        return self.pending_pods is None


LISTED = {
    "cluster_operators": "ClusterOperator",
    "machine_config_pools": "MachineConfigPool",
    "nodes": "Node",
    "machine_configs": "MachineConfig",
    "pending_pods": "Pod",
    "draining_pods": "Pod",
    "pod_disruption_budgets": "PodDisruptionBudget",
    "certificate_requests": "CertificateSigningRequest",
}
"""The fields that are lists, with the kind of each."""


def readable(items: tuple[T, ...] | Unreadable | None) -> tuple[T, ...]:
    """Returns the objects, none if they could not be read; for callers that need not report the difference."""
    return items if isinstance(items, tuple) else ()


def is_under_way(snapshot: Snapshot) -> bool:
    """Returns whether an update may be under way: ClusterVersion is progressing, or machines of a pool are behind.

    An update whose release is being fetched counts, too.
    """
    cluster = snapshot.cluster_version
    begun = not isinstance(cluster, Unreadable) and (
        is_progressing(cluster) or status_of(cluster.status.conditions, "ReleaseAccepted") not in ("True", None)
    )
    return begun or any(machines_behind(pool) > 0 for pool in readable(snapshot.machine_config_pools))


def sort_pools(pools: Iterable[MachineConfigPool]) -> tuple[MachineConfigPool, ...]:
    """Returns the pools of a live cluster in report order: master, worker, then custom pools by name."""
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 1}
    return tuple(sorted(pools, key=lambda pool: (rank.get(pool.metadata.name, 2), pool.metadata.name)))
