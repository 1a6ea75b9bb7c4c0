"""The kinds that a simulated drain reads, and the cluster made of them: its pools, in the order of an update.

On OpenShift, machine config pools are updated side by side by the machine-config operator; elsewhere groups of nodes
one after another, the control plane first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as with_fields

from kubekit.api import scheduling
from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, Pool
from runup.rules.machine_config import allowed_unavailable, nodes_by_pool, pools_of_node, why_not_begun
from runup.rules.node_groups import CONTROL_PLANE, nodes_by_group

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is read, the type of its objects, and the field of `DrainedCluster` that they go to."""

    resource: Resource
    type: type[Object]
    field: str


def _v1(group: str, kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group=group, version="v1", kind=kind, plural=plural, namespaced=namespaced)


KINDS = (
    Kind(_v1("", "Node", "nodes", namespaced=False), Node, "nodes"),
    Kind(_v1("", "Pod", "pods"), scheduling.SchedulingPod, "pods"),
    Kind(_v1("", "Namespace", "namespaces", namespaced=False), Namespace, "namespaces"),
    Kind(_v1("policy", "PodDisruptionBudget", "poddisruptionbudgets"), PodDisruptionBudget, "budgets"),
    Kind(_v1("apps", "ReplicaSet", "replicasets"), scheduling.PodsOwner, "owners"),
    Kind(_v1("apps", "StatefulSet", "statefulsets"), scheduling.PodsOwner, "owners"),
    Kind(_v1("", "ReplicationController", "replicationcontrollers"), scheduling.PodsOwner, "owners"),
    Kind(_v1("", "PersistentVolumeClaim", "persistentvolumeclaims"), scheduling.PersistentVolumeClaim, "claims"),
    Kind(
        _v1("", "PersistentVolume", "persistentvolumes", namespaced=False), scheduling.SchedulingVolumeObject, "volumes"
    ),
    Kind(_v1("storage.k8s.io", "StorageClass", "storageclasses", namespaced=False), scheduling.StorageClass, "classes"),
    Kind(_v1("storage.k8s.io", "CSINode", "csinodes", namespaced=False), scheduling.CsiNode, "csi_nodes"),
    Kind(_v1("", "ResourceQuota", "resourcequotas"), scheduling.ResourceQuota, "quotas"),
    Kind(
        _v1("machineconfiguration.openshift.io", "MachineConfigPool", "machineconfigpools", namespaced=False),
        MachineConfigPool,
        "pools",
    ),
)


def drained_cluster(
    objects: Mapping[str, Sequence[Any]], missing: Mapping[str, str], *, openshift: bool, surge: int = 0
) -> DrainedCluster:
    """Returns the cluster with these objects, by kind; `missing` says which kinds are incomplete.

    Its pools are in the order of an update: the machine config pools that have nodes, or groups of nodes.
    """
    fields: dict[str, tuple[Any, ...]] = {}
    for kind in KINDS:
        if kind.field not in ("pools", "namespaces"):
            of_kind = objects.get(kind.resource.kind, ())
            if kind.field == "owners":
                # Items of a list do not say their kind.
                of_kind = [with_fields(obj, kind=kind.resource.kind) for obj in of_kind]
            fields[kind.field] = (*fields.get(kind.field, ()), *of_kind)
    namespaces = {each.metadata.name: each.metadata.labels for each in objects.get("Namespace", ())}
    cluster = DrainedCluster(**fields, namespaces=namespaces, missing=missing)
    if not openshift:
        return replace(cluster, pools=_pools_of_groups(cluster.nodes, surge))
    listed: Sequence[MachineConfigPool] = objects.get("MachineConfigPool", ())
    members = nodes_by_pool(cluster.nodes, [pools_of_node(node.metadata.labels, listed) for node in cluster.nodes])
    pools = [
        Pool(
            name=pool.metadata.name,
            nodes=_in_drain_order(members[pool.metadata.name]),
            at_once=allowed_unavailable(pool),
            paused=pool.spec.paused,
            held=why_not_begun(pool, members[pool.metadata.name]),
        )
        for pool in sorted(listed, key=lambda pool: (pool.metadata.name != "master", pool.metadata.name))
        if members.get(pool.metadata.name)
    ]
    return replace(cluster, pools=tuple(pools))


def _pools_of_groups(nodes: tuple[Node, ...], surge: int) -> tuple[Pool, ...]:
    """Returns the groups of nodes as pools, the control plane first, each after the one before it."""
    members = nodes_by_group(nodes)
    pools: list[Pool] = []
    for name in sorted(members, key=lambda each: (each != CONTROL_PLANE, each)):
        previous_pool = (pools[-1].name,) if pools else ()
        # A service's surge is for its groups of workers.
        extra = 0 if name == CONTROL_PLANE else surge
        pools.append(Pool(name=name, nodes=_in_drain_order(members[name]), surge=extra, after=previous_pool))
    return tuple(pools)


def _in_drain_order(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Returns the nodes by zone and age (machine-config-operator, `pkg/controller/node`)."""

    def drain_key(node: Node) -> tuple[str, str, str]:
        return node.metadata.labels.get(ZONE, ""), str(node.metadata.creation_timestamp or ""), node.metadata.name

    return tuple(node.metadata.name for node in sorted(nodes, key=drain_key))
