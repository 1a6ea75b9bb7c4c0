"""etcd has two members, so that it has no quorum while one of them restarts.

Applies when the cluster has two etcd members: two static pods of etcd (label `component=etcd` in kube-system, or
`app=etcd` in openshift-etcd), or two nodes with the label node-role.kubernetes.io/etcd, as k3s and RKE2 set it.
A control plane of the topology DualReplica is left out, where Pacemaker fences nodes and runs etcd. An etcd that
neither pods nor nodes show, such as an external or a managed one, is not checked.

Why it matters: the update restarts the nodes of the control plane one by one. While one of two members is down, etcd
accepts no writes, and the API server fails requests that write.

Remedy: add a third node to the control plane before the update, or remove the second one; `kubectl get pods -A -l
component=etcd` lists the members.

Accepting it is right where the cluster may be without its API while each of the two nodes is updated.

Source of the rule: the etcd documentation, FAQ (failure tolerance of a cluster of two members is 0); openshift/api,
`config/v1` (TopologyMode DualReplica).
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import Context, Findings, Snapshot, declared, names, resource_of, risk

NAME = "EtcdTwoMembers"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: etcd-cp-0, namespace: kube-system, labels: {component: etcd}}
spec: {nodeName: cp-0}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd-cp-1, namespace: kube-system, labels: {component: etcd}}
spec: {nodeName: cp-1}
"""
_MEMBER_PODS = {"kube-system": ("component", "etcd"), "openshift-etcd": ("app", "etcd")}
_MEMBER_LABEL = "node-role.kubernetes.io/etcd"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if pods or, where they do not exist, nodes show two members of etcd."""
    members = {
        pod.spec.node_name
        for pod in snapshot.listed(PODS)
        if (label := _MEMBER_PODS.get(pod.metadata.namespace)) is not None
        and pod.metadata.labels.get(label[0]) == label[1]
        and pod.spec.node_name
    } or {node.metadata.name for node in snapshot.all(Node) if _MEMBER_LABEL in node.metadata.labels}
    if len(members) != 2 or control_plane(snapshot) == "DualReplica":
        return
    nodes = [node for node in snapshot.all(Node) if node.metadata.name in members]
    yield risk(
        NAME,
        f"etcd has two members ({names(sorted(members))}): while one of their nodes restarts, it has no quorum, and "
        "the API server takes no writes.",
        nodes,
        severity="critical",
        fix="Add a third node to the control plane before the update, or remove the second one.",
    )


CHECK = declared(
    run,
    NAME,
    "etcd",
    reads=(PODS, resource_of(Node), Infrastructure),
    rank=141,
    severity="critical",
    clusters="both",
)
