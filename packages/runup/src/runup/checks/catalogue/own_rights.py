"""Computes the rights that the checks of this release need."""

from __future__ import annotations

from runup.api.preflight_reads_v1 import Right
from runup.checks.catalogue import CHECKS
from runup.checks.decide import rights
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster, reads_for_cluster


def own_rights(*kinds: ClusterKind) -> tuple[Right, ...]:
    """Returns what this release's Python checks for clusters of `kinds` read, by default for OpenShift.

    An image without the file of reads gets the same rights.
    """
    wanted = kinds or (ClusterKind.OPENSHIFT,)
    return rights.rights_of_reads(
        resource
        for kind in wanted
        for check in checks_for_cluster(CHECKS, kind)
        for resource in (reads_for_cluster(check.reads, kind) if kind is ClusterKind.OPENSHIFT else check.reads)
    )


def rights_without_clusterversion() -> tuple[Right, ...]:
    """Returns the rights of checks on a cluster without a ClusterVersion, which may become OpenShift later."""
    return own_rights(*ClusterKind)
