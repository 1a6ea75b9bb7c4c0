"""The cluster has no room for the pods of a node that is drained.

Applies when what the pods of a pool's fullest nodes ask for (as many nodes as the pool takes down at once) is more,
in cpu or in memory, than all other nodes have left together. Nodes on which nothing may be scheduled (cordoned, not
ready, or with a taint NoSchedule or NoExecute) have nothing left. Pods of DaemonSets and of the node itself do not
move, and do not count. A cluster of one node is not drained.

Why it matters pods that fit nowhere stay Pending until the node is back; budgets then hold up the next node.

What to do add a node, or take load away; the risk is gone with the next look.

Accepting it means that some pods wait while each node is updated.

Source of the rule kubernetes, requests and allocatable; machine-config-operator, maxUnavailable. It is the mildest
reading: affinities, zones and volumes can only make it worse.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from runup.api.core_v1 import Node, PlacedPod
from runup.domain.checks.catalogue.declaring import declared, risk, unsure
from runup.domain.checks.catalogue.max_unavailable import allowed
from runup.domain.checks.catalogue.node_pools import pool_of
from runup.domain.checks.catalogue.of_last import of_last
from runup.domain.checks.catalogue.pods import ENDED, PODS, drained
from runup.domain.checks.catalogue.pools import READS, all_pools
from runup.domain.checks.catalogue.topology import control_plane, control_plane_first
from runup.domain.checks.catalogue.wording import count, names
from runup.domain.checks.model import Context, Finding, Snapshot
from runup.domain.conditions import status_of
from runup.lang.quantity import parse_quantity

NAME = "HeadroomShort"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
status: {machineCount: 2}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
status: {allocatable: {cpu: "4", memory: 16Gi}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}
status: {allocatable: {cpu: "4", memory: 16Gi}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big-0, namespace: shop}
spec: {nodeName: worker-0, containers: [{name: a, resources: {requests: {cpu: "3"}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: big-1, namespace: shop}
spec: {nodeName: worker-1, containers: [{name: a, resources: {requests: {cpu: "3"}}}]}
status: {phase: Running}
"""


@dataclass
class _Load:
    """Of a node: milli-cores and bytes that its pods ask for, and the part of it that a drain moves."""

    cpu: int = 0
    memory: int = 0
    moved_cpu: int = 0
    moved_memory: int = 0


_NOTHING = _Load()


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    nodes = control_plane_first(snapshot.all(Node))
    if len(nodes) < 2 or control_plane(snapshot) == "SingleReplica":
        return
    silent = [node for node in nodes if not {"cpu", "memory"} <= node.status.allocatable.keys()]
    if silent:
        why = f"{count(len(silent), 'node')} ({names([n.metadata.name for n in silent])}) report nothing allocatable"
        yield unsure(NAME, why, silent, fix="See whether the kubelet runs there: `oc describe node NAME`.")
        return
    pools = all_pools(snapshot)
    loads = _loads(snapshot.listed(PODS))
    room = {node.metadata.name: _room(node, loads) for node in nodes if _takes_pods(node)}
    members: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        members[pool_of(node, pools)].append(node)
    for pool in sorted(pools, key=lambda each: each.metadata.name):
        yield from _judge(pool.metadata.name, members[pool.metadata.name], loads, room, allowed(pool))


@of_last
def _loads(pods: tuple[PlacedPod, ...]) -> Mapping[str, _Load]:
    loads: dict[str, _Load] = defaultdict(_Load)
    for pod in pods:
        if not pod.spec.node_name or pod.status.phase in ENDED:
            continue
        load = loads[pod.spec.node_name]
        load.cpu += pod.cpu_milli
        load.memory += pod.memory_bytes
        if drained(pod):
            load.moved_cpu += pod.cpu_milli
            load.moved_memory += pod.memory_bytes
    return dict(loads)


def _judge(
    pool: str, members: Sequence[Node], loads: Mapping[str, _Load], room: Mapping[str, _Load], at_once: int
) -> Iterator[Finding]:
    for what, unit in (("cpu", "milli-cores"), ("memory", "bytes")):
        moved = {node.metadata.name: _of(loads, node, f"moved_{what}") for node in members}
        fullest = sorted(members, key=lambda node: -moved[node.metadata.name])[:at_once]
        wanted = sum(moved[node.metadata.name] for node in fullest)
        left = sum(getattr(each, what) for each in room.values()) - sum(_of(room, node, what) for node in fullest)
        if wanted > left:
            yield risk(
                f"{NAME}-{pool}",
                f"When {names([node.metadata.name for node in fullest])} of machine config pool {pool} "
                f"{'is' if len(fullest) == 1 else 'are'} drained, its pods ask for {wanted} {unit} of {what}, and all "
                f"other nodes have {left} left.",
                fullest,
                fix="Add a node or take load away first; `oc adm top nodes` and `oc describe node NAME` show "
                "what is asked.",
            )


def _of(loads: Mapping[str, _Load], node: Node, what: str) -> int:
    return getattr(loads.get(node.metadata.name, _NOTHING), what)  # type: ignore[no-any-return]


def _room(node: Node, loads: Mapping[str, _Load]) -> _Load:
    """What the node has left of each."""
    return _Load(
        cpu=max(0, _allocatable(node, "cpu") - _of(loads, node, "cpu")),
        memory=max(0, _allocatable(node, "memory") - _of(loads, node, "memory")),
    )


def _takes_pods(node: Node) -> bool:
    if node.spec.unschedulable or status_of(node.status.conditions, "Ready") not in ("True", None):
        return False
    return not any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.spec.taints)


def _allocatable(node: Node, what: str) -> int:
    return int(_amount(node.status.allocatable[what]) * (1000 if what == "cpu" else 1))


# Nodes are of a few sizes.
_amount = lru_cache(4096)(parse_quantity)


CHECK = declared(__doc__, NAME, "machine-config", (Node, PODS, *READS), _run, example=EXAMPLE)
