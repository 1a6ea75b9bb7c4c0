"""Reads MachineConfigPools for all checks of them: whether a pool is degraded, and which machines are behind."""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import Infrastructure
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.shared.result_cache import cache_each
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import Resource, Snapshot, Unreadable, count, resource_of
from runup.rules.machine_config import PoolsOfNode, degradations, machines_behind, pools_of_node

READS: tuple[Resource, ...] = (resource_of(MachineConfigPool), resource_of(Infrastructure))


def all_pools(snapshot: Snapshot) -> tuple[MachineConfigPool, ...]:
    """Returns every pool; none if the control plane is hosted and the API rightly absent. Raises Unreadable."""
    try:
        return snapshot.all(MachineConfigPool)
    except Unreadable:
        # Nodes of a hosted control plane belong to NodePools; the cluster has no MachineConfigPool.
        if control_plane(snapshot) == "External":
            return ()
        raise


@cache_each
def pools_of_nodes(node: Node, pools: tuple[MachineConfigPool, ...]) -> PoolsOfNode:
    """Returns the pools of each of the nodes, cached."""
    return pools_of_node(node.metadata.labels, pools)


def is_degraded(pool: MachineConfigPool) -> bool:
    """Returns whether the machine-config operator has given up on a machine of the pool, or on its configuration."""
    return pool.status.degraded_machine_count > 0 or bool(degradations(pool))


def machines_behind_text(pool: MachineConfigPool) -> str:
    """Returns in words how many machines lack the configuration that the pool should have; empty if all have it.

    The pool's status takes over the name of its configuration when the last machine has it. While the names differ some
    machine is behind, even if the counts are still those of the configuration before.
    """
    status = pool.status
    late = machines_behind(pool)
    if not status.machine_count:
        return ""
    if late > 0:
        return f"{late} of {count(status.machine_count, 'machine')}"
    renamed = pool.spec.configuration.name and pool.spec.configuration.name != status.configuration.name
    return f"some of {count(status.machine_count, 'machine')}" if renamed else ""
