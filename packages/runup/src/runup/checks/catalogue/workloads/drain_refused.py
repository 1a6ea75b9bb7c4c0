"""Pods cannot be evicted, so a drain of their nodes would not finish.

Applies when a pod that a drain of its node would evict has no owner that brings it back, is under more than one
PodDisruptionBudget, or is under one that never allows an eviction. Each node is evaluated with all its pods and budgets
together. A cluster of one node is not drained. Each group of nodes that are updated together is one risk.

Why it matters: `oc adm drain` refuses a pod without an owner unless it is given `--force`, and retries without end if
the API server refuses the eviction. The node is not updated until an administrator intervenes, or until a managed
service reaches its time limit and deletes the pod.

Remedy: for each pod that is named: give it a Deployment, StatefulSet or Job, or delete it; leave it one budget; let
that budget allow one disruption. `oc adm drain NODE --dry-run=server` tries it.

Accepting it is right where these pods may be deleted when the time limit is over.

Source of the rule: kubectl, `pkg/drain` (unreplicated pods); kubernetes, `pkg/registry/core/pod/storage` (an eviction
of a pod with several budgets is refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.core_v1 import Node
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import covering_budgets, is_of_virtual_machine
from kubekit.rules.owners import controller_of
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_node
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.catalogue.workloads.drain_blocked import never_allows
from runup.checks.catalogue.workloads.shared.budgets import sorted_budgets
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, risk
from runup.rules.node_groups import nodes_by_group

NAME = "NodeDrainRefused"
# Nodes, and pods of a node, that a message names.
_MAX_NAMED = 3
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: shop, generation: 1}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: db}}}
status: {observedGeneration: 1, expectedPods: 1, currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0}
---
apiVersion: v1
kind: Pod
metadata:
  name: db-0
  namespace: shop
  labels: {app: db}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: "1", controller: true}]
spec: {nodeName: worker-0}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: debug, namespace: shop}
spec: {nodeName: worker-0}
status: {phase: Running}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a finding for each group of nodes with pods that `kubectl drain` refuses to evict without a flag."""
    nodes = control_plane_first(snapshot.all(Node))
    if len(nodes) < 2:
        return
    budgets: dict[str, list[PodDisruptionBudget]] = {}
    for pdb in sorted_budgets(snapshot.all(PodDisruptionBudget)):
        if not is_of_virtual_machine(pdb):
            budgets.setdefault(pdb.metadata.namespace, []).append(pdb)
    pods = pods_by_node(snapshot.listed(PODS))
    for group, members in sorted(nodes_by_group(nodes).items()):
        held_nodes, texts = [], []
        for node in members:
            leaving = sorted(filter(is_drained, pods.get(node.metadata.name, ())), key=full_name)
            reasons = [
                f"{full_name(pod)}: {why}"
                for pod in leaving
                if (why := _eviction_refusal(pod, budgets.get(pod.metadata.namespace, ())))
            ]
            if reasons:
                if len(reasons) > _MAX_NAMED:
                    reasons = [*reasons[:_MAX_NAMED], f"{len(reasons) - _MAX_NAMED} more"]
                held_nodes.append(node)
                texts.append(f"{node.metadata.name} ({'; '.join(reasons)})")
        if held_nodes:
            yield risk(
                f"{NAME}-{group}",
                f"A drain would not empty {count(len(held_nodes), 'node')} of node group {group}: "
                f"{names(texts, _MAX_NAMED)}.",
                held_nodes,
                fix="Give these pods an owner or delete them, leave each one budget, and let that allow one "
                "disruption; `oc adm drain NODE --dry-run=server` tries it.",
            )


def _eviction_refusal(pod: PlacedPod, budgets: Sequence[PodDisruptionBudget]) -> str:
    """Returns why the pod would not be evicted; empty if it would."""
    if controller_of(pod.metadata.owner_references) is None:
        return "no owner"
    selecting = covering_budgets(budgets, pod.metadata.namespace, pod.metadata.labels)
    if len(selecting) > 1:
        return f"budgets {names([pdb.metadata.name for pdb in selecting])}"
    if selecting and never_allows(selecting[0]):
        return f"budget {selecting[0].metadata.name}"
    return ""


CHECK = declared(run, NAME, "nodes", reads=(Node, PODS, PodDisruptionBudget), rank=135, clusters="Kubernetes")
