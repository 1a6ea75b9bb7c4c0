"""Pods run that no node would accept again.

Applies when a Deployment or StatefulSet has pods that a drain would move, and no node is left for its template: none
has the labels that its nodeSelector or its required affinity demands, or the extended resources (devices) that it asks
for, or each that has them has a taint that it does not tolerate. Or the project's node selector (annotation
`openshift.io/node-selector`) contradicts the template's, so that its pods are not admitted. Selectors and taints count
when a pod is placed; a pod that was there before stays until it is evicted. Nodes that are cordoned or not ready count
as places, because that state is temporary. A node with a taint that has a device's name counts if the template asks for
that device: the API server adds the toleration to the pod. Pods of a node that is gone do not count: no drain moves
them. All such workloads are one risk.

Why it matters: a pod that is evicted stays Pending, and the workload shrinks with each node that is drained.

Remedy: give a node the label again (`oc label node`), add the toleration to the template, or change its selector; `oc
get nodes --show-labels` and `oc describe node NAME` show both sides.

Accepting it means that these pods do not start again.

Source of the rule: the Kubernetes documentation of assigning pods to nodes (IgnoredDuringExecution) and of taints and
tolerations; the OpenShift documentation of nodes, Placing pods on specific nodes using node selectors.
"""

from __future__ import annotations

from functools import partial

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.pod_parts import PlacedPod
from runup.checks.catalogue.shared.node_fit import Homes, project_selector
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS, STATEFUL_SETS, Workload, with_pods_that_move
from runup.checks.decide.model import Context, Snapshot
from runup.checks.writing import Findings, Slim, count, declared, full_name, names, resource_of, risk, yield_from_all

NAME = "PodsNotPlaceable"
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 1, template: {spec: {nodeSelector: {disk: fast}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-6d9f-x2
  namespace: shop
  ownerReferences: [{kind: ReplicaSet, name: web-6d9f, controller: true}]
spec: {nodeName: worker-0}
status: {phase: Running}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    yield from yield_from_all(*(partial(_findings_of_kind, snapshot, kind) for kind in (DEPLOYMENTS, STATEFUL_SETS)))


def _findings_of_kind(snapshot: Snapshot, kind: Slim) -> Findings:
    """Yields the finding about workloads of one kind whose pods no Node would take."""
    with_pods = list(with_pods_that_move(snapshot, kind))
    if not with_pods:
        return
    nodes = snapshot.all(Node)
    homes = Homes(nodes)
    projects = {namespace.metadata.name: project_selector(namespace) for namespace in snapshot.all(Namespace)}
    homeless: list[tuple[Workload, list[PlacedPod], str]] = []
    for workload, pods in with_pods:
        template, project = workload.spec.template.spec, projects.get(workload.metadata.namespace, {})
        selector = template.node_selector
        other = next((key for key, value in sorted(project.items()) if selector.get(key, value) != value), None)
        if other is not None:
            why = f"its project demands {other}={project[other]}, its template {other}={selector[other]}"
            homeless.append((workload, pods, why))
        elif nodes and not homes.find(template, project):
            labels = names([f"{key}={value}" for key, value in sorted({**project, **selector}.items())])
            why = f"no node has {labels} without a taint that it does not tolerate"
            homeless.append((workload, pods, why if labels else "no node fits its template"))
    if not homeless:
        return
    # A node that is not in the list may take them.
    snapshot.require_all(resource_of(Node))
    # Pods whose node is gone are deleted by the control plane's garbage collector of pods, not evicted.
    node_names = {node.metadata.name for node in nodes}
    homeless = [each for each in homeless if any(pod.spec.node_name in node_names for pod in each[1])]
    if not homeless:
        return
    listing = names([f"{full_name(workload)} ({why})" for workload, _, why in homeless])
    yield risk(
        NAME,
        f"The pods of {count(len(homeless), kind.kind)} would not find a node again: {listing}.",
        [workload for workload, _, _ in homeless],
        fix="Give nodes the labels that are asked for, let the template tolerate their taints, or change its selector.",
        kind=kind,
    )


CHECK = declared(run, NAME, "kube-scheduler", reads=(DEPLOYMENTS, STATEFUL_SETS, PODS, Node, Namespace), rank=617)
