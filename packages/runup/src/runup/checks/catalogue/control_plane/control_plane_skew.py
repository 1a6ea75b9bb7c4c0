"""An API server, controller manager or scheduler would be too far from the API server of the target.

Applies when a pod runs an image of kube-apiserver that is two or more minor versions older than the first step of the
update, or an image of kube-controller-manager, kube-scheduler or a cloud-controller-manager (of AWS, Azure or
OpenStack, whose versions are those of Kubernetes) that is, or one that is newer than the target. A server of k3s counts
by the version of its kubelet, which is the same process. Another control plane without pods, such as a managed one, is
not checked.

Why it matters: of API servers that are two minor versions apart, the older one may drop fields that the newer one
stored. A controller that is newer than an API server requests API versions that the server does not have.

Remedy: bring every node of the control plane to one minor version before the next one.

Accepting it is not supported.

Source of the rule: <https://kubernetes.io/releases/version-skew-policy/#kube-apiserver> (the newest and the oldest
are one minor version apart) and #kube-controller-manager-kube-scheduler-and-cloud-controller-manager (never newer,
and one minor version older).
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.kubernetes_versions import (
    k3s_version,
    kubernetes_minor,
    target_minor,
    target_unknown,
)
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import CLOUD_CONTROLLERS, CONTROL_PLANE, Running, running_addons
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, names, names_of, risk, unknown
from runup.rules.node_groups import is_control_plane

NAME = "ControlPlaneSkew"
_ROWS = tuple({"name": image.rpartition("/")[2], "image": image} for image in (*CONTROL_PLANE, *CLOUD_CONTROLLERS))
EXAMPLE = """
update: {from: 1.34.2, to: 1.35.0}
---
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver-cp-0, namespace: kube-system}
spec: {nodeName: cp-0, containers: [{name: kube-apiserver, image: "registry.k8s.io/kube-apiserver:v1.33.5"}]}
status: {phase: Running}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each component of which a version does not suit the target's API server."""
    target = target_minor(context)
    yield from _of_k3s(snapshot, context, target)
    components = running_addons(snapshot.listed(PODS), _ROWS)
    if not components:
        return
    if target is None:
        yield target_unknown(NAME)
        return
    unclear = [component for component in components if not component.number]
    if unclear:
        pods = [min(component.pods, key=full_name) for component in unclear]
        why = f"the image of {names_of(pods)} does not say its version"
        yield unknown(NAME, why, pods, fix="See what runs with `kubectl logs POD -n NAMESPACE`.", kind=PODS)
    first_step = min(context.source.minor + 1, target)
    by_name: dict[str, list[Running]] = {}
    for component in components:
        if component.number and (component.number[1] < first_step - 1 or component.number[1] > target):
            by_name.setdefault(component.row["name"], []).append(component)
    for name, wrong in by_name.items():
        pods = sorted((pod for component in wrong for pod in component.pods), key=full_name)
        yield risk(
            f"{NAME}-{name}",
            f"{names_of(pods)} {'runs' if len(pods) == 1 else 'run'} {name} {names([one.tag for one in wrong])}, which "
            f"is too far from an API server of Kubernetes 1.{first_step}: one minor version older is allowed, and none "
            "newer.",
            pods,
            severity="critical",
            fix=f"Bring every {name} to 1.{context.source.minor} before the update.",
            kind=PODS,
        )


def _of_k3s(snapshot: Snapshot, context: Context, target: int | None) -> Findings:
    """Yields a risk for servers of k3s, whose API server is in the process of the kubelet and has its version."""
    first_step = min(context.source.minor + 1, target or 0)
    old: dict[str, list[Node]] = {}
    for node in snapshot.all(Node):
        version = k3s_version(node)
        if is_control_plane(node) and version and (kubernetes_minor(version) or first_step) < first_step - 1:
            old.setdefault(version, []).append(node)
    if old and target is not None:
        nodes = [node for of_version in old.values() for node in of_version]
        yield risk(
            f"{NAME}-k3s",
            f"{names_of(nodes)} {'runs' if len(nodes) == 1 else 'run'} k3s {names(sorted(old))}, which is too far from "
            f"an API server of Kubernetes 1.{first_step}: one minor version older is allowed.",
            nodes,
            severity="critical",
            fix=f"Bring every server to 1.{context.source.minor} before the update.",
        )


CHECK = declared(run, NAME, "kube-apiserver", reads=(PODS, Node), rank=112, severity="critical", clusters="Kubernetes")
