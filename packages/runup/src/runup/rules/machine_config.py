"""Decides which machine config pool updates a node, how many of its nodes may be away, and which are available.

Sources: machine-config-operator, `pkg/helpers` (GetPoolsForNode), `pkg/controller/node` (maxUnavailable),
`pkg/controller/common/layered_node_state.go` (availability) and `pkg/controller/drain` (annotations of a drain).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Condition
from kubekit.rules.node_rules import is_windows
from runup.api.machineconfig_v1 import MachineConfigPool

CONTROL_PLANE_POOL, WORKER_POOL = "master", "worker"
PREFIX = "machineconfiguration.openshift.io/"
CURRENT_CONFIG, DESIRED_CONFIG = PREFIX + "currentConfig", PREFIX + "desiredConfig"
CURRENT_IMAGE, DESIRED_IMAGE = PREFIX + "currentImage", PREFIX + "desiredImage"
STATE, REASON = PREFIX + "state", PREFIX + "reason"
DESIRED_DRAIN, APPLIED_DRAIN = PREFIX + "desiredDrain", PREFIX + "lastAppliedDrain"
LAYERING, LAYERED_IMAGE = PREFIX + "layering-enabled", PREFIX + "newestImageEquivalentConfig"
# States that the machine-config daemon does not leave by itself.
STUCK_STATES = ("Degraded", "Unreconcilable")

NOT_READY = "Not ready"
DISK_PRESSURE = "Disk pressure"
NETWORK_UNAVAILABLE = "Network unavailable"
UNSCHEDULABLE = "Node is marked unschedulable"
DAEMON_BUSY = "Machine Config Daemon is processing the node"
# Condition type -> its healthy status, and the reason if it has another.
_HEALTHY = {
    "Ready": ("True", NOT_READY),
    "DiskPressure": ("False", DISK_PRESSURE),
    "NetworkUnavailable": ("False", NETWORK_UNAVAILABLE),
}


class PoolsOfNode(msgspec.Struct, frozen=True, kw_only=True):
    """The pools of a node: all that select it, the custom ones of them, and the one that updates it (or empty)."""

    selecting: list[str]
    custom: list[str]
    updating: str


def pools_of_node(labels: dict[str, str], pools: Iterable[MachineConfigPool]) -> PoolsOfNode:
    """Returns the pools of a node with these labels: master before the only custom pool before worker.

    A pool without a selector, or with an empty one, has no nodes, unlike a LabelSelector elsewhere. A node in several
    custom pools is an error that the machine-config operator leaves alone. It does not update Windows nodes.
    """
    selecting = [
        pool.metadata.name
        for pool in pools
        if (selector := pool.spec.node_selector) is not None
        and (selector.match_labels or selector.match_expressions)
        and selector.matches(labels)
    ]
    custom = sorted(set(selecting) - {CONTROL_PLANE_POOL, WORKER_POOL})
    if is_windows(labels):
        updating = ""
    elif CONTROL_PLANE_POOL in selecting:
        updating = CONTROL_PLANE_POOL
    elif custom:
        updating = custom[0] if len(custom) == 1 else ""
    else:
        updating = WORKER_POOL if WORKER_POOL in selecting else ""
    return PoolsOfNode(selecting=selecting, custom=custom, updating=updating)


def nodes_by_pool(nodes: Iterable[Node], pools_of_nodes: Iterable[PoolsOfNode]) -> dict[str, list[Node]]:
    """Returns the nodes that each pool updates; `pools_of_nodes` are the pools of each node, in the same order.

    The empty name has the nodes that no pool updates: of Windows, in no pool, or in several custom ones.
    """
    members: dict[str, list[Node]] = defaultdict(list)
    for node, node_pools in zip(nodes, pools_of_nodes, strict=True):
        members[node_pools.updating].append(node)
    return members


def shown_pool(labels: dict[str, str], pools: Iterable[MachineConfigPool]) -> str | None:
    """Returns the pool under which `oc adm upgrade status` shows a node; None if it shows the node in no pool.

    oc differs from the machine-config operator: an empty selector selects all nodes, and a node in several custom pools
    is shown in the first of them (openshift/oc, pkg/cli/admin/upgrade/status/workerpool.go).
    """
    selecting = [
        pool.metadata.name for pool in pools if pool.spec.node_selector and pool.spec.node_selector.matches(labels)
    ]
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 2}
    return min(selecting, key=lambda name: rank.get(name, 1), default=None)


def allowed_unavailable(pool: MachineConfigPool) -> int:
    """Returns how many machines of the pool may be away at once: 1 unless its spec allows more.

    A share is of the pool's machines, rounded down, and at least 1.
    """
    value = pool.spec.max_unavailable
    if isinstance(value, str):
        share = value.removesuffix("%")
        if not share.isdigit():
            return 1
        value = pool.status.machine_count * int(share) // 100 if value.endswith("%") else int(share)
    return max(1, value or 1)


def machines_behind(pool: MachineConfigPool) -> int:
    """Returns how many machines of the pool lack its configuration, by the counts of its status."""
    return pool.status.machine_count - pool.status.updated_machine_count


# The specific types come first: they say what is wrong, and `Degraded` is only their sum (machine-config-operator,
# `pkg/controller/node/status.go`). BuildFailed is what older releases have for ImageBuildDegraded.
_FIRST_DEGRADED, _DEGRADED, _BUILD_FAILED = ("NodeDegraded", "RenderDegraded"), "Degraded", "BuildFailed"


def degraded_conditions(pool: MachineConfigPool) -> list[Condition]:
    """Returns the conditions that say whether the pool is degraded, whatever their status, specific ones first."""
    rank = {type_: place for place, type_ in enumerate(_FIRST_DEGRADED)} | {_DEGRADED: len(_FIRST_DEGRADED) + 1}
    conditions = [
        each for each in pool.status.conditions if each.type.endswith(_DEGRADED) or each.type == _BUILD_FAILED
    ]
    return sorted(conditions, key=lambda condition: rank.get(condition.type, len(_FIRST_DEGRADED)))


def degradations(pool: MachineConfigPool) -> list[Condition]:
    """Returns the conditions by which the pool is degraded; the sum `Degraded` only if there is no other."""
    degraded = [condition for condition in degraded_conditions(pool) if condition.status == "True"]
    return [condition for condition in degraded if condition.type != _DEGRADED] or degraded


def is_moving(node: Node) -> bool:
    """Returns whether the node was given another configuration than the one it has, and so is updated now."""
    annotations = node.metadata.annotations
    desired = annotations.get(DESIRED_CONFIG, "")
    return bool(desired) and desired != annotations.get(CURRENT_CONFIG, "")


def is_drain_wanted(node: Node) -> bool:
    """Returns whether a drain of the node was requested and is not finished."""
    annotations = node.metadata.annotations
    desired = annotations.get(DESIRED_DRAIN, "")
    return desired.startswith("drain-") and annotations.get(APPLIED_DRAIN, "") != desired


def is_cordoned_by_update(node: Node) -> bool:
    """Returns whether the machine-config operator cordoned a node, or has yet to release it."""
    annotations = node.metadata.annotations
    desired = annotations.get(DESIRED_DRAIN, "")
    # The drain controller copies the request to `lastAppliedDrain` once it has carried it out.
    releasing = desired.startswith("uncordon-") and annotations.get(APPLIED_DRAIN, "") != desired
    return desired.startswith("drain-") or releasing or annotations.get(STATE) in ("Working", "Rebooting")


def is_stuck(node: Node) -> bool:
    """Returns whether the machine-config daemon has given up on a node."""
    return node.metadata.annotations.get(STATE) in STUCK_STATES


class UnavailableReason(msgspec.Struct, frozen=True):
    """A reason why a node is unavailable; `message` is the condition's, `since` its last transition."""

    reason: str
    message: str = ""
    since: datetime | None = None


