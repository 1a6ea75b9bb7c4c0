"""Computes the progress of each group of nodes, and the state of its nodes.

A node is updated when its kubelet has the version of its group's target. The target is what the object says that
updates the group (a MachineDeployment, a Plan), else the version of the API servers. Services such as EKS choose the
patch of their nodes themselves, so that there the minor version counts, or the newest version that a group already has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.rules.eviction_rules import needs_eviction
from kubekit.rules.node_rules import CORDON
from kubekit.rules.version_skew import order_of
from runup.api.rollouts_v1 import Plan
from runup.api.update_v1alpha1 import ResourceRef
from runup.rules import machine_config
from runup.rules.distributions import Distribution, distribution_of
from runup.rules.holders import cordon_holder
from runup.rules.node_groups import (
    CONTROL_PLANE,
    DISRUPTED,
    WORKERS,
    is_control_plane,
    is_leaving,
    machine_deployment,
    nodes_by_group,
)
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.kubernetes.snapshot import (
    ApiServer,
    KubernetesSnapshot,
    api_servers,
    kubeadm_version,
)
from runup.updatestatus.decide.nodes import NodeState, PoolState
from runup.updatestatus.decide.snapshot import readable

# Services that choose the patch of their nodes themselves.
SERVICES = frozenset({"EKS", "GKE", "AKS"})
# A node that is added to a group within this time shows that the group is being replaced.
_RECENT = timedelta(hours=1)
# Nodes that became ready further apart were not updated in one go.
_ONE_UPDATE = timedelta(days=1)
_KARPENTER = "karpenter.sh/nodepool"


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """The API servers, and the version that they are being updated to, empty if it is not known."""

    servers: tuple[ApiServer, ...]
    target: str
    distribution: Distribution

    @property
    def outdated(self) -> tuple[ApiServer, ...]:
        """The API servers that do not have the target's version."""
        return tuple(server for server in self.servers if order_of(server.version) < order_of(self.target))

    @property
    def in_place(self) -> bool:
        """True if nodes run the release of the API server once they are updated."""
        return self.distribution.name not in SERVICES


class GroupState(PoolState, frozen=True, kw_only=True):
    """A group of nodes that are updated together.

    `target` is the version that its nodes should have, `node_s` the seconds between its nodes so far, None if fewer
    than two are updated. `group` and `plural` name the kind of the object that updates it.
    """

    of_control_plane: bool = False
    target: str = ""
    node_s: int | None = None
    stalled: bool = False
    group: str = ""
    plural: str = "nodes"

    @property
    def is_control_plane(self) -> bool:
        """True for the nodes of the control plane."""
        return self.of_control_plane

    @property
    def ref(self) -> ResourceRef:
        """The object that updates the nodes; `nodes` and the group's name where it does not exist."""
        return ResourceRef(group=self.group, resource=self.plural, name=self.name)

    @property
    def client(self) -> str:
        """The program in which remedies are typed."""
        return "kubectl"

    @property
    def updater(self) -> str:
        """What drains and updates the nodes, as the subject of a sentence."""
        return "The drain"

    def log_of(self, node: str) -> str:
        """Returns a sentence about where to follow the update of the node."""
        return f"See `kubectl describe node {node}`, and the log of the kubelet on the node."

    def prune_of(self, node: str) -> str:  # noqa: ARG002 -- its siblings name the node
        """Returns how images that no container uses are deleted on a node."""
        return "`crictl rmi --prune` on the node"

    @property
    def assessment(self) -> str:
        """The group's assessment, in one word."""
        if self.nodes and all(node.phase == states.UNKNOWN for node in self.nodes):
            return states.UNKNOWN
        return "Stalled" if self.stalled and not self.is_complete else super().assessment

    @property
    def is_under_way(self) -> bool:
        """True if a node is being updated, or some are updated and others are not."""
        return not self.is_complete and (self.done > 0 or any(node.updating for node in self.nodes))


