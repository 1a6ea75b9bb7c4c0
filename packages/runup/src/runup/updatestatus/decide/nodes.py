"""Computes the state of every node and the counts of every pool during an update.

The rules are those of `oc adm upgrade status` (openshift/oc pkg/cli/admin/upgrade/status at 6b8e30c5b): a node is
updated when the release version of its current MachineConfig is the target's, whatever the pool's own counters say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import Node
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.updatestatus.decide.node_phases import (
    ASSESSMENTS,
    COMPLETED,
    CONTROL_PLANE_POOL,
    DEGRADED,
    DRAINING,
    EXCLUDED,
    OUTDATED,
    PAUSED,
    PENDING,
    PHASES,
    PROGRESSING,
    REBOOTING,
    UNAVAILABLE,
    UPDATED,
    UPDATING,
    WORKER_POOL,
)

_PREFIX = "machineconfiguration.openshift.io/"
CURRENT_CONFIG = _PREFIX + "currentConfig"
DESIRED_CONFIG = _PREFIX + "desiredConfig"
CURRENT_IMAGE = _PREFIX + "currentImage"
DESIRED_IMAGE = _PREFIX + "desiredImage"
STATE = _PREFIX + "state"
REASON = _PREFIX + "reason"
DESIRED_DRAIN = _PREFIX + "desiredDrain"
APPLIED_DRAIN = _PREFIX + "lastAppliedDrain"
LAYERING = _PREFIX + "layering-enabled"
LAYERED_IMAGE = _PREFIX + "newestImageEquivalentConfig"
RELEASE_VERSION = _PREFIX + "release-image-version"

_ASSESSMENT_RANK = {name: rank for rank, name in enumerate(ASSESSMENTS)}
_PHASE_RANK = {name: rank for rank, name in enumerate(PHASES)}

_BY_PHASE: dict[str, tuple[str, int | None]] = {
    PAUSED: (EXCLUDED, 0),
    PENDING: (OUTDATED, None),
    DRAINING: (PROGRESSING, 600),
    UPDATING: (PROGRESSING, 300),
    REBOOTING: (PROGRESSING, 300),
    UPDATED: (COMPLETED, 0),
}
"""Phase -> assessment, and the estimate in seconds (None: unknown)."""

NOT_READY = "Not ready"
DISK_PRESSURE = "Disk pressure"
NETWORK_UNAVAILABLE = "Network unavailable"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""The taint that the node lifecycle controller adds when a node is cordoned, with the time in `timeAdded`."""
UNSCHEDULABLE = "Node is marked unschedulable"
DAEMON_BUSY = "Machine Config Daemon is processing the node"

# Condition type -> its healthy status, and the reason if it has another.
_HEALTHY_STATUS_AND_REASON = {
    "Ready": ("True", NOT_READY),
    "DiskPressure": ("False", DISK_PRESSURE),
    "NetworkUnavailable": ("False", NETWORK_UNAVAILABLE),
}
# How long a trouble may last before it is reported; other known troubles are harmless by themselves.
SERIOUS_AFTER = {
    NOT_READY: timedelta(minutes=5),
    DISK_PRESSURE: timedelta(minutes=1),
    NETWORK_UNAVAILABLE: timedelta(minutes=1),
}
# A node that is being updated normally has these.
_HARMLESS_REASONS = frozenset({UNSCHEDULABLE, DAEMON_BUSY})


class UnavailableReason(msgspec.Struct, frozen=True):
    """A reason why a node is unavailable; `message` is the condition's, `since` its last transition."""

    reason: str
    message: str = ""
    since: datetime | None = None


class Target(msgspec.Struct, frozen=True):
    """The target of the nodes. `version` is None without history; `migrating` is true if the architecture changes."""

    version: str | None = None
    migrating: bool = False


