"""Computes the state of the NodePools of a hosted cluster, and of their Machines.

A pool has its own release. `Replace` makes new Machines of it and deletes the old ones; `InPlace` updates the nodes
that exist. Source: openshift/hypershift, `hypershift-operator/controllers/nodepool`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from kubekit.api.conditions import find
from kubekit.rules.version_skew import order_of
from runup.api.hypershift_v1beta1 import IN_PLACE, HostedCluster, HostedNodePool
from runup.api.rollouts_v1 import ClusterMachine
from runup.api.update_v1alpha1 import MachineInsight, NodePoolInsight, ResourceRef, Version, Versions
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.hosted.snapshot import (
    HOSTED,
    MANAGEMENT,
    POOL_OF_MACHINE,
    RELEASE_OF_MACHINE,
    HostedSnapshot,
)
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import readable

HYPERSHIFT_GROUP = "hypershift.openshift.io"
# The conditions by which a pool says that it is being updated, and what the first of them adds.
UPDATING_VERSION, UPDATING_CONFIG = "UpdatingVersion", "UpdatingConfig"
_TARGET = re.compile(r'Target version: "?(\d+\.\d+\.\d+[^\s",]*?)"?\.?(?:\s|$)')
_UPGRADED = re.compile(r"Total Nodes: (\d+)\. Upgraded: (\d+)")
# Phases in which a new Machine is not yet a node (sigs.k8s.io/cluster-api, api/core).
_COMING = ("", "Pending", "Provisioning", "Provisioned")


class MachineState(NodeState, frozen=True, kw_only=True):
    """A Machine in the namespace of the control plane; `node` is its Node on the hosted side, empty if none exists."""

    namespace: str = ""
    node: str = ""


class HostedPoolState(PoolState, frozen=True, kw_only=True):
    """A NodePool. `version` is the earlier version of its nodes, `target` the requested one, empty if unknown.

    `asked` is false if the control plane has a newer release, and nobody has asked the pool to follow it.
    """

    uid_kind: ClassVar[str] = "np"
    member_uid_kind: ClassVar[str] = "machine"

    namespace: str = ""
    upgrade_type: str = ""
    version: str = ""
    target: str = ""
    asked: bool = True
    moving: bool = False
    stalled: bool = False

    @property
    def updater(self) -> str:
        """What drains the nodes, as the subject of a sentence."""
        return "The drain by Cluster API" if self.upgrade_type != IN_PLACE else "The drain by HyperShift"

    @property
    def is_control_plane(self) -> bool:
        """False: the control plane of a hosted cluster has no nodes."""
        return False

    @property
    def ref(self) -> ResourceRef:
        """The NodePool."""
        return ResourceRef(
            group=HYPERSHIFT_GROUP, resource="nodepools", name=self.name, namespace=self.namespace, cluster=MANAGEMENT
        )

    @property
    def assessment(self) -> str:
        """The pool's assessment as one word; Excluded if no update of the pool was requested."""
        if not self.asked and not self.moving:
            return states.EXCLUDED
        if self.is_complete and not self.moving:
            return states.COMPLETED
        if self.nodes and all(node.phase == states.UNKNOWN for node in self.nodes):
            return states.UNKNOWN
        if self.stalled:
            return "Stalled"
        return states.PROGRESSING if self.moving and self.is_complete else super().assessment

    def pool_insight(self, **fields: Any) -> NodePoolInsight:
        """Returns the insight of the pool, with its versions."""
        versions = None
        if self.version or self.target:
            before = self.version or terms.UNKNOWN_VERSION
            versions = Versions(
                previous=Version(version=before[: terms.VERSION_LIMIT]),
                target=Version(version=(self.target or terms.UNKNOWN_VERSION)[: terms.VERSION_LIMIT]),
            )
        return NodePoolInsight(**fields, upgrade_type=self.upgrade_type, versions=versions)

    def node_insight(self, node: NodeState, **fields: Any) -> MachineInsight:
        """Returns the insight of a Machine, with its Node."""
        own = node.node if isinstance(node, MachineState) else ""
        namespace = node.namespace if isinstance(node, MachineState) else ""
        return MachineInsight(
            resource=machine_ref(node.name, namespace),
            node_resource=ResourceRef(resource="nodes", name=own, cluster=HOSTED) if own else None,
            **fields,
        )


def machine_ref(name: str, namespace: str) -> ResourceRef:
    """Returns a reference to a Machine of Cluster API."""
    return ResourceRef(
        group="cluster.x-k8s.io", resource="machines", name=name, namespace=namespace, cluster=MANAGEMENT
    )


def is_paused(until: str, now: datetime) -> bool:
    """Returns whether `spec.pausedUntil` pauses an object at `now`: it is true, or a date in the future."""
    if until.lower() in ("", "false", "true"):
        return until.lower() == "true"
    try:
        return datetime.fromisoformat(until) > now
    except (ValueError, TypeError):
        # HyperShift ignores a value that is neither.
        return False


