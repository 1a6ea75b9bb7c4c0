"""kube-proxy would be too far behind the API server of the target, or is newer than it.

Applies when pods run an image of kube-proxy that is more than three minor versions older than the target (two, if it is
older than 1.25), or newer. It is not updated with the nodes where it is a separate add-on, as on EKS. On a way over
several minor versions that kube-proxy becomes too old for only later, the finding is informational, since kubeadm and
others update it with each step; where it is an add-on, it is a warning.

Why it matters: kube-proxy of such a version is not known to understand the API server: Services may stop working on
every node at once.

Remedy: update kube-proxy first, at least to the version that the cluster runs now.

Accepting it is right where this version was tried with the target.

Source of the rule: <https://kubernetes.io/releases/version-skew-policy/#kube-proxy>.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.core_v1 import Node
from kubekit.rules.version_skew import allowed_skew
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import KUBE_PROXY, Running, running_addons
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, names, risk, unknown
from runup.rules.distributions import distribution_of

NAME = "KubeProxySkew"
_ROW = ({"name": "kube-proxy", "image": KUBE_PROXY},)
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: ip-10-0-1-7.ec2.internal, labels: {eks.amazonaws.com/nodegroup: web}}
status: {nodeInfo: {kubeletVersion: v1.37.1-eks-3025e55}}
---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-4xm2p, namespace: kube-system}
spec:
  nodeName: ip-10-0-1-7.ec2.internal
  containers:
  - {name: kube-proxy, image: "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/kube-proxy:v1.33.3-minimal-eksbuild.4"}
status: {phase: Running}
---
update: {from: 1.37.1, to: 1.38.0}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for kube-proxy versions that the target's API server does not support."""
    proxies = running_addons(snapshot.listed(PODS), _ROW)
    target = target_minor(context)
    if not proxies:
        return
    if target is None:
        yield target_unknown(NAME)
        return
    unclear = [proxy for proxy in proxies if not proxy.number]
    if unclear:
        pods = [min(proxy.pods, key=full_name) for proxy in unclear]
        why = "the tag of its image shows no version of kube-proxy"
        yield unknown(NAME, why, pods, fix="See what runs with `oc logs POD -n NAMESPACE`.", kind=PODS)
    numbered_proxies = [proxy for proxy in proxies if proxy.number]
    newer = [proxy for proxy in numbered_proxies if proxy.number[1] > target]
    late = _too_old(numbered_proxies, target)
    command = distribution_of(snapshot.all(Node)).kube_proxy
    # What is recent enough for the first step becomes too old only on the way, unless the steps update it.
    if late and not _too_old(numbered_proxies, min(context.source.minor + 1, target)):
        yield risk(
            NAME,
            f"kube-proxy {names([proxy.tag for proxy in late])} is too old for Kubernetes {context.target_kubernetes} "
            f"as it is: it must be updated on the way, to no newer version than the control plane's"
            f"{'' if command else ', which the steps of most installers do'}.",
            [min(proxy.pods, key=full_name) for proxy in late],
            severity="warning" if command else "info",
            fix=f"Update kube-proxy after each step of the control plane{f': `{command}`' if command else ''}.",
            kind=PODS,
        )
        late = []
    if wrong := [*late, *newer]:
        yield risk(
            NAME,
            f"kube-proxy {names([proxy.tag for proxy in wrong])} is too far from Kubernetes "
            f"{context.target_kubernetes}, whose API server takes one up to three minor versions older and none that "
            "is newer.",
            [min(proxy.pods, key=full_name) for proxy in wrong],
            severity="critical",
            fix=f"Update kube-proxy first{f': `{command}`' if command else ''}.",
            kind=PODS,
        )


def _too_old(proxies: Sequence[Running], server: int) -> list[Running]:
    """Returns those of the versions of kube-proxy that an API server of Kubernetes 1.`server` does not take."""
    return [proxy for proxy in proxies if server - proxy.number[1] > allowed_skew(proxy.number[1])]


CHECK = declared(run, NAME, "kube-proxy", reads=(PODS, Node), rank=116, severity="critical", clusters="Kubernetes")
