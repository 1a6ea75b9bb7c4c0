"""Gates that an administrator has to acknowledge before leaving the minor version (cvo-behaviour 7.6).

The gates are in one ConfigMap, the acknowledgements in another; a gate counts for the minor version in its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runup.advice.decide.risks.source import Cluster, SourceRisk, docs_url

PREFIX = "AdminAck-"
UNKNOWN = "AdminAckUnknown"
GATES, GATES_NAMESPACE = "admin-gates", "openshift-config-managed"
ACKS, ACKS_NAMESPACE = "admin-acks", "openshift-config"
_KEY = re.compile(r"ack-([4-9][.][0-9]+)-[^-]")
_URL = re.compile(r"https://[^\s<>\"']+")
_PAGE = "preparing-to-update-a-cluster#kube-api-removals_updating-cluster-prepare"


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """One risk a gate that is not acknowledged, or one that says what could not be read."""
    version = cluster.version.status.desired.version
    url = docs_url(version, _PAGE)
    if why := _missing(cluster):
        text = f"Whether the update needs an administrator's acknowledgement is not known. {why}"
        yield SourceRisk(UNKNOWN, text, url, unknown=why)
        return
    acks = cluster.admin_acks.data if cluster.admin_acks else {}
    gates = cluster.admin_gates.data if cluster.admin_gates else {}
    for key, text in sorted(gates.items()):
        if acks.get(key) != "true" and (message := _message(key, text, version)):
            yield SourceRisk(f"{PREFIX}{key}", message, _link(text) or url)


def _missing(cluster: Cluster) -> str:
    """What keeps us from knowing. A cluster with neither ConfigMap has no gates: nobody put the mechanism there."""
    if cluster.admin_unreadable:
        return f"The ConfigMaps of gates and acknowledgements could not be read: {cluster.admin_unreadable}"
    if cluster.admin_gates is None and cluster.admin_acks is not None:
        return f"ConfigMap {GATES_NAMESPACE}/{GATES} is missing."
    if cluster.admin_acks is None and cluster.admin_gates is not None:
        return f"ConfigMap {ACKS_NAMESPACE}/{ACKS} is missing."
    return ""


def _message(key: str, text: str, version: str) -> str:
    """Why the gate stands in the way; empty where it is another minor version's."""
    match = _KEY.match(key)
    if match is None:
        return f'{GATES} configmap gate "{key}" is invalid: a key is ack-X.Y-NAME.'
    if match[1] != ".".join(version.split(".")[:2]):
        return ""
    return text or f"{GATES} configmap gate {key} must contain a non-empty value."


def _link(text: str) -> str:
    found = _URL.search(text)
    return found[0].rstrip(".,;:!?)") if found else ""
