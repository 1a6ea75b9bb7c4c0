"""Defines the kinds of cluster, and decides which checks are for which kind (docs/decisions/0088).

OpenShift is a cluster with a ClusterVersion, whose operator updates it to releases. Kubernetes is every other cluster:
its source and target are versions of Kubernetes itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol, TypeVar

from kubekit.api.scheme import Resource
from runup.checks.decide.reads import namespace_of


class ClusterKind(Enum):
    """A kind of cluster; its value is used in reports."""

    OPENSHIFT = "OpenShift"
    KUBERNETES = "Kubernetes"


Clusters = frozenset[ClusterKind]
BOTH: Clusters = frozenset(ClusterKind)
OPENSHIFT: Clusters = frozenset({ClusterKind.OPENSHIFT})
KUBERNETES: Clusters = frozenset({ClusterKind.KUBERNETES})


class Declared(Protocol):
    """The attributes of a check that decide for which kinds of cluster it is."""

    @property
    def reads(self) -> tuple[Resource, ...]: ...
    @property
    def clusters(self) -> Clusters | None: ...


C = TypeVar("C", bound=Declared)
# Of OLM, which OpenShift has in every cluster.
_OLM = "operators.coreos.com"


def is_openshifts(resource: Resource) -> bool:
    """Returns whether only OpenShift has the kind, by its API group."""
    group = resource.group
    return group == _OLM or group.endswith((".openshift.io", f".{_OLM}"))


def clusters_by_reads(reads: Iterable[Resource]) -> Clusters:
    """Returns the kinds of cluster for a check that declares none: those that have every kind in its `reads`.

    A check that reads a kind of OpenShift, and is useful in clusters without that kind, declares `BOTH`.
    """
    return OPENSHIFT if any(map(is_openshifts, reads)) else BOTH


def clusters_of(check: Declared) -> Clusters:
    """Returns the kinds of cluster that the check is for."""
    return clusters_by_reads(check.reads) if check.clusters is None else check.clusters


def checks_for_cluster(checks: Iterable[C], kind: ClusterKind) -> tuple[C, ...]:
    """Returns the checks that are for clusters of this kind; the other checks are left out of the report."""
    return tuple(check for check in checks if kind in clusters_of(check))


def reads_for_cluster(reads: Iterable[Resource], kind: ClusterKind) -> tuple[Resource, ...]:
    """Returns the kinds to be read in a cluster of this kind, each once."""
    all_reads = dict.fromkeys(reads)
    if kind is ClusterKind.OPENSHIFT:
        # ConfigMaps and static pods of kube-system are kubeadm's.
        return tuple(
            each
            for each in all_reads
            if namespace_of(each) != "kube-system" or each.plural not in ("configmaps", "pods")
        )
    return tuple(resource for resource in all_reads if not is_openshifts(resource))
