"""Nodes that are not ready, and nodes on which nothing may be scheduled: both take away the room that a drain needs.

One risk for all nodes of a kind, with the nodes as its resources: administrators accept a state, not a list that
changes while they read it. Which node must be released by hand and which must not be is said by name, because the
machine-config operator cordons nodes too, and releases them itself (pkg/daemon and pkg/controller/drain)."""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import count
from runup.api.platform_v1 import NodeMaintenance
from runup.checks.catalogue.shared.result_cache import cache_each
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.wording import names
from runup.checks.writing import (
    DEFINITIONS,
    Applies,
    Context,
    Findings,
    Snapshot,
    Unreadable,
    declared,
    names_of,
    risk,
    since_suffix,
)
from runup.rules.holders import Holder, cordon_holder
from runup.rules.machine_config import is_cordoned_by_update, is_stuck
from runup.rules.node_groups import is_control_plane

NOT_READY = "NodeNotReady"
CORDONED = "NodeCordoned"
UNKNOWN = "NodeHealthUnknown"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields the findings of nodes that are not ready, and by who cordoned nodes: that says who may release them."""
    nodes = control_plane_first(snapshot.all(Node))
    ready = list(zip(nodes, _ready_condition(nodes, ()), strict=True))
    silent = [node for node, condition in ready if condition is None]
    broken = [(node, condition) for node, condition in ready if condition is not None and condition.status != "True"]
    if broken:
        not_ready = [node for node, _ in broken]
        reasons = names(sorted({condition.reason or f"Ready={condition.status}" for _, condition in broken}))
        times = [condition.last_transition_time for _, condition in broken if condition.last_transition_time]
        yield risk(
            NOT_READY,
            f"{_nodes_are(not_ready)} not ready: {reasons}{since_suffix(min(times, default=None))}.",
            not_ready,
            # The update takes the nodes of the control plane down one by one: with another one away already, etcd has
            # no quorum.
            severity="critical" if any(map(is_control_plane, not_ready)) else "warning",
            fix="Bring the nodes back or remove them; `oc describe node NAME` shows why the kubelet is not ready.",
        )
    if silent:
        yield risk(
            UNKNOWN,
            f"Whether {count(len(silent), 'node')} ({names_of(silent)}) can run pods is unknown: not reported.",
            silent,
            fix="See whether the kubelet runs on them; it reports the Ready condition.",
            applies=Applies.UNKNOWN,
        )
    cordoned = [node for node in nodes if node.spec.unschedulable]
    updating = [node for node in cordoned if is_cordoned_by_update(node)]
    stuck = [node for node in updating if is_stuck(node)]
    going = [node for node in updating if not is_stuck(node)]
    others = [(node, cordon_holder(node)) for node in cordoned if not is_cordoned_by_update(node)]
    by_hand = [node for node, holder in others if holder is None]
    # Nodes that an administrator has to fix come first.
    if by_hand:
        yield risk(
            CORDONED,
            f"{_nodes_are(by_hand)} cordoned: nothing can be scheduled there when other nodes are drained.",
            by_hand,
            fix=f"Release {names_of(by_hand)} with `oc adm uncordon NAME`, or remove what is not to come back.",
        )
    for holder in dict.fromkeys(holder for _, holder in others if holder is not None):
        held = [node for node, its_holder in others if its_holder == holder]
        yield risk(
            CORDONED,
            f"{_nodes_are(held)} cordoned by {holder.name}: no pod of a drained node can move there.",
            held,
            fix=_remedy(snapshot, holder, held),
        )
    if stuck:
        yield risk(
            CORDONED,
            f"{_nodes_are(stuck)} cordoned by the update of a machine config pool, which is stuck there.",
            stuck,
            fix=f"Do not uncordon {names_of(stuck)}: repair what `oc describe node NAME` says in the annotation "
            "machineconfiguration.openshift.io/reason; the machine-config operator releases them when it gets on.",
        )
    if going:
        yield risk(
            CORDONED,
            f"{_nodes_are(going)} cordoned by the update of a machine config pool.",
            going,
            fix=f"Do not uncordon {names_of(going)}: the machine-config operator does when the update has passed.",
        )


def _remedy(snapshot: Snapshot, holder: Holder, nodes: Sequence[Node]) -> str:
    """Returns the remedy of a holder, with the commands for its requests if they can be read."""
    if holder.kind != "NodeMaintenance":
        return holder.remedy
    held = {node.metadata.name for node in nodes}
    try:
        requests = [each.metadata.name for each in snapshot.all_or_none(NodeMaintenance) if each.spec.node_name in held]
    except Unreadable:
        return holder.remedy
    if not requests:
        return holder.remedy
    return (
        f"Run `oc delete nodemaintenance {' '.join(sorted(requests))}` when the work is done. "
        "Do not uncordon the node: the operator keeps its taint."
    )


@cache_each
def _ready_condition(node: Node, _: tuple[()]) -> Condition | None:
    return find(node.status.conditions, "Ready")


def _nodes_are(nodes: Sequence[Node]) -> str:
    return f"{count(len(nodes), 'node')} ({names_of(nodes)}) {'is' if len(nodes) == 1 else 'are'}"


CHECK = declared(
    run,
    "NodeHealth",
    "machine-config",
    reads=(Node, NodeMaintenance, DEFINITIONS),
    by_hand=True,
    rank=90,
    severity="critical",
)