def control_plane_of(snapshot: KubernetesSnapshot) -> ControlPlane:
    """Returns the API servers and their target: the newest version of any, or what kubeadm or a Plan says."""
    distribution = distribution_of(readable(snapshot.nodes))
    servers = api_servers(snapshot, in_kubelet=distribution.name == "k3s")
    known = [server.version for server in servers]
    if known and (declared := kubeadm_version(snapshot.kubeadm_config)):
        known.append(declared)
    target = max(filter(order_of, known), key=order_of, default="")
    return ControlPlane(servers=servers, target=target, distribution=distribution)


def assess_groups(snapshot: KubernetesSnapshot, plane: ControlPlane, now: datetime) -> tuple[GroupState, ...]:
    """Returns the state of each group of nodes, the control plane's first."""
    nodes, pods = readable(snapshot.nodes), snapshot.draining_pods
    evicted: set[str] | None = None
    if isinstance(pods, tuple):
        evicted = {pod.spec.node_name for pod in pods if _is_waited_for(pod)}
    members = nodes_by_group(nodes)
    order = sorted(members, key=lambda name: (name != CONTROL_PLANE, name == WORKERS, name))
    names = _names_of(order)
    return tuple(_group_state(names[name], members[name], snapshot, plane, now=now, evicted=evicted) for name in order)


def _is_waited_for(pod: Pod) -> bool:
    return needs_eviction(pod.status.phase, pod.metadata.owner_references, pod.metadata.annotations)


def _names_of(groups: Iterable[str]) -> dict[str, str]:
    """Returns a name for each group that is valid for a pool, which a label's value may not be."""
    names: dict[str, str] = {}
    for group in groups:
        kept = "".join(char if char.isascii() and (char.isalnum() or char in "-.") else "-" for char in group.lower())
        name = ".".join(filter(None, (part.strip("-") for part in kept.split(".")))) or "nodes"
        while name in names.values():
            name += "-x"
        names[group] = name
    return names


def _group_state(
    name: str,
    members: Sequence[Node],
    snapshot: KubernetesSnapshot,
    plane: ControlPlane,
    *,
    now: datetime,
    evicted: set[str] | None,
) -> GroupState:
    target, paused = _declared(members, snapshot)
    target = target or _target_of(members, plane, now)
    applying = {node for plan in readable(snapshot.plans) for node in plan.status.applying}
    deleted = {
        machine.status.node_ref.name
        for machine in readable(snapshot.machines)
        if machine.metadata.deletion_timestamp is not None
    }
    drifted = {
        claim.status.node_name: drift.reason
        for claim in readable(snapshot.node_claims)
        if (drift := find(claim.status.conditions, "Drifted")) is not None and drift.status == "True"
    }
    done = [node for node in members if _has(node, target) and node.metadata.name not in drifted]
    began = _began(members, done)
    some_left = len(done) < len(members)
    node_states = [
        _node_state(
            node,
            target,
            left=some_left,
            paused=paused,
            busy=node.metadata.name in applying | deleted,
            drifted=drifted.get(node.metadata.name),
            drained=evicted is not None
            and node.metadata.name not in evicted
            and (snapshot.drains_read is None or node.metadata.name in snapshot.drains_read),
            now=now,
        )
        for node in members
    ]
    node_s = _seconds_between([node.ready_since for node in node_states if node.updated], began)
    node_states = [
        msgspec.structs.replace(node, estimate_s=0 if node.phase == states.UPDATED else node_s) for node in node_states
    ]
    first = members[0]
    group, plural = "", "nodes"
    if first.metadata.labels.get(_KARPENTER):
        group, plural = "karpenter.sh", "nodepools"
    elif machine_deployment(first) and not is_control_plane(first):
        group, plural = "cluster.x-k8s.io", "machinedeployments"
    return GroupState(
        name=name,
        paused=paused,
        nodes=tuple(node_states),
        began=began,
        of_control_plane=is_control_plane(first),
        target=target,
        node_s=node_s,
        group=group,
        plural=plural,
        **msgspec.structs.asdict(states.count(node_states)),
    )


