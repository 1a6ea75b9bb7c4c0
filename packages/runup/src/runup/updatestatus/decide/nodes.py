"""Computes the state of every node and the counts of every pool during an update.

The rules are those of `oc adm upgrade status` (openshift/oc pkg/cli/admin/upgrade/status at 6b8e30c5b): a node is
updated when the release version of its current MachineConfig is the target's, whatever the pool's own counters say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

import msgspec

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Condition
from kubekit.rules.node_rules import CORDON
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.update_v1alpha1 import MachineConfigPoolInsight, NodeInsight, ResourceRef
from runup.rules import machine_config
from runup.rules.holders import cordon_holder
from runup.rules.update_components import MACHINE_CONFIG_NAMESPACE
from runup.updatestatus.decide.finding import CONTROL_PLANE, SCOPE_CONTROL_PLANE, SCOPE_WORKER_POOL, node_ref, pool_ref

RELEASE_VERSION = machine_config.PREFIX + "release-image-version"

DEGRADED, UNAVAILABLE, PROGRESSING, EXCLUDED, OUTDATED, COMPLETED = (
    "Degraded", "Unavailable", "Progressing", "Excluded", "Outdated", "Completed",
)  # fmt: skip
ASSESSMENTS = (DEGRADED, UNAVAILABLE, PROGRESSING, EXCLUDED, OUTDATED, COMPLETED)
"""In the order in which rows are printed."""

DRAINING, UPDATING, REBOOTING, PAUSED, PENDING, UPDATED = (
    "Draining", "Updating", "Rebooting", "Paused", "Pending", "Updated",
)  # fmt: skip
PHASES = (DRAINING, UPDATING, REBOOTING, PAUSED, PENDING, UPDATED)
"""In the order in which rows of one assessment are printed."""

UNKNOWN = "Unknown"
"""The phase of a node about which too little is known; OpenShift's nodes never have it."""

BY_PHASE: dict[str, tuple[str, int | None]] = {
    PAUSED: (EXCLUDED, 0),
    PENDING: (OUTDATED, None),
    DRAINING: (PROGRESSING, 600),
    UPDATING: (PROGRESSING, 300),
    REBOOTING: (PROGRESSING, 300),
    UPDATED: (COMPLETED, 0),
}
"""Phase -> assessment, and the estimate in seconds (None: unknown)."""

# How long a trouble may last before it is reported; other known troubles are harmless by themselves.
SERIOUS_AFTER = {
    machine_config.NOT_READY: timedelta(minutes=5),
    machine_config.DISK_PRESSURE: timedelta(minutes=1),
    machine_config.NETWORK_UNAVAILABLE: timedelta(minutes=1),
}
PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure")
# A node that is being updated normally has these.
_HARMLESS_REASONS = frozenset({machine_config.UNSCHEDULABLE, machine_config.DAEMON_BUSY})


class Target(msgspec.Struct, frozen=True):
    """The target of the nodes. `version` is None without history; `migrating` is true if the architecture changes."""

    version: str | None = None
    migrating: bool = False


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a node's state that a report shows; `version` is empty if unknown."""

    name: str
    version: str
    phase: str
    assessment: str
    message: str
    updated: bool
    unavailable: bool
    degraded: bool

    @property
    def order(self) -> tuple[int, int, str]:
        """The sort key of the node's row in the table of its pool; unknown words come first."""
        return _rank(ASSESSMENTS, self.assessment), _rank(PHASES, self.phase), self.name


def _rank(order: tuple[str, ...], value: str) -> int:
    return order.index(value) if value in order else -1


class NodeState(NodeSummary, frozen=True, kw_only=True):
    """The state of a node. `estimate_s` is None if unknown and 0 if nothing remains.

    `drain_begun` is when the node was cordoned for this update, None if that is unknown; `ready_since` is when its
    condition Ready changed last. `desired` is the MachineConfig that it should have. `takes_place`: it counts towards
    its pool's maxUnavailable; `held` is the remedy if a controller keeps it cordoned.
    """

    estimate_s: int | None
    updating: bool
    reason: str
    troubles: tuple[machine_config.UnavailableReason, ...]
    drain_begun: datetime | None = None
    cordoned_at: datetime | None = None
    ready: str = ""
    ready_since: datetime | None = None
    ready_text: str = ""
    desired: str = ""
    takes_place: bool = False
    held: str = ""
    pressure: str = ""
    pressed_since: datetime | None = None

    def is_serious(self, now: datetime) -> bool:
        """Reports whether one of its troubles has lasted longer than such troubles usually do."""
        for trouble in self.troubles:
            patience = SERIOUS_AFTER.get(trouble.reason)
            lasts = patience is None or trouble.since is None or now - trouble.since >= patience
            if lasts and trouble.reason not in _HARMLESS_REASONS:
                return True
        return False


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of a pool's nodes by state; `updated` counts nodes that have the target version."""

    total: int = 0
    updated: int = 0
    available: int = 0
    progressing: int = 0
    outdated: int = 0
    draining: int = 0
    excluded: int = 0
    degraded: int = 0
    pending: int = 0

    def without(self, other: Counts) -> Counts:
        """Returns these counts minus `other`, never below zero."""
        return Counts(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in self.__struct_fields__})

    @property
    def done(self) -> int:
        """The number of nodes in phase Updated."""
        return self.total - self.outdated

    @property
    def is_complete(self) -> bool:
        """True if no node is outdated, also if the pool is empty."""
        return self.outdated == 0


