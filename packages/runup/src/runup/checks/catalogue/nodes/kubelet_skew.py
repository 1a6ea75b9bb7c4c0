"""Kubelets that would be too far behind, or ahead of, the API server of the target.

While the control plane is already at the target, every node still runs its present kubelet. How far behind is allowed
depends on the OpenShift minor version, so that a cluster can skip over releases with its workers paused. The limits are
those of cluster-kube-apiserver-operator (pkg/operator/kubeletversionskewcontroller): for 4.y one behind for odd y, two
for even; from 5.0 on one more than y modulo 3. They stay within the three minor versions that Kubernetes supports
(kubernetes.io/releases/version-skew-policy), which alone count for a cluster without a ClusterVersion.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.core_v1 import Node
from kubekit.lang.version import Version, leading_numbers
from kubekit.rules import version_skew
from runup.checks.catalogue.shared.kubernetes_versions import target_in_words
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.writing import Applies, Context, Finding, Findings, Snapshot, count, declared, names, names_of, risk
from runup.report.report import Severity

NAME = "KubeletSkew"
# A node of Fargate is made for one pod, and has the kubelet of that time
# (https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html).
_COMPUTE_TYPE, _FARGATE = "eks.amazonaws.com/compute-type", "fargate"
_FARGATE_FIX = "Restart the pods of these Fargate nodes, which brings new nodes: `kubectl rollout restart`."
# A separate risk, so that accepting what is unknown does not accept what is known, or the reverse.
UNKNOWN = f"{NAME}Unknown"


def allowed_skew(target: Version) -> int:
    """Returns how many minor versions a kubelet may be behind the API server of the OpenShift release `target`."""
    if target.major <= 4:
        return 1 if target.minor % 2 else 2
    return 1 + target.minor % 3


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of kubelets that the target's API server does not support."""
    nodes = control_plane_first(snapshot.all(Node))
    if not nodes:
        return
    server = _parse_minor(context.target_kubernetes)
    if server is None:
        yield _unknown_finding(
            f"Whether the kubelets suit {context.target} is unknown: the release does not say which "
            "Kubernetes it ships.",
            (),
            "Ask the publisher of the release for its `io.openshift.build.versions`, or compare `oc get nodes` "
            "yourself.",
        )
        return
    kubelets = [(node, _parse_minor(node.status.node_info.kubelet_version)) for node in nodes]
    # Minor versions of different major versions cannot be compared.
    silent = [node for node, kubelet in kubelets if kubelet is None or kubelet[0] != server[0]]
    numbered = [(node, kubelet[1]) for node, kubelet in kubelets if kubelet is not None and kubelet[0] == server[0]]
    early = [node for node, minor in numbered if minor > server[1]]
    api = f"the API server of {target_in_words(context)}"
    of_kubernetes = context.cluster is ClusterKind.KUBERNETES
    if of_kubernetes:
        allowed, late = version_skew.KUBELET_SKEW, _too_old_nodes(numbered, server[1])
        # Kubelets that are recent enough for the first step become too old only on the way: nodes are updated in
        # between.
        if late and not _too_old_nodes(numbered, min(context.source.minor + 1, server[1])):
            yield _skew_finding(
                f"The kubelets of {_count_and_names(late)} are too old for {target_in_words(context)} as they are: "
                f"{_kubelet_versions(late)}. The steps of the way update them before.",
                late,
                "Follow the steps: nodes are updated before the control plane goes where their kubelets are too old.",
                severity="info",
            )
            late = []
        if early and context.target < context.source:
            yield _skew_finding(
                f"The kubelets of {_count_and_names(early)} are newer than {target_in_words(context)}: "
                f"{_kubelet_versions(early)}. The way back replaces these nodes before the control plane.",
                early,
                "Follow the steps: a kubelet is never taken back in place, so these nodes are replaced first.",
                severity="info",
            )
            early = []
    else:
        allowed = allowed_skew(context.target)
        late = [node for node, minor in numbered if server[1] - minor > allowed]
    if late:
        first = "" if of_kubernetes else " (resume a paused pool and let it finish)"
        yield _skew_finding(
            f"The kubelets of {_count_and_names(late)} are too old for {api}, which takes kubelets up to "
            f"{count(allowed, 'minor version')} behind: {_kubelet_versions(late)}.",
            late,
            _FARGATE_FIX
            if all(_FARGATE in node.metadata.labels.get(_COMPUTE_TYPE, "") for node in late)
            else f"Update these nodes first{first}, or choose a target in between.",
        )
    if early:
        newer = "that is as new" if of_kubernetes else "whose Kubernetes is as new"
        yield _skew_finding(
            f"The kubelets of {_count_and_names(early)} are newer than {api}: {_kubelet_versions(early)}.",
            early,
            f"A kubelet is never taken back: choose a target {newer}, or replace these nodes.",
        )
    if silent:
        yield _unknown_finding(
            f"Whether the kubelets of {_count_and_names(silent)} suit {api} is unknown: {_kubelet_versions(silent)}.",
            silent,
            "See with `oc get node NAME -o yaml` what the kubelet reports as its version, and whether it runs.",
        )


def _too_old_nodes(numbered_kubelets: Sequence[tuple[Node, int]], server: int) -> list[Node]:
    """Returns the nodes whose kubelets an API server of Kubernetes 1.`server` does not take."""
    return [node for node, minor in numbered_kubelets if server - minor > version_skew.allowed_skew(minor)]


def _parse_minor(version: str) -> tuple[int, int] | None:
    numbers = leading_numbers(version)
    return numbers[:2] if numbers is not None else None


def _count_and_names(nodes: Sequence[Node]) -> str:
    return f"{count(len(nodes), 'node')} ({names_of(nodes)})"


def _kubelet_versions(nodes: Sequence[Node]) -> str:
    return names(sorted({node.status.node_info.kubelet_version or "no version reported" for node in nodes}))


def _skew_finding(message: str, nodes: Sequence[Node], fix: str, severity: Severity = "critical") -> Finding:
    return risk(NAME, message, nodes, fix=fix, severity=severity, reason="KubeletVersion")


def _unknown_finding(message: str, nodes: Sequence[Node], fix: str) -> Finding:
    return risk(UNKNOWN, message, nodes, fix=fix, reason="KubeletVersion", applies=Applies.UNKNOWN)


CHECK = declared(run, NAME, "kube-apiserver", reads=(Node,), by_hand=True, rank=110, severity="critical")
