"""Nodes that are not ready, and nodes on which nothing may be scheduled: both take away the room that a drain needs.

One risk for all nodes of a kind, with the nodes as its resources: administrators accept a state, not a list that
changes while they read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runup.api.core_v1 import Node
from runup.api.meta_v1 import Condition
from runup.api.scheme import resource_of
from runup.domain.checks.catalogue.wording import at, count, names, resource
from runup.domain.checks.model import Applies, Check, Context, Finding, Snapshot
from runup.domain.conditions import find

NOT_READY = "NodeNotReady"
CORDONED = "NodeCordoned"
# What the machine-config daemon writes on a node that it is updating.
STATE = "machineconfiguration.openshift.io/state"
DESIRED_DRAIN = "machineconfiguration.openshift.io/desiredDrain"


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    nodes = sorted(snapshot.all(Node), key=lambda node: node.metadata.name)
    yield from _not_ready(nodes)
    yield from _cordoned(nodes)


def _not_ready(nodes: Sequence[Node]) -> Iterator[Finding]:
    ready = {node.metadata.name: find(node.status.conditions, "Ready") for node in nodes}
    silent = [node for node in nodes if ready[node.metadata.name] is None]
    broken = [(node, found) for node in nodes if (found := ready[node.metadata.name]) and found.status != "True"]
    if broken:
        nodes_broken = [node for node, _ in broken]
        reasons = _reasons([found for _, found in broken])
        earliest = min((found.last_transition_time for _, found in broken if found.last_transition_time), default=None)
        yield _finding(
            NOT_READY,
            f"{_are(nodes_broken)} not ready{at(earliest)}: {reasons}.",
            nodes_broken,
            "Bring the nodes back or remove them; `oc describe node NAME` shows why the kubelet is not ready.",
        )
    if silent:
        yield _finding(
            NOT_READY,
            f"Whether {count(len(silent), 'node')} ({_listed(silent)}) can run pods could not be told: not reported.",
            silent,
            "See whether the kubelet runs on them; it reports the Ready condition.",
            Applies.UNKNOWN,
        )


def _cordoned(nodes: Sequence[Node]) -> Iterator[Finding]:
    cordoned = [node for node in nodes if node.spec.unschedulable]
    if not cordoned:
        return
    updating = sum(_by_an_update(node) for node in cordoned)
    why = f", {updating} of them by the update of a machine config pool" if updating else ""
    yield _finding(
        CORDONED,
        f"{_are(cordoned)} cordoned{why}: nothing can be scheduled there when other nodes are drained.",
        cordoned,
        "Let the pool's update finish first."
        if updating == len(cordoned)
        else "Release them with `oc adm uncordon NAME`, or remove them if they are not to come back.",
    )


def _by_an_update(node: Node) -> bool:
    annotations = node.metadata.annotations
    return annotations.get(STATE) == "Working" or annotations.get(DESIRED_DRAIN, "").startswith("drain-")


def _are(nodes: Sequence[Node]) -> str:
    return f"{count(len(nodes), 'node')} ({_listed(nodes)}) {'is' if len(nodes) == 1 else 'are'}"


def _listed(nodes: Sequence[Node]) -> str:
    return names([node.metadata.name for node in nodes])


def _reasons(conditions: Sequence[Condition]) -> str:
    return names(sorted({condition.reason or f"Ready={condition.status}" for condition in conditions}))


def _finding(
    risk: str, message: str, nodes: Sequence[Node], remediation: str, applies: Applies = Applies.YES
) -> Finding:
    return Finding(
        risk, message, applies, reason=risk, resources=tuple(resource(node) for node in nodes), remediation=remediation
    )


CHECK = Check("NodeHealth", "machine-config", (resource_of(Node),), _run, unknown_risk="NodeHealthUnknown")