def pools_of(snapshot: HostedSnapshot, now: datetime) -> tuple[HostedPoolState, ...]:
    """Returns the state of each pool of the hosted cluster, by name."""
    cluster = snapshot.cluster
    versions = dict(_known_images(cluster))
    machines = readable(snapshot.machines)
    pools = (
        pool
        for pool in readable(snapshot.pools)
        if pool.spec.cluster_name == cluster.metadata.name and pool.metadata.namespace == cluster.metadata.namespace
    )
    return tuple(
        _pool_state(pool, machines, cluster, versions=versions, now=now)
        for pool in sorted(pools, key=lambda each: each.metadata.name)
    )


def _known_images(cluster: HostedCluster) -> Iterator[tuple[str, str]]:
    """Yields the image of each release that the HostedCluster names, with its version."""
    version = cluster.status.version
    for entry in version.history:
        yield entry.image, entry.version
    for release in (version.desired, *(version.available_updates or ())):
        yield release.image, release.version


def _pool_state(
    pool: HostedNodePool,
    machines: Iterable[ClusterMachine],
    cluster: HostedCluster,
    *,
    versions: dict[str, str],
    now: datetime,
) -> HostedPoolState:
    updating = find(pool.status.conditions, UPDATING_VERSION)
    moving = any(
        condition is not None and condition.status == "True"
        for condition in (updating, find(pool.status.conditions, UPDATING_CONFIG))
    )
    target = versions.get(pool.spec.release.image, "")
    if not target and updating is not None and updating.status == "True":
        # The message is the only place that names the version of a release that the HostedCluster does not list.
        match = _TARGET.search(updating.message)
        target = match[1] if match else ""
    elif not target and not moving:
        target = pool.status.version
    paused = is_paused(pool.spec.paused_until, now)
    in_place = pool.spec.management.upgrade_type == IN_PLACE
    key = f"{pool.metadata.namespace}/{pool.metadata.name}"
    own = [machine for machine in machines if machine.metadata.annotations.get(POOL_OF_MACHINE) == key]
    named = sorted(own, key=lambda machine: machine.metadata.name)
    nodes = tuple(_machine_state(machine, target, in_place=in_place, moving=moving, paused=paused) for machine in named)
    counts = states.count(nodes)
    if in_place and moving and updating is not None and (match := _UPGRADED.search(updating.message)):
        # Machines of a pool that is updated in place do not show which of them are done.
        total, done = int(match[1]), int(match[2])
        if total == len(nodes) and all(node.phase == states.UNKNOWN for node in nodes):
            counts = msgspec.structs.replace(counts, outdated=max(0, total - done), updated=done)
    control_plane = cluster.status.version.desired.version
    asked = not (order_of(target) and order_of(control_plane) and order_of(target) < order_of(control_plane))
    return HostedPoolState(
        name=pool.metadata.name,
        namespace=pool.metadata.namespace,
        paused=paused,
        nodes=nodes,
        began=updating.last_transition_time if updating is not None and updating.status == "True" else None,
        upgrade_type=pool.spec.management.upgrade_type,
        version=pool.status.version,
        target=target,
        asked=asked,
        moving=moving,
        **msgspec.structs.asdict(counts),
    )


def _machine_state(machine: ClusterMachine, target: str, *, in_place: bool, moving: bool, paused: bool) -> MachineState:
    """Returns the state of a Machine on its way to the release of its pool."""
    version = machine.metadata.annotations.get(RELEASE_OF_MACHINE) or machine.spec.version
    deleted = machine.metadata.deletion_timestamp
    if in_place and moving and not machine.metadata.annotations.get(RELEASE_OF_MACHINE):
        version = ""
    has_target = bool(order_of(version)) and order_of(version) == order_of(target)
    is_coming = machine.status.phase in _COMING
    message = ""
    if deleted is not None:
        draining = find(machine.status.conditions, "DrainingSucceeded")
        phase = states.DRAINING if draining is None or draining.status != "True" else states.UPDATING
        message = "Being deleted"
    elif not order_of(version) or not order_of(target):
        phase = states.UNKNOWN
    elif has_target:
        phase, message = (states.UPDATING, "Has no node yet") if is_coming else (states.UPDATED, "")
    else:
        phase = states.PAUSED if paused else states.PENDING
    failed = machine.status.phase == "Failed"
    assessment = states.BY_PHASE[phase][0] if phase in states.BY_PHASE else states.UNKNOWN
    return MachineState(
        name=machine.metadata.name,
        namespace=machine.metadata.namespace,
        node=machine.status.node_ref.name,
        version=version,
        phase=phase,
        assessment=states.DEGRADED if failed else assessment,
        estimate_s=0 if phase == states.UPDATED else None,
        message=message,
        updated=phase == states.UPDATED,
        updating=phase in (states.DRAINING, states.UPDATING),
        unavailable=failed or is_coming,
        degraded=failed,
        reason="",
        troubles=(),
        cordoned_at=deleted,
        desired=target,
    )