class NodeState(msgspec.Struct, frozen=True):
    """The state of a node. `estimate_s` is None if unknown and 0 if nothing remains; `version` is empty if unknown.

    `drain_begun` is when the node was cordoned for this update, None if the cluster does not tell.
    """

    name: str
    version: str
    phase: str
    assessment: str
    estimate_s: int | None
    message: str
    updated: bool
    updating: bool
    unavailable: bool
    degraded: bool
    reason: str
    troubles: tuple[UnavailableReason, ...]
    drain_begun: datetime | None = None

    @property
    def order(self) -> tuple[int, int, str]:
        """The sort key of the node's row in the table of its pool."""
        return _ASSESSMENT_RANK[self.assessment], _PHASE_RANK[self.phase], self.name

    def is_serious(self, now: datetime) -> bool:
        """Reports whether one of its troubles has lasted longer than such troubles usually do."""
        return any(_is_serious(trouble, now) for trouble in self.troubles)


class PoolState(msgspec.Struct, frozen=True):
    """A pool with its nodes in the given order, and their counts."""

    name: str
    paused: bool
    nodes: tuple[NodeState, ...]
    total: int
    available: int
    progressing: int
    outdated: int
    draining: int
    excluded: int
    degraded: int
    pending: int

    @property
    def is_control_plane(self) -> bool:
        """True for the control plane's pool."""
        return self.name == CONTROL_PLANE_POOL

    @property
    def done(self) -> int:
        """The number of nodes in phase Updated."""
        return self.total - self.outdated

    @property
    def is_complete(self) -> bool:
        """True if no node is outdated, also if the pool is empty."""
        return self.outdated == 0

    @property
    def assessment(self) -> str:
        """The pool's assessment, in one word."""
        if self.is_complete:
            return COMPLETED
        if self.pending == self.total:
            return PENDING
        if self.degraded:
            return DEGRADED
        return EXCLUDED if self.excluded else PROGRESSING

    def rows(self) -> tuple[NodeState, ...]:
        """Returns the nodes in the order of their table."""
        return tuple(sorted(self.nodes, key=lambda node: node.order))


def target_of(cluster: ClusterVersion) -> Target:
    """Returns the target of the newest entry of the history."""
    history = cluster.status.history
    if not history:
        return Target()
    progressing = status_of(cluster.status.conditions, "Progressing") == "True"
    return Target(history[0].version, is_architecture_change(cluster) and progressing)


def is_architecture_change(cluster: ClusterVersion) -> bool:
    """Reports whether the newest history entry has the version of the one before, and another image."""
    history = cluster.status.history
    return len(history) > 1 and history[0].version == history[1].version and history[0].image != history[1].image


def versions_of(configs: Sequence[MachineConfig]) -> dict[str, str]:
    """Returns, by MachineConfig, the release that it was rendered for; configs without a release are left out."""
    release_versions = (
        (config.metadata.name, config.metadata.annotations.get(RELEASE_VERSION, "")) for config in configs
    )
    return {name: version for name, version in release_versions if version}


def assess_pools(
    pools: Sequence[MachineConfigPool], nodes: Sequence[Node], versions: Mapping[str, str], target: Target
) -> tuple[PoolState, ...]:
    """Returns the state of every pool, in the order of `pools`; a node that belongs to none is left out."""
    members = _nodes_by_pool(pools, nodes)
    return tuple(
        pool_state(pool, tuple(node_state(node, pool, versions, target) for node in members[pool.metadata.name]))
        for pool in pools
    )


