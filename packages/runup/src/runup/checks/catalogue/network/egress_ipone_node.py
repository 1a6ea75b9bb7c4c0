"""EgressIPs have one node alone, and no other to move to.

Applies when there are EgressIPs, and at most one node that takes pods has the label `k8s.ovn.org/egress-assignable`. A
cluster whose infrastructure is a single node gets no finding.

Why it matters: while that node is drained and restarts, the pods that an EgressIP selects send no traffic out of the
cluster, or send it from the address of their node, which firewalls do not know.

Remedy: label a second node of the same network, `oc label node NAME k8s.ovn.org/egress-assignable=`; `oc get egressip`
shows the node of each.

Accepting it is right where this traffic may stop while the node restarts.

Source of the rule: the OpenShift documentation of egress IP addresses (assignable nodes, high availability);
ovn-kubernetes, `go-controller/pkg/clustermanager/egressip_controller.go`.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.lang.text import count
from kubekit.rules.node_rules import takes_pods
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Slim,
    Snapshot,
    declared,
    names_of,
    resource_of,
    risk,
    slim_metadata,
)

NAME = "EgressIPOneNode"
ASSIGNABLE = "k8s.ovn.org/egress-assignable"
EXAMPLE = """
apiVersion: k8s.ovn.org/v1
kind: EgressIP
metadata: {name: shop}
spec: {egressIPs: [192.0.2.10], namespaceSelector: {matchLabels: {team: shop}}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {k8s.ovn.org/egress-assignable: ""}}
status: {conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1}
"""
EGRESS_IPS = Slim(
    group="k8s.ovn.org",
    version="v1",
    kind="EgressIP",
    plural="egressips",
    namespaced=False,
    keep=lambda obj: Object(metadata=slim_metadata(obj)),
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the EgressIPs if at most one node can have them."""
    addresses = sorted(snapshot.listed_or_none(EGRESS_IPS), key=lambda each: str(each.metadata.name))
    if not addresses or control_plane(snapshot) == "SingleReplica":
        return
    labelled = [node for node in snapshot.all(Node) if ASSIGNABLE in node.metadata.labels]
    able = [node for node in labelled if takes_pods(node)]
    if len(able) > 1:
        return
    # A node that is not in the list may be assignable, too.
    snapshot.require_all(resource_of(Node))
    away = [node for node in labelled if node not in able]
    others = f". Labelled nodes that take no pods: {names_of(away)}" if away else ""
    node_text = f"node {able[0].metadata.name} alone" if able else "no node"
    yield risk(
        NAME,
        f"{count(len(addresses), 'EgressIP')} can be assigned to {node_text}: {names_of(addresses)}{others}.",
        addresses,
        fix=f"Label a second node of the same network: `oc label node NAME {ASSIGNABLE}=`.",
        kind=EGRESS_IPS,
    )


CHECK = declared(
    run,
    NAME,
    "cluster-network-operator",
    reads=(EGRESS_IPS, Node, Infrastructure, DEFINITIONS),
    rank=379,
    clusters="OpenShift",
)
