"""A domain is served by one router, which is gone while its node is updated.

Applies when an IngressController asks for one replica, on a cluster with more than one worker node that can be drained:
two are the default there. A cluster whose infrastructure is a single node, and controllers that ask for no replica, are
not reported. All such controllers are one risk.

Why it matters: when the router's node is drained another router is started elsewhere, and until it serves all routes of
the domain are down: for the default one the console and the login, too.

Remedy: `oc -n openshift-ingress-operator patch ingresscontroller NAME --type=merge -p '{"spec":{"replicas":2}}'`.

Accepting it is right where the routes of the domain may be down for a moment with the node that has the router.

Source of the rule: the OpenShift documentation of ingress, Scaling an Ingress Controller; openshift/api, `operator/v1`
(IngressControllerSpec, replicas: 2 by default, 1 where the infrastructure topology is SingleReplica).
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import Infrastructure
from runup.api.operator_v1 import IngressController
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "RouterAlone"
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: partners, namespace: openshift-ingress-operator}
spec: {replicas: 1, domain: partners.example.com}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}
"""
_WORKER = "node-role.kubernetes.io/worker"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the IngressControllers with a single router."""
    alone = [
        controller
        for controller in sorted(snapshot.all_or_none(IngressController), key=full_name)
        if controller.spec.replicas == 1
    ]
    if not alone or control_plane(snapshot) == "SingleReplica":
        return
    if sum(_WORKER in node.metadata.labels for node in snapshot.all(Node)) > 1:
        yield risk(
            NAME,
            f"{count(len(alone), 'IngressController')} {'has' if len(alone) == 1 else 'have'} one router alone: "
            f"{names([controller.metadata.name for controller in alone])}. Its routes are down while it moves "
            "to another node.",
            alone,
            severity="info",
            fix="Ask for two: `oc -n openshift-ingress-operator edit ingresscontroller NAME`, spec.replicas.",
        )


CHECK = declared(
    run, NAME, "ingress", reads=(IngressController, Node, Infrastructure, DEFINITIONS), rank=377, severity="info"
)