def count(nodes: Sequence[NodeSummary]) -> Counts:
    """Returns the counts of the nodes of a pool."""
    active = (DRAINING, UPDATING, REBOOTING)
    return Counts(
        total=len(nodes),
        updated=sum(node.updated for node in nodes),
        available=sum(not node.unavailable for node in nodes),
        progressing=sum(node.phase in active and not node.degraded for node in nodes),
        outdated=sum(node.phase != UPDATED for node in nodes),
        draining=sum(node.phase == DRAINING for node in nodes),
        excluded=sum(node.phase == PAUSED for node in nodes),
        degraded=sum(node.degraded for node in nodes),
        pending=sum(node.phase == PENDING for node in nodes),
    )


class PoolState(Counts, frozen=True, kw_only=True):
    """A pool with its nodes in the given order, and their counts.

    `degradations` are the conditions by which it is degraded, `allowed` the number of nodes that may be unavailable at
    once, `wanted` the MachineConfig that its nodes should have, `began` the time since when it is updating.
    """

    name: str
    paused: bool
    nodes: tuple[NodeState, ...]
    degradations: tuple[Condition, ...] = ()
    allowed: int = 1
    wanted: str = ""
    began: datetime | None = None

    @property
    def is_control_plane(self) -> bool:
        """True for the control plane's pool."""
        return self.name == machine_config.CONTROL_PLANE_POOL

    @property
    def layer(self) -> str:
        """The layer that the pool is reported in."""
        return CONTROL_PLANE if self.is_control_plane else self.name

    @property
    def scope(self) -> str:
        """The scope of insights about the pool and its nodes."""
        return SCOPE_CONTROL_PLANE if self.is_control_plane else SCOPE_WORKER_POOL

    @property
    def ref(self) -> ResourceRef:
        """The object that updates the nodes."""
        return pool_ref(self.name)

    uid_kind: ClassVar[str] = "mcp"
    member_uid_kind: ClassVar[str] = "node"

    def pool_insight(self, **fields: Any) -> MachineConfigPoolInsight:
        """Returns the insight of the pool with these fields."""
        return MachineConfigPoolInsight(**fields)

    def node_insight(self, node: NodeState, **fields: Any) -> NodeInsight:
        """Returns the insight of one of its nodes with these fields."""
        return NodeInsight(resource=node_ref(node.name), **fields)

    @property
    def client(self) -> str:
        """The program in which remedies are typed."""
        return "oc"

    @property
    def updater(self) -> str:
        """What drains and updates the nodes, as the subject of a sentence."""
        return "The machine-config daemon"

    def log_of(self, node: str) -> str:
        """Returns a sentence about the log in which an update of the node can be followed."""
        return (
            f"See the log of the machine-config daemon: `oc get pods -n {MACHINE_CONFIG_NAMESPACE} -o wide "
            f"--field-selector spec.nodeName={node}` names its pod."
        )

    def prune_of(self, node: str) -> str:
        """Returns how images that no container uses are deleted on the node."""
        return f"`oc debug node/{node} -- chroot /host crictl rmi --prune`"

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


def with_derived_versions(
    versions: Mapping[str, str],
    pools: Sequence[MachineConfigPool],
    configs: Sequence[MachineConfig],
    *,
    cluster: ClusterVersion,
    operator_updated: bool,
) -> dict[str, str]:
    """Returns `versions` with the target's version for pools' configurations that do not name their release.

    Releases up to 4.7 and others do not annotate them. Such a configuration is the target's if the machine-config
    operator has the target's version, if the update has completed, or if it was rendered since the update began.
    """
    history = cluster.status.history
    if not history or not history[0].version:
        return dict(versions)
    newest = history[0]
    made = {config.metadata.name: config.metadata.creation_timestamp for config in configs}
    derived = dict(versions)
    for name in {pool.spec.configuration.name for pool in pools} - {""} - versions.keys():
        created = made.get(name)
        is_new = created is not None and created >= newest.started_time
        if is_new or operator_updated or newest.state == "Completed":
            derived[name] = newest.version
    return derived


def assess_pools(
    pools: Sequence[MachineConfigPool],
    nodes: Sequence[Node],
    versions: Mapping[str, str],
    target: Target,
    *,
    as_oc: bool = True,
) -> tuple[PoolState, ...]:
    """Returns the state of every pool, in the order of `pools`; a node that belongs to none is left out.

    `as_oc` keeps two faults of oc: see `node_state`.
    """
    selectors = [pool.spec.node_selector for pool in pools if pool.spec.node_selector]
    keys = sorted(
        {key for selector in selectors for key in selector.match_labels}
        | {expression.key for selector in selectors for expression in selector.match_expressions}
    )
    members: dict[str, list[Node]] = {pool.metadata.name: [] for pool in pools}
    # Thousands of nodes share a few combinations of the labels that selectors use.
    pool_by_labels: dict[tuple[str | None, ...], str | None] = {}
    for node in nodes:
        values = tuple(map(node.metadata.labels.get, keys))
        if values not in pool_by_labels:
            pool_by_labels[values] = machine_config.shown_pool(node.metadata.labels, pools)
        if (name := pool_by_labels[values]) is not None:
            members[name].append(node)
    return tuple(
        pool_state(
            pool, tuple(node_state(node, pool, versions, target, as_oc=as_oc) for node in members[pool.metadata.name])
        )
        for pool in pools
    )