def _nodes_by_pool(pools: Sequence[MachineConfigPool], nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Returns the nodes of each pool, by the pool's name."""
    members: dict[str, list[Node]] = {pool.metadata.name: [] for pool in pools}
    choose = _chooser(pools)
    for node in nodes:
        name = choose(node.metadata.labels)
        if name is not None:
            members[name].append(node)
    return members


def _chooser(pools: Sequence[MachineConfigPool]) -> Callable[[Mapping[str, str]], str | None]:
    """Returns a function from labels to the pool: master first, then the first matching custom pool, then worker."""
    rank = {CONTROL_PLANE_POOL: 0, WORKER_POOL: 2}
    ordered = sorted(pools, key=lambda pool: rank.get(pool.metadata.name, 1))
    selectors = [(pool.metadata.name, pool.spec.node_selector) for pool in ordered if pool.spec.node_selector]
    keys = sorted(
        {key for _, selector in selectors for key in selector.match_labels}
        | {expression.key for _, selector in selectors for expression in selector.match_expressions}
    )
    # Thousands of nodes share a few combinations of the labels that selectors use, so results are cached.
    cache: dict[tuple[str | None, ...], str | None] = {}

    def choose(labels: Mapping[str, str]) -> str | None:
        """Returns the first pool whose selector matches the labels; remembers the answer by the values used."""
        values = tuple(map(labels.get, keys))
        if values not in cache:
            own_labels = dict(labels)
            cache[values] = next((name for name, selector in selectors if selector.matches(own_labels)), None)
        return cache[values]

    return choose


def pool_state(pool: MachineConfigPool, nodes: tuple[NodeState, ...]) -> PoolState:
    """Returns the pool's nodes and their counts."""
    active = (DRAINING, UPDATING, REBOOTING)
    return PoolState(
        name=pool.metadata.name,
        paused=pool.spec.paused,
        nodes=nodes,
        total=len(nodes),
        available=sum(not node.unavailable for node in nodes),
        progressing=sum(node.phase in active and not node.degraded for node in nodes),
        outdated=sum(node.phase != UPDATED for node in nodes),
        draining=sum(node.phase == DRAINING for node in nodes),
        excluded=sum(node.phase == PAUSED for node in nodes),
        degraded=sum(node.degraded for node in nodes),
        pending=sum(node.phase == PENDING for node in nodes),
    )


def node_state(node: Node, pool: MachineConfigPool, versions: Mapping[str, str], target: Target) -> NodeState:
    """Returns the state of a node of `pool` on its way to `target`."""
    annotations = node.metadata.annotations
    current, desired = annotations.get(CURRENT_CONFIG, ""), annotations.get(DESIRED_CONFIG, "")
    current_version, desired_version = versions.get(current, ""), versions.get(desired, "")
    same_config = current == desired
    on_target = desired == pool.spec.configuration.name
    settled = not target.migrating or DESIRED_CONFIG not in annotations or (same_config and on_target)
    updated = bool(current_version) and current_version == target.version and settled
    updating = (
        not updated
        and bool(current_version and desired_version)
        and desired_version == target.version
        and not same_config
        and on_target
    )
    degraded = bool(desired) and annotations.get(STATE) in ("Degraded", "Unreconcilable")
    troubles, unavailable = _availability(node, pool)
    phase = _update_phase(annotations, updated=updated, updating=updating, paused=pool.spec.paused)
    assessment, estimate = _BY_PHASE[phase]
    message = ""
    # While the daemon updates a node, it is meant to be unavailable. Degraded comes last: it is the graver state.
    if unavailable and not updating:
        assessment, message, estimate = UNAVAILABLE, " | ".join(t.reason for t in troubles), 0 if updated else None
    if degraded:
        assessment, message, estimate = DEGRADED, annotations.get(REASON, ""), 0 if updated else None
    return NodeState(
        name=node.metadata.name,
        version=current_version,
        phase=phase,
        assessment=assessment,
        estimate_s=estimate,
        message=message,
        updated=updated,
        updating=updating,
        unavailable=unavailable,
        degraded=degraded,
        reason=annotations.get(REASON, ""),
        troubles=troubles,
        drain_begun=_cordoned_at(node, pool) if phase == DRAINING else None,
    )


def _cordoned_at(node: Node, pool: MachineConfigPool) -> datetime | None:
    """Returns when the node was cordoned; None if it was before its pool began to update: then for another reason."""
    began = find(pool.status.conditions, "Updating")
    if began is None or began.status != "True" or began.last_transition_time is None:
        return None
    times = [taint.time_added for taint in node.spec.taints if taint.key == CORDON_TAINT and taint.time_added]
    return next((time for time in times if time >= began.last_transition_time), None)


def _update_phase(annotations: Mapping[str, str], *, updated: bool, updating: bool, paused: bool) -> str:
    """Returns how far the machine-config daemon is with the node, by its annotations."""
    if updating:
        if _is_draining(annotations):
            return DRAINING
        return {"Rebooting": REBOOTING, "Done": UPDATED}.get(annotations.get(STATE, ""), UPDATING)
    if updated:
        return UPDATED
    return PAUSED if paused else PENDING


def _is_draining(annotations: Mapping[str, str]) -> bool:
    desired, applied = annotations.get(DESIRED_DRAIN, ""), annotations.get(APPLIED_DRAIN, "")
    if not desired or not applied:
        return False
    return (desired != applied and desired.partition("-")[0] == "drain") or annotations.get(STATE) == "Done"


def _availability(node: Node, pool: MachineConfigPool) -> tuple[tuple[UnavailableReason, ...], bool]:
    """Returns the node's troubles, and whether they make it unavailable."""
    troubles = []
    for condition in node.status.conditions:
        wanted_status, name = _HEALTHY_STATUS_AND_REASON.get(condition.type, (condition.status, ""))
        if condition.status != wanted_status:
            troubles.append(UnavailableReason(name, condition.message, condition.last_transition_time))
    if node.spec.unschedulable:
        troubles.append(UnavailableReason(UNSCHEDULABLE))
    if not troubles:
        # Without a bad condition a node is unavailable only while the daemon works on it.
        if _is_at_rest(node.metadata.annotations):
            return (), False
        troubles.append(UnavailableReason(DAEMON_BUSY))
    unexpected = _unexpected_image(node.metadata.annotations, pool)
    if unexpected:
        troubles.append(UnavailableReason(unexpected))
    return tuple(troubles), not unexpected and _has_pool_image(node.metadata.annotations, pool)


def _is_at_rest(annotations: Mapping[str, str]) -> bool:
    """Reports whether the machine-config daemon is done with the node, or has given up."""
    state = annotations.get(STATE, "")
    if state in ("Degraded", "Unreconcilable"):
        return True
    current, desired = annotations.get(CURRENT_CONFIG, ""), annotations.get(DESIRED_CONFIG, "")
    if CURRENT_IMAGE in annotations or DESIRED_IMAGE in annotations:
        image = annotations.get(DESIRED_IMAGE, "")
        images_equal = bool(image) and image == annotations.get(CURRENT_IMAGE)
    else:
        # Without either annotation there are no images to compare.
        images_equal = True
    return bool(desired) and current == desired and images_equal and state == "Done"


def _layered_image(pool: MachineConfigPool) -> str:
    return pool.metadata.annotations.get(LAYERED_IMAGE, "") if LAYERING in pool.metadata.labels else ""


def _unexpected_image(annotations: Mapping[str, str], pool: MachineConfigPool) -> str:
    image = _layered_image(pool)
    if image and annotations.get(DESIRED_IMAGE, "") != image:
        return f"Node has an unexpected annotation {LAYERED_IMAGE}={image}"
    return ""


def _has_pool_image(annotations: Mapping[str, str], pool: MachineConfigPool) -> bool:
    return bool(_layered_image(pool)) or not annotations.get(DESIRED_IMAGE, "")


def _is_serious(trouble: UnavailableReason, now: datetime) -> bool:
    if trouble.reason in _HARMLESS_REASONS:
        return False
    patience = SERIOUS_AFTER.get(trouble.reason)
    return patience is None or trouble.since is None or now - trouble.since >= patience
