"""The cluster has no capacity for the pods of a drained node.

Applies when what the pods of a pool's fullest nodes ask for (as many nodes as the pool takes down at once) is more,
in cpu or in memory, than all other nodes have left together. Nodes on which these pods cannot be scheduled (cordoned,
not ready, of Windows, or with a taint NoSchedule or NoExecute that the drained nodes do not have) have nothing left.
Pods of DaemonSets and of the node itself do not move, and do not count. A cluster of one node is not drained.

Why it matters: pods that fit nowhere stay Pending until the node is back; budgets then hold up the next node.

Remedy: add a node or reduce the load; the risk disappears with the next evaluation.

Accepting it means that some pods wait while each node is updated.

Source of the rule: kubernetes, requests and allocatable; machine-config-operator, maxUnavailable. It is the mildest
reading: affinities, zones and volumes can only make it worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import attrgetter

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.api.pod_parts import PlacedPod
from kubekit.rules.eviction_rules import ENDED
from kubekit.rules.node_rules import is_windows, takes_pods
from kubekit.rules.pod_requests import whole_number
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools, pools_of_nodes
from runup.checks.catalogue.shared import topology
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_node, quantity_or_none
from runup.checks.catalogue.shared.result_cache import cache_each, cache_groups
from runup.checks.catalogue.shared.topology import Repelling
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names_of, resource_of, risk, unknown
from runup.rules.machine_config import allowed_unavailable, nodes_by_pool
from runup.rules.node_groups import nodes_by_group

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


class _Load(msgspec.Struct):
    """The requests of a node's pods (milli-cores and bytes), and the part of them that a drain moves."""

    cpu: int = 0
    memory: int = 0
    moved_cpu: int = 0
    moved_memory: int = 0


_NOTHING = _Load()
_Capacity = tuple[_Load, Repelling]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each group of nodes whose pods would not fit elsewhere while one node is drained."""
    nodes = topology.control_plane_first(snapshot.all(Node))
    # Without a second node there is nowhere to move pods to, and a single-node control plane is not drained.
    if len(nodes) < 2 or topology.control_plane(snapshot) == "SingleReplica":
        return
    silent = [node for node in nodes if _is_silent(node)]
    if silent:
        why = f"{count(len(silent), 'node')} ({names_of(silent)}) report nothing allocatable"
        yield unknown(NAME, why, silent, fix="See whether the kubelet runs there: `oc describe node NAME`.")
        return
    if context.cluster is ClusterKind.KUBERNETES:
        groups = [("node group", name, members, 1) for name, members in sorted(nodes_by_group(nodes).items())]
    else:
        pools = all_pools(snapshot)
        members_by_pool = nodes_by_pool(nodes, pools_of_nodes(nodes, pools))
        groups = [
            ("machine config pool", name, members_by_pool.get(name, []), allowed_unavailable(pool))
            for name, pool in sorted({pool.metadata.name: pool for pool in pools}.items())
        ]
    # A node that is not in the list may have room, and a pool that is not in it may have the node.
    snapshot.require_all(resource_of(Node))
    if context.cluster is not ClusterKind.KUBERNETES:
        snapshot.require_all(resource_of(MachineConfigPool))
    loads = _requested_load(pods_by_node(snapshot.listed(PODS)))
    room = _Room(nodes, loads)
    for owner, name, members, at_once in groups:
        loaded_nodes = [(loads.get(node.metadata.name, _NOTHING), node) for node in members]
        for resource_name, unit in (("cpu", "milli-cores"), ("memory", "bytes")):
            moved, has = attrgetter(f"moved_{resource_name}"), attrgetter(resource_name)
            fullest = nsmallest(at_once, loaded_nodes, key=lambda loaded_node: -moved(loaded_node[0]))
            requested = sum(moved(load) for load, _ in fullest)
            drained = [node for _, node in fullest]
            taints: Repelling = frozenset[tuple[str, str, str]]().union(*map(topology.repelling_taints, drained))
            # Room on the drained nodes themselves does not help their pods.
            own = _free_capacity(drained, map(_capacity, drained), loads, taints)
            free = has(room.for_pods_that_tolerate(taints)) - has(own)
            if requested > free:
                yield risk(
                    f"{NAME}-{name}",
                    f"When {names_of(drained)} of {owner} {name} {'is' if len(drained) == 1 else 'are'} drained, its "
                    f"pods ask for {requested} {unit} of {resource_name}, and all other nodes have {free} left.",
                    drained,
                    fix="Add a node or take load away first; `oc adm top nodes` and `oc describe node NAME` show "
                    "what is asked.",
                )


def _is_silent(node: Node) -> bool:
    """Returns whether what the node has for pods is not known."""
    quantities = [node.status.allocatable.get(name, "") for name in ("cpu", "memory")]
    return not all(quantities) or (_counts(node) and None in map(quantity_or_none, quantities))


def _counts(node: Node) -> bool:
    """Returns whether more pods may be placed on the node."""
    return takes_pods(node) and not is_windows(node.metadata.labels)


class _Room:
    """Room that nodes have left for pods that tolerate some taints; few nodes have any, so few sums are needed."""

    def __init__(self, nodes: tuple[Node, ...], loads: Mapping[str, _Load]) -> None:
        self._nodes, self._capacities, self._loads = nodes, _capacities(nodes, ()), loads
        self._left: dict[Repelling, _Load] = {}

    def for_pods_that_tolerate(self, taints: Repelling) -> _Load:
        """Returns what all nodes without other taints have left, together."""
        if taints not in self._left:
            self._left[taints] = _free_capacity(self._nodes, self._capacities, self._loads, taints)
        return self._left[taints]


@cache_groups
def _requested_load(pods: Sequence[PlacedPod]) -> _Load:
    """Returns what the running pods request together, and how much of it has to move in a drain."""
    cpu = memory = moved_cpu = moved_memory = 0
    for pod in pods:
        if pod.status.phase in ENDED:
            continue
        demands = pod.demands
        cpu += demands.cpu_milli
        memory += demands.memory_bytes
        if is_drained(pod):
            moved_cpu += demands.cpu_milli
            moved_memory += demands.memory_bytes
    return _Load(cpu, memory, moved_cpu, moved_memory)


def _free_capacity(
    nodes: Iterable[Node],
    capacities: Iterable[_Capacity | None],
    loads: Mapping[str, _Load],
    taints: Repelling,
) -> _Load:
    """Returns the CPU and memory that the nodes without other taints have left, together."""
    room = _Load()
    for node, capacity in zip(nodes, capacities, strict=True):
        if capacity is None or not capacity[1] <= taints:
            continue
        load = loads.get(node.metadata.name, _NOTHING)
        # Inline, as there are thousands of nodes; one with more load than capacity takes nothing from the others.
        if capacity[0].cpu > load.cpu:
            room.cpu += capacity[0].cpu - load.cpu
        if capacity[0].memory > load.memory:
            room.memory += capacity[0].memory - load.memory
    return room


def _capacity(node: Node) -> _Capacity | None:
    """Returns what the node has for pods, with its taints, or None if no more may be placed there."""
    if not _counts(node):
        return None
    allocatable = node.status.allocatable
    load = _Load(*(whole_number(resource, allocatable[resource]) for resource in ("cpu", "memory")))
    return load, topology.repelling_taints(node)


@cache_each
def _capacities(node: Node, _: tuple[()]) -> _Capacity | None:
    return _capacity(node)


CHECK = declared(run, NAME, "machine-config", reads=(Node, PODS, *READS), rank=520, clusters="both")
