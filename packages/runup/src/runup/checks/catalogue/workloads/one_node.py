"""All pods of a workload are on one node and are evicted together when it is drained.

Applies when a ReplicaSet or StatefulSet has two pods or more, all of them are on one node, and no PodDisruptionBudget
selects them: with one, a drain takes them one after the other. Of the platform's namespaces, those count whose pods
serve users: routers, the image registry, the console, authentication and monitoring. All such workloads are one risk. A
cluster of one node gets no finding.

Why it matters: the workload has several pods so that one is always available; while that node is updated, none is.

Remedy: spread them (`topologySpreadConstraints` or anti-affinity by `kubernetes.io/hostname`), or give them a
PodDisruptionBudget; `oc get pods -n NAMESPACE -o wide` shows where they are.

Accepting it is right where these workloads may be down for as long as new pods take to start.

Source of the rule: kubectl drain (pkg/drain: all evictions of a node are asked for at once) and policy/v1 (a budget
holds an eviction up; without one nothing does)."""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import ENDED, selects
from kubekit.rules.owners import controller_of
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS, pods_by_namespace
from runup.checks.catalogue.shared.result_cache import cache_groups
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, resource_of, risk
from runup.rules.platform_namespaces import is_system

NAME = "SpreadOnOneNode"
WORKLOADS = ("ReplicaSet", "StatefulSet")
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata:
  name: web-0
  namespace: shop
  labels: {app: web}
  ownerReferences: [{kind: StatefulSet, name: web, controller: true}]
spec: {nodeName: worker-0}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  labels: {app: web}
  ownerReferences: [{kind: StatefulSet, name: web, controller: true}]
spec: {nodeName: worker-0, hostname: web-1}
status: {phase: Running}
"""

# Namespaces of the platform whose pods answer requests of users.
_SERVING = frozenset(
    {
        "openshift-authentication",
        "openshift-console",
        "openshift-image-registry",
        "openshift-ingress",
        "openshift-monitoring",
        "openshift-oauth-apiserver",
    }
)
BUDGETS = resource_of(PodDisruptionBudget)
# Kind and name of a workload; its key has the namespace in front.
Workload = tuple[str, str]
Key = tuple[str, str, str]


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the workloads whose pods are all on one node without a budget."""
    # The machine-config daemon does not drain the node of a single-node control plane.
    if control_plane(snapshot) == "SingleReplica":
        return
    by_workload = _workloads_on_one_node(pods_by_namespace(snapshot.listed(PODS))).values()
    together = {key: pods for of_namespace in by_workload for key, pods in of_namespace.items()}
    if not together or snapshot.incomplete.get(PODS):
        return  # a pod missing from the list may be on another node; the engine reports incomplete lists for each check
    # A pod that cannot be read may be the workload's by its name, and may be on any node.
    together = {
        (namespace, kind, name): pods
        for (namespace, kind, name), pods in together.items()
        if not any(
            bad.namespace == namespace and bad.name.startswith(f"{name}-") for bad in snapshot.undecoded.get(PODS, ())
        )
    }
    budgets: dict[str, list[PodDisruptionBudget]] = {}
    for budget in snapshot.all(PodDisruptionBudget):
        budgets.setdefault(budget.metadata.namespace, []).append(budget)
    alone = {
        key: pods
        for key, pods in together.items()
        # A budget that is not in the list may be theirs.
        if not any(selects(budget, key[0], pods[0].metadata.labels) for budget in budgets.get(key[0], ()))
        and snapshot.has_all(BUDGETS, key[0])
    }
    if alone:
        listing = names(
            [
                f"{kind} {namespace}/{name} ({count(len(pods), 'pod')} on {pods[0].spec.node_name})"
                for (namespace, kind, name), pods in sorted(alone.items())
            ]
        )
        yield risk(
            NAME,
            f"{count(len(alone), 'workload')} would lose all pods at once when one node is drained: {listing}.",
            [pod for _, pods in sorted(alone.items()) for pod in pods],
            severity="info",
            fix="Spread them, or give them a PodDisruptionBudget; `oc get pods -n NAMESPACE -o wide` shows them.",
            kind=PODS,
        )


@cache_groups
def _workloads_on_one_node(pods: Sequence[PlacedPod]) -> dict[Key, tuple[PlacedPod, ...]]:
    """Returns the workloads of a namespace with several pods, all on one node.

    A pod that has no node yet may come to another one.
    """
    namespace = pods[0].metadata.namespace
    if is_system(namespace) and namespace not in _SERVING:
        return {}
    # The node of each workload, none if it is spread: only few of hundreds of thousands of pods need the second pass.
    # By kind and then by name, because a pair for each of them would take as long as the rest.
    nodes: dict[str, dict[str, str]] = {kind: {} for kind in WORKLOADS}
    repeated: set[Workload] = set()
    for pod in pods:
        owner = controller_of(pod.metadata.owner_references)
        node_of = nodes.get(owner.kind) if owner else None
        if owner is None or node_of is None or not _stays_up(pod):
            continue
        name, node = owner.name, pod.spec.node_name
        other = node_of.get(name)
        if other is None:
            node_of[name] = node
        elif other == node:
            repeated.add((owner.kind, name))
        else:
            node_of[name] = ""
    members: dict[Workload, list[PlacedPod]] = {(kind, name): [] for kind, name in repeated if nodes[kind][name]}
    for pod in pods if members else ():
        owner = controller_of(pod.metadata.owner_references)
        if owner and (owner.kind, owner.name) in members and _stays_up(pod):
            members[owner.kind, owner.name].append(pod)
    return {
        (namespace, *workload): tuple(sorted(workload_pods, key=full_name))
        for workload, workload_pods in members.items()
    }


def _stays_up(pod: PlacedPod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ENDED


CHECK = declared(
    run,
    NAME,
    "machine-config",
    reads=(PODS, PodDisruptionBudget, Infrastructure),
    rank=620,
    severity="info",
    clusters="both",
)
