"""EgressIPs have only one node, and cannot move to another.

Applies when at most one node that is ready is selected for an EgressIP: by its egressNodeSelector, or by the label
`k8s.ovn.org/egress-assignable` without one. A cluster whose infrastructure is a single node gets no finding.

Why it matters: while that node is drained and restarts, the pods that an EgressIP selects send no traffic out of the
cluster, or send it from the address of their node, which firewalls do not know.

Remedy: label a second node of the same network, `oc label node NAME k8s.ovn.org/egress-assignable=`; `oc get egressip`
shows the node of each.

Accepting it is right where this traffic may stop while the node restarts.

Source of the rule: the OpenShift documentation of egress IP addresses (assignable nodes, high availability);
ovn-kubernetes, `go-controller/pkg/clustermanager/egressip_controller.go` and `pkg/crd/egressip/v1` (the default of
egressNodeSelector; an empty one selects all nodes).
"""

from __future__ import annotations

from collections import defaultdict

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import LabelSelector, LabelSelectorRequirement, Object, Wire
from kubekit.lang.text import count
from kubekit.rules.node_rules import is_ready
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
_DEFAULT = LabelSelector(match_expressions=(LabelSelectorRequirement(ASSIGNABLE, "Exists"),))


class EgressIPSpec(Wire, frozen=True):
    """`spec` of an EgressIP: the nodes that may have its addresses."""

    egress_node_selector: LabelSelector = _DEFAULT


class EgressIP(Object, frozen=True):
    """Addresses by which the pods of some namespaces leave the cluster."""

    spec: EgressIPSpec = EgressIPSpec()


EGRESS_IPS = Slim(
    group="k8s.ovn.org",
    version="v1",
    kind="EgressIP",
    plural="egressips",
    namespaced=False,
    type=EgressIP,
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the EgressIPs if at most one node can have them."""
    addresses = sorted(snapshot.listed_or_none(EGRESS_IPS), key=lambda each: str(each.metadata.name))
    if not addresses or control_plane(snapshot) == "SingleReplica":
        return
    nodes, by_node = snapshot.all(Node), defaultdict[tuple[str, str], list[EgressIP]](list)
    for address in addresses:
        selected = [node for node in nodes if address.spec.egress_node_selector.matches(node.metadata.labels)]
        able = [node for node in selected if is_ready(node)]
        away = [node for node in selected if node not in able]
        others = f". Selected nodes that are not ready: {names_of(away)}" if away else ""
        if len(able) < 2:
            node_text = f"node {able[0].metadata.name} alone" if able else "no node"
            by_node[node_text, others].append(address)
    if by_node:
        # A node that is not in the list may be assignable, too.
        snapshot.require_all(resource_of(Node))
    for (node_text, others), alone in by_node.items():
        is_default = all(each.spec.egress_node_selector == _DEFAULT for each in alone)
        yield risk(
            NAME,
            f"{count(len(alone), 'EgressIP')} can be assigned to {node_text}: {names_of(alone)}{others}.",
            alone,
            fix=f"Label a second node of the same network: `oc label node NAME {ASSIGNABLE}=`."
            if is_default
            else "Let the egressNodeSelector select a second node of the same network.",
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
