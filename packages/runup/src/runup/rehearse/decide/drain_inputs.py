"""The kinds that a simulated drain reads, and the cluster made of them: its pools, in the order of an update.

On OpenShift, machine config pools are updated side by side by the machine-config operator; elsewhere groups of nodes
one after another, the control plane first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.meta_v1 import Object
from kubekit.api.scheduling import (
    CsiNode,
    PersistentVolumeClaim,
    PodsOwner,
    ResourceQuota,
    SchedulingPod,
    SchedulingVolumeObject,
    StorageClass,
)
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, Pool
from runup.rules.machine_config import allowed_unavailable, nodes_by_pool, pools_of_node
from runup.rules.node_groups import CONTROL_PLANE, nodes_by_group

ZONE = "topology.kubernetes.io/zone"
_POOLS = Resource(
    group="machineconfiguration.openshift.io",
    version="v1",
    kind="MachineConfigPool",
    plural="machineconfigpools",
    namespaced=False,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is read, the type of its objects, and the field of `DrainedCluster` that they go to."""

    resource: Resource
    type: type[Object]
    field: str


def _core_resource(kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group="", version="v1", kind=kind, plural=plural, namespaced=namespaced)


KINDS = (
    Kind(_core_resource("Node", "nodes", namespaced=False), Node, "nodes"),
    Kind(_core_resource("Pod", "pods"), SchedulingPod, "pods"),
    Kind(_core_resource("Namespace", "namespaces", namespaced=False), Namespace, "namespaces"),
    Kind(
        Resource(
            group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
        ),
        PodDisruptionBudget,
        "budgets",
    ),
    Kind(
        Resource(group="apps", version="v1", kind="ReplicaSet", plural="replicasets", namespaced=True),
        PodsOwner,
        "owners",
    ),
    Kind(
        Resource(group="apps", version="v1", kind="StatefulSet", plural="statefulsets", namespaced=True),
        PodsOwner,
        "owners",
    ),
    Kind(_core_resource("ReplicationController", "replicationcontrollers"), PodsOwner, "owners"),
    Kind(_core_resource("PersistentVolumeClaim", "persistentvolumeclaims"), PersistentVolumeClaim, "claims"),
    Kind(_core_resource("PersistentVolume", "persistentvolumes", namespaced=False), SchedulingVolumeObject, "volumes"),
    Kind(
        Resource(group="storage.k8s.io", version="v1", kind="StorageClass", plural="storageclasses", namespaced=False),
        StorageClass,
        "classes",
    ),
    Kind(
        Resource(group="storage.k8s.io", version="v1", kind="CSINode", plural="csinodes", namespaced=False),
        CsiNode,
        "csi_nodes",
    ),
    Kind(_core_resource("ResourceQuota", "resourcequotas"), ResourceQuota, "quotas"),
    Kind(_POOLS, MachineConfigPool, "pools"),
)


def drained_cluster(
    objects: Mapping[str, Sequence[Any]], missing: Mapping[str, str], *, openshift: bool, surge: int = 0
) -> DrainedCluster:
    """Returns the cluster with these objects, by kind; `missing` says which kinds are incomplete."""
    fields: dict[str, tuple[Any, ...]] = {}
    for kind in KINDS:
        if kind.field not in ("pools", "namespaces"):
            of_kind = objects.get(kind.resource.kind, ())
            if kind.field == "owners":
                of_kind = [_with_kind(obj, kind.resource.kind) for obj in of_kind]
            fields[kind.field] = (*fields.get(kind.field, ()), *of_kind)
    namespaces = {each.metadata.name: each.metadata.labels for each in objects.get("Namespace", ())}
    cluster = DrainedCluster(**fields, namespaces=namespaces, missing=missing)
    pools = objects.get("MachineConfigPool", ())
    return replace(
        cluster, pools=_config_pools(cluster.nodes, pools) if openshift else _pools_of_groups(cluster.nodes, surge)
    )


def _with_kind(owner: PodsOwner, kind: str) -> PodsOwner:
    from msgspec.structs import replace as changed

    # Items of a list do not say their kind.
    return changed(owner, kind=kind)


def _config_pools(nodes: tuple[Node, ...], pools: Sequence[MachineConfigPool]) -> tuple[Pool, ...]:
    """Returns the machine config pools that have nodes, the control plane's first."""
    members = nodes_by_pool(nodes, [pools_of_node(node.metadata.labels, pools) for node in nodes])
    listed = sorted(pools, key=lambda pool: (pool.metadata.name != "master", pool.metadata.name))
    return tuple(
        Pool(
            name=pool.metadata.name,
            nodes=_in_drain_order(members.get(pool.metadata.name, ())),
            at_once=allowed_unavailable(pool),
            paused=pool.spec.paused,
        )
        for pool in listed
        if members.get(pool.metadata.name)
    )


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