def troubles_of(node: Node) -> list[UnavailableReason]:
    """Returns what is wrong with a node by its conditions, and whether it is cordoned."""
    troubles = []
    for condition in node.status.conditions:
        wanted_status, name = _HEALTHY.get(condition.type, (condition.status, ""))
        if condition.status != wanted_status:
            troubles.append(UnavailableReason(name, condition.message, condition.last_transition_time))
    if node.spec.unschedulable:
        troubles.append(UnavailableReason(UNSCHEDULABLE))
    return troubles


def availability(node: Node, pool: MachineConfigPool) -> tuple[tuple[UnavailableReason, ...], bool]:
    """Returns the problem of a node, and whether it makes the node unavailable to its pool."""
    annotations = node.metadata.annotations
    troubles = troubles_of(node)
    if not troubles:
        # Without a bad condition a node is unavailable only while the daemon works on it.
        if _is_at_rest(node):
            return (), False
        troubles.append(UnavailableReason(DAEMON_BUSY))
    layered = pool.metadata.annotations.get(LAYERED_IMAGE, "") if LAYERING in pool.metadata.labels else ""
    desired = annotations.get(DESIRED_IMAGE, "")
    if layered and desired != layered:
        unexpected = UnavailableReason(f"Node has an unexpected annotation {LAYERED_IMAGE}={layered}")
        return (*troubles, unexpected), False
    return tuple(troubles), bool(layered) or not desired


def takes_place(node: Node, reasons: tuple[UnavailableReason, ...], unavailable: bool) -> bool:
    """Returns whether a node that the update does not hold is unavailable, and so takes one of its pool's places.

    `reasons` and `unavailable` are its `availability`. Cordoned nodes are unavailable, no matter who did it
    (`pkg/controller/node`, getUnavailableMachines).
    """
    away = unavailable and any(each.reason != DAEMON_BUSY for each in reasons)
    return away and not is_cordoned_by_update(node)


def nodes_that_take_places(pool: MachineConfigPool, members: Iterable[Node]) -> list[Node]:
    """Returns the nodes of a pool that use up its maxUnavailable though the update does not hold them."""
    return [node for node in members if takes_place(node, *availability(node, pool))]


def why_not_begun(pool: MachineConfigPool, members: Sequence[Node]) -> str:
    """Returns why the machine-config operator updates no node of the pool until somebody acts, or an empty string."""
    causes = degradations(pool)
    if causes:
        return "it is degraded: " + ", ".join(
            f"{cause.type} ({cause.reason})" if cause.reason else cause.type for cause in causes
        )
    away, allowed = nodes_that_take_places(pool, members), allowed_unavailable(pool)
    if len(away) < allowed or len(away) == len(members):
        return ""
    named = [f"{node.metadata.name} {'cordoned' if node.spec.unschedulable else 'not available'}" for node in away[:3]]
    return f"{', '.join(named)}, and at most {allowed} of its nodes may be unavailable"


def _is_at_rest(node: Node) -> bool:
    """Returns whether the machine-config daemon is done with a node, or has given up."""
    if is_stuck(node):
        return True
    annotations = node.metadata.annotations
    # Without either annotation there are no images to compare.
    if CURRENT_IMAGE in annotations or DESIRED_IMAGE in annotations:
        image = annotations.get(DESIRED_IMAGE, "")
        if not image or image != annotations.get(CURRENT_IMAGE):
            return False
    desired = annotations.get(DESIRED_CONFIG, "")
    return bool(desired) and annotations.get(CURRENT_CONFIG, "") == desired and annotations.get(STATE) == "Done"