def _has(node: Node, target: str) -> bool:
    version = order_of(node.status.node_info.kubelet_version)
    return bool(version and target) and version >= order_of(target)


def _declared(members: Sequence[Node], snapshot: KubernetesSnapshot) -> tuple[str, bool]:
    """Returns the version that an object says the group should have, empty if none does, and whether it is paused."""
    deployment = machine_deployment(members[0])
    for each in readable(snapshot.machine_deployments):
        if deployment and each.metadata.name == deployment:
            return each.spec.template.spec.version, each.spec.paused
    plans = [plan for plan in readable(snapshot.plans) if all(_is_of(plan, node) for node in members)]
    versions = [version for plan in plans if order_of(version := plan.spec.version or plan.status.latest_version)]
    newest = max(versions, key=order_of, default="")
    return newest, bool(plans) and all(plan.spec.concurrency == 0 for plan in plans)


def _is_of(plan: Plan, node: Node) -> bool:
    return plan.spec.node_selector is not None and plan.spec.node_selector.matches(node.metadata.labels)


def _target_of(members: Sequence[Node], plane: ControlPlane, now: datetime) -> str:
    versions = [node.status.node_info.kubelet_version for node in members]
    newest = max(filter(order_of, versions), key=order_of, default="")
    if plane.in_place:
        return plane.target or newest
    minors = {order_of(version)[:2] for version in versions if order_of(version)}
    is_mixed = len({order_of(version) for version in versions if order_of(version)}) > 1
    is_replaced = any(is_leaving(node) or _is_recent(node, newest, now) for node in members)
    if len(minors) > 1 or (is_mixed and is_replaced):
        return newest
    server = order_of(plane.target)
    return f"v{server[0]}.{server[1]}" if server else newest


def _is_recent(node: Node, version: str, now: datetime) -> bool:
    """Returns whether a node with this version was added to its group a short time ago."""
    created = node.metadata.creation_timestamp
    return node.status.node_info.kubelet_version == version and created is not None and now - created < _RECENT


def _began(members: Sequence[Node], done: Sequence[Node]) -> datetime | None:
    """Returns when the first node of the present update moved, None if none is known to have."""
    moments = [moment for node in done if (moment := _ready_since(node))]
    moments += [moment for node in members if is_leaving(node) and (moment := _cordoned_at(node))]
    began: datetime | None = None
    for moment in sorted(moments, reverse=True):
        if began is not None and began - moment > _ONE_UPDATE:
            break
        began = moment
    return began


def _ready_since(node: Node) -> datetime | None:
    ready = find(node.status.conditions, "Ready")
    return ready.last_transition_time if ready is not None else None


def _cordoned_at(node: Node) -> datetime | None:
    times = (taint.time_added for taint in node.spec.taints if taint.key == CORDON.key or taint.key in DISRUPTED)
    return next((moment for moment in times if moment is not None), node.metadata.deletion_timestamp)


def _seconds_between(moments: Iterable[datetime | None], began: datetime | None) -> int | None:
    """Returns the usual time between nodes that were updated one after another; None if fewer than two were."""
    known = sorted(moment for moment in moments if moment is not None and began is not None and moment >= began)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(known)]
    return round(median(gaps)) if gaps else None


