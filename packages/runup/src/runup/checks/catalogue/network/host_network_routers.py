"""Routers have no free node to move to while one of their nodes is updated.

Applies when an IngressController of type HostNetwork asks for as many routers as there are nodes that may run one, or
more: the nodes of its nodePlacement, else those of role worker, that are ready, not cordoned and, unless it has
tolerations, not tainted. The result is Unknown for a controller that names no strategy in its status or spec. A cluster
with a single node gets no finding.

Why it matters: such a router takes ports of its node, so that no node runs two. When a node is drained its router
stays Pending until the node is back: there is one router fewer for that time, and a load balancer without health
checks still sends requests to its node.

Remedy: add a node to the placement, or reduce the replicas by one; `oc -n openshift-ingress get pods -o wide` shows
the nodes of the routers.

Accepting it is right where the other routers can serve all traffic, and the load balancer checks their health.

Source of the rule: the OpenShift documentation of the endpoint publishing strategy HostNetwork (n replicas need at
least n nodes); cluster-ingress-operator, `pkg/operator/controller/ingress` (default placement: role worker).
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import LabelSelector
from kubekit.rules.node_rules import takes_pods
from runup.api.config_v1 import Infrastructure
from runup.api.operator_v1 import IngressController
from runup.checks.catalogue.shared.topology import control_plane, repelling_taints
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    count,
    declared,
    full_name,
    names_of,
    resource_of,
    risk,
    unknown,
)

NAME = "RoutersFillNodes"
WORKERS = LabelSelector(match_labels={"node-role.kubernetes.io/worker": ""})
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {replicas: 2}
status: {endpointPublishingStrategy: {type: HostNetwork}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a finding for each IngressController on host ports that has as many routers as nodes to run them."""
    controllers = sorted(snapshot.all_or_none(IngressController), key=full_name)
    # Without a status the spec is asked.
    strategies = [
        each.status.endpoint_publishing_strategy or each.spec.endpoint_publishing_strategy for each in controllers
    ]
    routers = [each for each, used in zip(controllers, strategies, strict=True) if used and used.type == "HostNetwork"]
    silent = [each for each, used in zip(controllers, strategies, strict=True) if used is None]
    if not (routers or silent) or control_plane(snapshot) == "SingleReplica":
        return
    if silent:
        why = f"{count(len(silent), 'IngressController')} ({names_of(silent)}) report no endpointPublishingStrategy"
        yield unknown(NAME, why, silent, fix="See the pod ingress-operator, which writes it into the status.")
    nodes = snapshot.all(Node)
    for controller in routers:
        replica_count = 2 if controller.spec.replicas is None else controller.spec.replicas
        placement = controller.spec.node_placement
        selector = placement.node_selector or WORKERS
        places = [
            node
            for node in nodes
            if selector.matches(node.metadata.labels)
            and takes_pods(node)
            and (placement.tolerations or not repelling_taints(node))
        ]
        if places and replica_count >= len(places):
            # A node that is not in the list may run one, too.
            snapshot.require_all(resource_of(Node))
            name = controller.metadata.name
            yield risk(
                NAME,
                f"IngressController {name} asks for {count(replica_count, 'router')} on the network of the host, and "
                f"{count(len(places), 'node')} can run one: while a node is updated, its router has no place.",
                [controller],
                severity="info",
                fix="Add a node to its placement, or ask for fewer: `oc -n openshift-ingress-operator edit "
                f"ingresscontroller {name}`.",
            )


CHECK = declared(
    run, NAME, "ingress", reads=(IngressController, Node, Infrastructure, DEFINITIONS), rank=376, severity="info"
)
