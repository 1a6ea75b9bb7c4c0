"""The risks from gates that an administrator must acknowledge before leaving the minor version.

Source: docs/upstream-behaviour.md 7.6.

The gates are in one ConfigMap, the acknowledgements in another. A gate counts for the minor version in its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runup.advice.decide import risk_names
from runup.advice.decide.risks.cluster_state import Cluster, SourceRisk, docs_url

PREFIX = risk_names.ADMIN_ACK
UNKNOWN = "AdminAckUnknown"
GATES, GATES_NAMESPACE = "admin-gates", "openshift-config-managed"
ACKS, ACKS_NAMESPACE = "admin-acks", "openshift-config"
# The keys of the CVO's gates (openshift/cluster-version-operator, adminAckGateFmt), for later major versions too.
_KEY = re.compile(r"ack-([4-9][.][0-9]+)-[^-]")
_URL = re.compile(r"https://[^\s<>\"']+")
_PAGE = "preparing-to-update-a-cluster#kube-api-removals_updating-cluster-prepare"


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk for each gate that is not acknowledged, or one if the ConfigMaps could not be read."""
    version = cluster.version.status.desired.version
    url = docs_url(version, _PAGE)
    if why := _unreadable_gates(cluster):
        text = f"Whether the update needs an administrator's acknowledgement is not known. {why}"
        yield SourceRisk(name=UNKNOWN, message=text, url=url, unknown=why)
        return
    acks = cluster.admin_acks.data if cluster.admin_acks else {}
    gates = cluster.admin_gates.data if cluster.admin_gates else {}
    for key, text in sorted(gates.items()):
        if acks.get(key) == "true":
            continue
        match = _KEY.match(key)
        message = text or f"{GATES} configmap gate {key} must contain a non-empty value."
        if match is None:
            message = f'{GATES} configmap gate "{key}" is invalid: a key is ack-X.Y-NAME.'
        elif match[1] != ".".join(version.split(".")[:2]):
            # The gate is for another minor version.
            continue
        address = _URL.search(text)
        yield SourceRisk(
            name=f"{PREFIX}{key}", message=message, url=(address[0].rstrip(".,;:!?)") if address else "") or url
        )


def _unreadable_gates(cluster: Cluster) -> str:
    """Returns why the gates are not known, or an empty string.

    A cluster with neither ConfigMap has no gates, because nothing has installed the mechanism.
    """
    if cluster.admin_unreadable:
        return f"The ConfigMaps of gates and acknowledgements could not be read: {cluster.admin_unreadable}"
    if cluster.admin_gates is None and cluster.admin_acks is not None:
        return f"ConfigMap {GATES_NAMESPACE}/{GATES} is missing."
    if cluster.admin_acks is None and cluster.admin_gates is not None:
        return f"ConfigMap {ACKS_NAMESPACE}/{ACKS} is missing."
    return ""
