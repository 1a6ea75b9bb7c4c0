"""Determines the minor versions of Kubernetes that the cluster runs and will run; the tables of removals use them."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.lang.version import Version, leading_numbers
from runup.api.config_v1 import ClusterOperator
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.writing import Context, Finding, Resource, Snapshot, Unreadable, resource_of, unknown

READS: tuple[Resource, ...] = (resource_of(ClusterOperator), resource_of(Node))


def target_minor(context: Context) -> int | None:
    """Returns the minor version of the target's Kubernetes 1, or None if the release does not say it."""
    return kubernetes_minor(context.target_kubernetes)


def target_in_words(context: Context) -> str:
    """Returns `5.2.0 (Kubernetes 1.38.1)`, or the version alone where the target is a version of Kubernetes itself."""
    if context.cluster is ClusterKind.KUBERNETES:
        return str(context.target)
    return f"{context.target} (Kubernetes {context.target_kubernetes})"


def source_minor(snapshot: Snapshot, context: Context) -> int | None:
    """Returns the minor version that the API server runs: as its operator says, else that of the newest kubelet.

    None if neither says it. Raises Unreadable if the operator does not say it and the nodes could not be listed.
    Without a ClusterVersion it is the source itself.
    """
    if context.cluster is ClusterKind.KUBERNETES:
        return context.source.minor
    lacking: Unreadable | None = None
    try:
        operator = snapshot.get(ClusterOperator, "kube-apiserver")
        reported = (
            [entry.version for entry in operator.status.versions if entry.name == "kube-apiserver"] if operator else []
        )
        if reported and (server_minor := kubernetes_minor(reported[0])) is not None:
            return server_minor
    except Unreadable as error:
        # The nodes may still show it; if they cannot be listed, this error names the better source.
        lacking = error
    try:
        versions = {node.status.node_info.kubelet_version for node in snapshot.all(Node)}
    except Unreadable as error:
        raise lacking or error from error
    return max((minor for minor in map(kubernetes_minor, versions) if minor is not None), default=None)


def least_source_minor(context: Context) -> int:
    """Returns a minor version that the cluster's Kubernetes surely has reached, without asking for an object."""
    return least_minor(context.cluster, context.source, context.target_kubernetes)


def least_minor(kind: ClusterKind, source: Version, target_kubernetes: str) -> int:
    """Returns a minor version that Kubernetes surely has reached in a cluster of this kind that runs `source`.

    An update of OpenShift skips one minor version at most; 0 if nothing is known.
    """
    if kind is ClusterKind.KUBERNETES:
        return source.minor
    return max((kubernetes_minor(target_kubernetes) or 0) - 2, 0)


def target_unknown(name: str, objects: Iterable[Object] = (), kind: Resource | None = None) -> Finding:
    """Returns the Unknown finding of check `name` if `target_minor` is not known."""
    why = "the target does not say which Kubernetes it ships"
    return unknown(name, why, objects, fix="Ask the publisher of the release.", kind=kind)


def versions_unknown(
    name: str, target: int | None, objects: Iterable[Object] = (), kind: Resource | None = None
) -> Finding:
    """Returns the Unknown finding of check `name` if `source_minor` or `target`, the `target_minor`, is not known."""
    why = f"which Kubernetes {'the target ships' if target is None else 'the cluster runs'} is not known"
    fix = "See `oc get clusteroperator kube-apiserver -o yaml`, or ask the publisher of the release."
    return unknown(name, why, objects, fix=fix, kind=kind)


def kubernetes_minor(version: str) -> int | None:
    """Returns the minor version in a version of Kubernetes 1, or None without a minor version."""
    numbers = leading_numbers(version)
    return numbers[1] if numbers is not None and numbers[0] == 1 else None


def k3s_version(node: Node) -> str:
    """Returns the version of k3s that runs on the node, or an empty string if another kubelet does."""
    version = node.status.node_info.kubelet_version
    return version if "+k3s" in version else ""