def _node_state(
    node: Node,
    target: str,
    *,
    left: bool,
    paused: bool,
    busy: bool,
    drifted: str | None,
    drained: bool,
    now: datetime,
) -> NodeState:
    """Returns the state of a node; `left`: its group has nodes to update, `busy`: something says that it works on it.

    `drained` is true if no pod is left that a drain waits for. `drifted` is the reason why Karpenter is going to
    replace the node, None if it is not.
    """
    version = node.status.node_info.kubelet_version
    ready, cordoned_at = find(node.status.conditions, "Ready"), _cordoned_at(node)
    ready_since = ready.last_transition_time if ready is not None else None
    is_ready = ready is None or ready.status == "True"
    has_version, holder = _has(node, target) and drifted is None, cordon_holder(node)
    of_update = is_leaving(node) and (holder is None or any(t.key in DISRUPTED for t in node.spec.taints))
    phase, message = states.PAUSED if paused else states.PENDING, f"Drifted: {drifted}" if drifted else ""
    if not order_of(version) or not target:
        phase = states.UNKNOWN
    elif has_version:
        phase = states.UPDATED
        # It was drained and came back with the version, and nobody has released it yet.
        came_back = cordoned_at is None or (ready_since is not None and cordoned_at <= ready_since)
        recent = ready_since is not None and now - ready_since < _ONE_UPDATE
        if not is_ready and (left or busy):
            phase = states.REBOOTING
        elif of_update and (left or (cordoned_at is not None and came_back and recent)):
            phase, message = states.UPDATING, "Has the version and is still cordoned"
    elif of_update:
        phase = states.UPDATING if drained else states.DRAINING
    elif not is_ready and left:
        phase = states.REBOOTING
    elif busy:
        phase = states.UPDATING
    troubles = machine_config.troubles_of(node)
    updating = phase in (states.DRAINING, states.UPDATING, states.REBOOTING)
    pressed = next((c for c in node.status.conditions if c.status == "True" and c.type in states.PRESSURES), None)
    assessment = states.BY_PHASE[phase][0] if phase in states.BY_PHASE else states.UNKNOWN
    if troubles and not updating:
        assessment, message = states.UNAVAILABLE, " | ".join(trouble.reason for trouble in troubles)
    return NodeState(
        name=node.metadata.name,
        version=version,
        phase=phase,
        assessment=assessment,
        estimate_s=None,
        message=message,
        updated=phase == states.UPDATED,
        updating=updating,
        unavailable=bool(troubles),
        degraded=False,
        reason="",
        troubles=tuple(troubles),
        drain_begun=cordoned_at if phase == states.DRAINING else None,
        cordoned_at=cordoned_at,
        ready=ready.status if ready is not None else "",
        ready_since=ready_since,
        ready_text=": ".join(text for text in (ready.reason, ready.message) if text) if ready is not None else "",
        desired=target,
        takes_place=bool(troubles),
        held=holder.remedy if holder is not None and node.spec.unschedulable else "",
        pressure=pressed.type if pressed is not None else "",
        pressed_since=pressed.last_transition_time if pressed is not None else None,
    )


def remaining_s(groups: Sequence[GroupState]) -> int | None:
    """Returns the seconds that the nodes still take, by the nodes so far; None if none shows how long one takes."""
    known = [group.node_s for group in groups if group.node_s is not None]
    if not known:
        return None
    return sum(
        group.outdated * (group.node_s if group.node_s is not None else round(median(known))) for group in groups
    )


def movements(groups: Iterable[GroupState], plane: ControlPlane, snapshot: KubernetesSnapshot) -> list[datetime]:
    """Returns the times at which something of the cluster is known to have moved."""
    claims = readable(snapshot.node_claims)
    made: tuple[Object, ...] = (
        *readable(snapshot.nodes), *readable(snapshot.machines), *readable(snapshot.jobs), *claims,
    )  # fmt: skip
    moments = [moment for group in groups for node in group.nodes for moment in (node.ready_since, node.cordoned_at)]
    moments += [server.since for server in plane.servers]
    moments += [moment for obj in made for moment in (obj.metadata.creation_timestamp, obj.metadata.deletion_timestamp)]
    moments += [
        each.last_transition_time for claim in readable(snapshot.node_claims) for each in claim.status.conditions
    ]
    return [moment for moment in moments if moment is not None]
