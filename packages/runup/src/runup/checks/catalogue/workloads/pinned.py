"""Pods that can run on no other node are down while their node is updated.

Applies when a Deployment or StatefulSet outside the platform's namespaces has pods that a drain would move, and of all
nodes only one has the labels that its nodeSelector, its required affinity and its project demand, and the extended
resources (devices) that it asks for, without a taint that it does not tolerate. It also applies when no node may run
two of the pods, and the workload has at least as many replicas as there are such nodes: the pods take a port of their
node (hostPort, or a port on the network of the host), or their required anti-affinity keeps them from one node. A
workload with a PodDisruptionBudget is left out there, because the budget says that pods may be missing. The
anti-affinity also counts for the platform's console, image registry and routers. All such workloads are one risk. Ports
that other workloads take are not compared. A cluster of one node gets no finding.

Why it matters: an evicted pod stays Pending until its node is back: drained, restarted with the new system, and
uncordoned.

Remedy: give another node the required labels or devices (`oc label node`), reduce the replicas, or plan for the
downtime: `oc get pods -n NAMESPACE -o wide` shows the node.

Accepting it is right where these workloads may be down for as long as a node takes.

Source of the rule: the Kubernetes documentation of assigning pods to nodes, and of safely draining a node; kubernetes,
`pkg/scheduler/framework/plugins/nodeports`, and `pkg/apis/core/v1/defaults.go` (ports of pods on the host's network).
"""

from __future__ import annotations

from functools import partial

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import covering_budgets
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.node_fit import Homes, project_selector
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS, STATEFUL_SETS, WorkloadSpec, with_pods_that_move
from runup.checks.decide.model import Context, Snapshot
from runup.checks.writing import Findings, Slim, count, declared, full_name, names, resource_of, risk, yield_from_all
from runup.rules.platform_namespaces import is_system

NAME = "PodsPinnedToNode"
# RoutersFillNodes reports routers that take ports of their nodes.
_SPREAD_OF_PLATFORM = frozenset({"openshift-console", "openshift-image-registry", "openshift-ingress"})
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: licence, namespace: shop}
spec: {replicas: 1, template: {spec: {nodeSelector: {licensed: "yes"}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata:
  name: licence-6d9f-x2
  namespace: shop
  ownerReferences: [{kind: ReplicaSet, name: licence-6d9f, controller: true}]
spec: {nodeName: worker-0}
status: {phase: Running}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {licensed: "yes"}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {licensed: "no"}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields the findings of workloads whose pods fit on no other node."""
    # The machine-config daemon does not drain the node of a single-node control plane.
    if control_plane(snapshot) != "SingleReplica":
        yield from yield_from_all(
            *(partial(_findings_of_kind, snapshot, kind) for kind in (DEPLOYMENTS, STATEFUL_SETS))
        )


def _findings_of_kind(snapshot: Snapshot, kind: Slim) -> Findings:
    """Yields the finding about workloads of one kind whose pods fit on one Node alone."""
    choosy = [
        (workload, pods)
        for workload, pods in with_pods_that_move(snapshot, kind)
        if (workload.spec.keeps_apart and workload.metadata.namespace in _SPREAD_OF_PLATFORM)
        or (not is_system(workload.metadata.namespace) and _demands_of_node(workload.spec))
    ]
    if not choosy:
        return
    nodes = snapshot.all(Node)
    projects = {namespace.metadata.name: project_selector(namespace) for namespace in snapshot.all(Namespace)}
    pinned, filling, finder = [], [], Homes(nodes)
    for candidate, pods in choosy:
        project, spec = projects.get(candidate.metadata.namespace, {}), candidate.spec
        one_per_node = spec.keeps_apart or spec.template.spec.takes_host_ports
        homes = finder.find(spec.template.spec, project, at_most=max(2, one_per_node * (spec.replicas + 1)))
        if len(nodes) < 2:
            continue
        if len(homes) == 1:
            pinned.append((candidate, homes[0]))
        elif homes and one_per_node and len(homes) <= spec.replicas:
            # A budget says that pods may be missing.
            pod = pods[0].metadata
            if covering_budgets(snapshot.all(PodDisruptionBudget), pod.namespace, pod.labels):
                continue
            filling.append((candidate, len(homes)))
    if pinned or filling:
        # A node that is not in the list may take them, too.
        snapshot.require_all(resource_of(Node))
    if pinned:
        listing = names([f"{full_name(workload)} ({home.metadata.name})" for workload, home in pinned])
        yield risk(
            NAME,
            f"The pods of {count(len(pinned), kind.kind)} may run on one node alone, and are down while it is updated: "
            f"{listing}.",
            [workload for workload, _ in pinned],
            severity="info",
            fix="Let a second node have the labels that are demanded, or plan for the time that the node takes.",
            kind=kind,
        )
    if filling:
        listing = names(
            [f"{full_name(workload)} ({workload.spec.replicas} on {places} nodes)" for workload, places in filling]
        )
        yield risk(
            NAME,
            f"No node runs two of the pods of {count(len(filling), kind.kind)}, and there is no other node for the pod "
            f"of a node that is updated: {listing}.",
            [workload for workload, _ in filling],
            severity="info",
            fix="Ask for fewer replicas, let another node take them, or plan for one pod fewer.",
            kind=kind,
        )


def _demands_of_node(spec: WorkloadSpec) -> bool:
    """Reports whether the pods ask for certain nodes: by selector, required affinity, a device or a host port."""
    template = spec.template.spec
    required = template.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    devices = any(
        "/" in key
        for container in template.containers
        for key in (*container.resources.requests, *container.resources.limits)
    )
    asks = bool(template.node_selector) or required is not None or devices
    return asks or template.takes_host_ports or spec.keeps_apart


CHECK = declared(
    run,
    NAME,
    "kube-scheduler",
    reads=(DEPLOYMENTS, STATEFUL_SETS, PODS, Node, Namespace, Infrastructure, PodDisruptionBudget),
    rank=619,
    severity="info",
    clusters="both",
)