def pool_state(pool: MachineConfigPool, nodes: tuple[NodeState, ...]) -> PoolState:
    """Returns the pool's nodes and their counts."""
    return PoolState(
        name=pool.metadata.name,
        paused=pool.spec.paused,
        nodes=nodes,
        degradations=tuple(machine_config.degradations(pool)),
        allowed=machine_config.allowed_unavailable(pool),
        wanted=pool.spec.configuration.name,
        began=_began(pool),
        **msgspec.structs.asdict(count(nodes)),
    )


def node_state(
    node: Node, pool: MachineConfigPool, versions: Mapping[str, str], target: Target, *, as_oc: bool = True
) -> NodeState:
    """Returns the state of a node of `pool` on its way to `target`.

    With `as_oc`, a node whose daemon has not begun is in phase Updated, though it has the old version, and a node whose
    current configuration does not name its release is never updating.
    """
    annotations = node.metadata.annotations
    current = annotations.get(machine_config.CURRENT_CONFIG, "")
    desired = annotations.get(machine_config.DESIRED_CONFIG, "")
    current_version, desired_version = versions.get(current, ""), versions.get(desired, "")
    same_config = current == desired
    on_target = desired == pool.spec.configuration.name
    settled = not target.migrating or machine_config.DESIRED_CONFIG not in annotations or (same_config and on_target)
    updated = bool(current_version) and current_version == target.version and settled
    updating = (
        not updated
        and bool(desired_version and (current_version or not as_oc))
        and desired_version == target.version
        and not same_config
        and on_target
    )
    degraded = bool(desired) and machine_config.is_stuck(node)
    troubles, unavailable = machine_config.availability(node, pool)
    phase = _update_phase(annotations, updated=updated, updating=updating, paused=pool.spec.paused)
    if phase == UPDATED and not updated and not as_oc:
        phase = UPDATING
    assessment, estimate = BY_PHASE[phase]
    # The taint shows when the node was cordoned; before its pool began to update it was for another reason.
    began, ready = _began(pool), find(node.status.conditions, "Ready")
    cordons = (taint.time_added for taint in node.spec.taints if taint.key == CORDON.key)
    cordoned_at = next((moment for moment in cordons if moment is not None), None)
    holder = cordon_holder(node) if node.spec.unschedulable else None
    pressed = next((each for each in node.status.conditions if each.status == "True" and each.type in PRESSURES), None)
    message = ""
    # While the daemon updates a node, it is meant to be unavailable. Degraded comes last: it is the graver state.
    if unavailable and not updating:
        assessment, message, estimate = UNAVAILABLE, " | ".join(t.reason for t in troubles), 0 if updated else None
    if degraded:
        assessment, message, estimate = DEGRADED, annotations.get(machine_config.REASON, ""), 0 if updated else None
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
        reason=annotations.get(machine_config.REASON, ""),
        troubles=troubles,
        drain_begun=cordoned_at if phase == DRAINING and began and cordoned_at and cordoned_at >= began else None,
        cordoned_at=cordoned_at,
        ready=ready.status if ready else "",
        ready_since=ready.last_transition_time if ready else None,
        ready_text=": ".join(text for text in (ready.reason, ready.message) if text) if ready else "",
        desired=desired,
        takes_place=machine_config.takes_place(node, troubles, unavailable),
        held=holder.remedy if holder else "",
        pressure=pressed.type if pressed else "",
        pressed_since=pressed.last_transition_time if pressed else None,
    )


def _began(pool: MachineConfigPool) -> datetime | None:
    """Returns when the pool began to update, None if it is not updating."""
    updating = find(pool.status.conditions, "Updating")
    return updating.last_transition_time if updating is not None and updating.status == "True" else None


def _update_phase(annotations: Mapping[str, str], *, updated: bool, updating: bool, paused: bool) -> str:
    """Returns how far the machine-config daemon is with the node, by its annotations."""
    if not updating:
        return UPDATED if updated else PAUSED if paused else PENDING
    state = annotations.get(machine_config.STATE, "")
    desired = annotations.get(machine_config.DESIRED_DRAIN, "")
    applied = annotations.get(machine_config.APPLIED_DRAIN, "")
    is_asked_to_drain = desired != applied and desired.partition("-")[0] == "drain"
    if desired and applied and (is_asked_to_drain or state == "Done"):
        return DRAINING
    return {"Rebooting": REBOOTING, "Done": UPDATED}.get(state, UPDATING)
