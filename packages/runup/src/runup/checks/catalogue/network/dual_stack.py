"""Dual-stack networks against a release that no longer takes them (the example of openshift/enhancements#1930)."""

from __future__ import annotations

from ipaddress import ip_network

from runup.api.cluster_settings_v1 import Network
from runup.checks.writing import OWN_NAME, Applies, Context, Finding, Findings, Snapshot, declared, risk

NAME = "DualStackIncompatible"
FIRST_INCOMPATIBLE = (5, 2)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if the pod or the service network has both IP families, Unknown if that cannot be read."""
    network = snapshot.get(Network, "cluster")
    if network is None:
        yield _unknown_finding("the cluster has no Network named cluster")
        return
    # Status is what is in force; a cluster that is still being installed has only the spec.
    ranges = network.status if network.status.cluster_network or network.status.service_network else network.spec
    pods = [entry.cidr for entry in ranges.cluster_network]
    services = list(ranges.service_network)
    if not pods and not services:
        yield _unknown_finding("the Network named cluster lists no pod or service network")
        return
    try:
        is_dual = any(len({ip_network(cidr, strict=False).version for cidr in cidrs}) > 1 for cidrs in (pods, services))
    except ValueError as error:
        yield _unknown_finding(f"the Network named cluster has an invalid address range: {error}")
        return
    if is_dual:
        yield risk(
            NAME,
            f"Cluster uses dual-stack networking configuration incompatible with {context.target}.",
            [network],
            severity="critical",
            fix="Convert clusterNetwork and serviceNetwork to one IP family before the update.",
            reason="DualStackNetworking",
        )


def _unknown_finding(why: str) -> Finding:
    """Returns the finding that it is not known whether the cluster has two IP families."""
    return risk(
        NAME,
        f"Whether the cluster uses dual-stack networking is unknown: {why}.",
        severity="critical",
        fix="Compare `oc get network.config cluster -o yaml` with what the target supports.",
        reason="NetworkUnknown",
        applies=Applies.UNKNOWN,
    )


CHECK = declared(
    run,
    NAME,
    "network",
    reads=(Network,),
    by_hand=True,
    rank=10,
    severity="critical",
    updates="from below 5.2 to 5.2 and later",
    applies_to=lambda context: context.source.minor_version < FIRST_INCOMPATIBLE <= context.target.minor_version,
    unknown_risk=OWN_NAME,
)
