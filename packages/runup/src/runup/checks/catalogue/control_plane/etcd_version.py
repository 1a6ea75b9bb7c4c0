"""Members of etcd run a version that cannot be updated safely to the target's etcd.

Applies when etcd has several members, a pod in kube-system runs an image of etcd before 3.5.26, and the target is
Kubernetes 1.34 or later, whose kubeadm and RKE2 bring etcd 3.6. It also applies when several nodes run the etcd of k3s
1.33 in a release before v1.33.7+k3s3. An external etcd is not checked.

Why it matters: etcd 3.5 keeps its members in two stores, of which 3.6 reads the other one: members that were removed
long ago come back ("zombie members"), a learner is never promoted ("too many learner members in cluster"), and the
cluster loses its quorum. 3.5.26 brings both stores together.

Remedy: run 3.5.26 or a later 3.5 on every member first (kubeadm: `etcd.local.imageTag` of the ClusterConfiguration;
k3s: v1.33.7+k3s3 or a later 1.33).

Accepting it is right where `etcdctl member list` and the store that 3.6 reads were compared.

Source of the rule: <https://etcd.io/blog/2025/zombie_members_upgrade/>, etcd#20793; kubernetes,
`cmd/kubeadm/app/constants` (DefaultEtcdVersion: 3.5 up to 1.33, 3.6 from 1.34); k3s-io/k3s#13485 and #13493.
"""

from __future__ import annotations

import re

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.kubernetes_versions import k3s_version, target_minor
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import ETCD, running_addons
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, names, names_of, risk, unknown

NAME = "EtcdVersion"
_ROW = ({"name": "etcd", "image": ETCD},)
# The first minor version of Kubernetes with etcd 3.6, and the etcd that must run before.
_WITH_3_6 = 34
_BEFORE_3_6 = (3, 5, 26)
# The first k3s 1.33 with it (k3s-io/k3s#13493); k3s gives its members of etcd the label.
_K3S_WITH_3_5_26 = "v1.33.7+k3s3"
_MEMBER = "node-role.kubernetes.io/etcd"
EXAMPLE = """
update: {from: 1.33.1, to: 1.34.0}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd-cp-0, namespace: kube-system}
spec: {nodeName: cp-0, containers: [{name: etcd, image: "registry.k8s.io/etcd:3.5.15-0"}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd-cp-1, namespace: kube-system}
spec: {nodeName: cp-1, containers: [{name: etcd, image: "registry.k8s.io/etcd:3.5.15-0"}]}
status: {phase: Running}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for members of etcd that must be updated before the target's etcd comes."""
    if (target_minor(context) or 0) < _WITH_3_6:
        return
    yield from _of_k3s(snapshot)
    in_system = [pod for pod in snapshot.listed(PODS) if pod.metadata.namespace == "kube-system"]
    members = running_addons(in_system, _ROW)
    unclear = [pod for member in members if not member.number for pod in member.pods]
    if unclear:
        why = f"the image of {names_of(sorted(unclear, key=full_name))} does not say its version of etcd"
        yield unknown(NAME, why, unclear, fix="See what runs with `etcdctl endpoint status`.", kind=PODS)
    old = [member for member in members if member.number and member.number < _BEFORE_3_6]
    pods = sorted((pod for member in old for pod in member.pods), key=full_name)
    # An only member has no other one that could come back or stay a learner.
    if sum(len(member.pods) for member in members) > 1 and old:
        yield risk(
            NAME,
            f"etcd {names([member.tag for member in old])} of {names_of(pods)} is older than 3.5.26, and Kubernetes "
            f"1.{_WITH_3_6} and later bring etcd 3.6: removed members may come back, so that etcd loses its quorum.",
            pods,
            severity="critical",
            fix="Run etcd 3.5.26 or a later 3.5 on every member first, with `etcd.local.imageTag` of kubeadm's "
            "ClusterConfiguration.",
            kind=PODS,
        )


def _of_k3s(snapshot: Snapshot) -> Findings:
    """Yields a risk for servers of k3s whose etcd is too old; earlier minor versions are updated on the way."""
    members = [node for node in snapshot.all(Node) if _MEMBER in node.metadata.labels and k3s_version(node)]
    old = [node for node in members if _is_old_k3s(k3s_version(node))]
    if old and len(members) > 1:
        versions = names(sorted(set(map(k3s_version, old))))
        yield risk(
            NAME,
            f"The etcd in k3s {versions} of {names_of(old)} is older than 3.5.26, and k3s 1.{_WITH_3_6} and later "
            "bring etcd 3.6: removed members may come back, so that etcd loses its quorum.",
            old,
            severity="critical",
            fix=f"Run k3s {_K3S_WITH_3_5_26} or a later 1.{_WITH_3_6 - 1} on every server first.",
        )


def _is_old_k3s(version: str) -> bool:
    """Returns whether a k3s of the last minor version with etcd 3.5 is older than the first that brings 3.5.26."""
    number, first = (re.findall(r"\d+", text) for text in (version, _K3S_WITH_3_5_26))
    return number[:2] == first[:2] and [*map(int, number)] < [*map(int, first)]


CHECK = declared(run, NAME, "etcd", reads=(PODS, Node), rank=142, severity="critical", clusters="Kubernetes")
