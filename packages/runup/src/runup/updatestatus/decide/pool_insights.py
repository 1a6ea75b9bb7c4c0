"""Converts the states of a pool and its nodes into insights: summaries and conditions."""

from __future__ import annotations

from kubekit.lang.gotext import SECOND, go_duration
from runup.api.update_v1alpha1 import Insight, MachineConfigPoolInsight, NodeInsight, PoolSummary
from runup.rules import machine_config
from runup.updatestatus.decide import nodes as node_phases
from runup.updatestatus.decide import uids
from runup.updatestatus.decide.finding import SCOPE_CONTROL_PLANE, SCOPE_WORKER_POOL, node_ref, pool_ref
from runup.updatestatus.decide.insight_names import (
    AVAILABLE,
    DEGRADED,
    HEALTHY,
    UPDATING,
    VERSION_LIMIT,
    cut,
    limit_or_unbounded,
)
from runup.updatestatus.decide.memory import CONTROL_PLANE, ConditionValues, PreviousStatus
from runup.updatestatus.decide.nodes import NodeState, PoolState


def _scope(pool: PoolState) -> str:
    return SCOPE_CONTROL_PLANE if pool.is_control_plane else SCOPE_WORKER_POOL


def layer_of(pool: PoolState) -> str:
    """Returns the layer of the pool's insights."""
    return CONTROL_PLANE if pool.is_control_plane else pool.name


def machine_config_pool(pool: PoolState, memory: PreviousStatus) -> Insight:
    """Returns the insight of one pool."""
    uid = uids.uid_of_object("mcp", pool.name)
    old = memory.insight(layer_of(pool), uid)
    previous_conditions = old.machine_config_pool.conditions if old and old.machine_config_pool else ()
    counts = {
        "Total": pool.total,
        "Available": pool.available,
        "Progressing": pool.progressing,
        "Outdated": pool.outdated,
        "Draining": pool.draining,
        "Excluded": pool.excluded,
        "Degraded": pool.degraded,
    }
    return memory.settled(
        layer_of(pool),
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="MachineConfigPool",
            machine_config_pool=MachineConfigPoolInsight(
                name=pool.name,
                resource=pool_ref(pool.name),
                scope_type=_scope(pool),
                assessment=pool.assessment,
                completion=pool_completion(pool.done, pool.total),
                summaries=tuple(PoolSummary(type=name, count=count) for name, count in counts.items()),
                conditions=memory.conditions(previous_conditions, pool_updating(pool), _pool_healthy(pool)),
            ),
        ),
    )


def pool_completion(updated_count: int, total: int) -> int:
    """Returns the percentage of updated nodes, rounded half to even; 100 only if every node is updated."""
    return 100 if updated_count == total else min(99, round(100 * updated_count / total))


def pool_updating(pool: PoolState) -> ConditionValues:
    """Returns the condition Updating of a pool."""
    if pool.is_complete:
        return (UPDATING, "False", "Updated", "")
    if pool.progressing or pool.draining:
        return (UPDATING, "True", "Progressing", "")
    if pool.excluded:
        return (UPDATING, "False", "Paused", "")
    if pool.done:
        # Between two batches no node is updating, but the pool is.
        return (UPDATING, "True", "Progressing", "")
    return (UPDATING, "False", "Pending", "")


def _pool_healthy(pool: PoolState) -> ConditionValues:
    """Returns the condition Healthy of a pool."""
    if pool.degraded:
        return (HEALTHY, "False", "NodesDegraded", f"{pool.degraded} of {pool.total} nodes are degraded")
    if not pool.total:
        return (HEALTHY, "True", "NoNodes", "")
    return (HEALTHY, "True", "AllNodesUpdated" if pool.is_complete else "Paused" if pool.paused else "NoProblems", "")


# Phase -> reason of condition Updating.
_PHASE_REASONS = {
    node_phases.DRAINING: "Draining",
    node_phases.UPDATING: "Updating",
    node_phases.REBOOTING: "Rebooting",
    node_phases.PAUSED: "Paused",
    node_phases.PENDING: "Pending",
    node_phases.UPDATED: "Completed",
}
# Trouble -> reason of condition Available.
_TROUBLE_REASONS = {
    machine_config.NOT_READY: "NotReady",
    machine_config.DISK_PRESSURE: "DiskPressure",
    machine_config.NETWORK_UNAVAILABLE: "NetworkUnavailable",
    machine_config.UNSCHEDULABLE: "Unschedulable",
    machine_config.DAEMON_BUSY: "MachineConfigDaemonBusy",
}


def node(state: NodeState, pool: PoolState, memory: PreviousStatus, text: int) -> Insight:
    """Returns the insight of a node of `pool`; `text` limits messages, in characters."""
    layer = layer_of(pool)
    uid = uids.uid_of_object("node", state.name)
    old = memory.insight(layer, uid)
    return memory.settled(
        layer,
        Insight(
            uid=uid,
            acquired_at=memory.stamp,
            type="Node",
            node=NodeInsight(
                name=state.name,
                resource=node_ref(state.name),
                pool_resource=pool_ref(pool.name),
                scope_type=_scope(pool),
                version=state.version[: limit_or_unbounded(VERSION_LIMIT, text)],
                est_to_complete="" if state.estimate_s is None else go_duration(state.estimate_s * SECOND),
                message=cut(state.message, text),
                conditions=memory.conditions(
                    old.node.conditions if old and old.node else (),
                    (UPDATING, "True" if state.updating else "False", _PHASE_REASONS[state.phase], ""),
                    _node_available(state, text),
                    (DEGRADED, "True", "Degraded", "") if state.degraded else (DEGRADED, "False", "AsExpected", ""),
                ),
            ),
        ),
    )


def _node_available(state: NodeState, text: int) -> ConditionValues:
    """Returns the condition Available of a node; `text` is the longest message in characters."""
    if not state.unavailable:
        return (AVAILABLE, "True", "AsExpected", "")
    reasons = [_TROUBLE_REASONS.get(trouble.reason, "UnexpectedImage") for trouble in state.troubles]
    message = cut(" | ".join(trouble.reason for trouble in state.troubles), text)
    return (AVAILABLE, "False", reasons[0] if len(reasons) == 1 else "MultipleReasons", message)
