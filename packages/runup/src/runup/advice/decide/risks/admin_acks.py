"""The risks from gates that an administrator must acknowledge before leaving the minor version.

Source: docs/reference/upstream.md 7.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kubekit.lang.version import parse
from runup.advice.decide import risk_names
from runup.advice.decide.risks.cluster_state import Cluster, SourceRisk, docs_url
from runup.rules import admin_acks

_URL = re.compile(r"https://[^\s<>\"']+")
_PAGE = "preparing-to-update-a-cluster#kube-api-removals_updating-cluster-prepare"


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk for each gate that is not acknowledged, or one if the ConfigMaps could not be read."""
    version = cluster.version.status.desired.version
    url = docs_url(version, _PAGE)
    current = parse(version)
    why = _unreadable(cluster)
    if current is None:
        why = f"Failed to parse cluster version to check admin-acks: {version!r} is not a semantic version"
    if current is None or why or cluster.admin_gates is None or cluster.admin_acks is None:
        yield SourceRisk(name=risk_names.ADMIN_ACK_UNKNOWN, message=why, url=url)
        return
    major, minor = current.minor_version
    gates, acks = cluster.admin_gates.data, cluster.admin_acks.data
    for gate in admin_acks.open_gates(gates, acks, since=(major, minor), before=(major, minor + 1)):
        address = _URL.search(gate.text)
        yield SourceRisk(
            name=f"{risk_names.ADMIN_ACK}{gate.key}",
            message=gate.error or gate.text,
            url=(address[0].rstrip(".,;:!?)") if address else "") or url,
        )


def _unreadable(cluster: Cluster) -> str:
    """Returns why the gates or the acknowledgements are not known, in the Go operator's words; empty if both are."""
    maps = (
        (cluster.admin_gates, admin_acks.GATES, admin_acks.GATES_NAMESPACE),
        (cluster.admin_acks, admin_acks.ACKS, admin_acks.ACKS_NAMESPACE),
    )
    for config_map, name, namespace in maps:
        if config_map is None:
            why = cluster.admin_unreadable or f'configmap "{name}" not found'
            return f"Failed to retrieve ConfigMap {name} from namespace {namespace}: {why}"
    return ""
