"""Which minor version of Kubernetes the cluster runs and will run; the tables of what is removed go by it."""

from __future__ import annotations

import re

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from runup.api.config_v1 import ClusterOperator
from runup.checks.decide.model import Context, Snapshot, Unreadable

READS: tuple[Resource, ...] = (resource_of(ClusterOperator), resource_of(Node))
_VERSION = re.compile(r"v?1\.(\d+)\.")


def target_minor(context: Context) -> int | None:
    """The minor version of the target's Kubernetes 1, if the release says it."""
    return _minor(context.target_kubernetes)


def source_minor(snapshot: Snapshot) -> int | None:
    """The minor version that the API server runs: as its operator says, else that of the newest kubelet.

    Raises Unreadable where neither could be asked.
    """
    lacking: Unreadable | None = None
    try:
        operator = snapshot.get(ClusterOperator, "kube-apiserver")
        told = (
            [entry.version for entry in operator.status.versions if entry.name == "kube-apiserver"] if operator else []
        )
        if told and (found := _minor(told[0])) is not None:
            return found
    except Unreadable as error:
        lacking = error
    try:
        versions = {node.status.node_info.kubelet_version for node in snapshot.all(Node)}
    except Unreadable as error:
        raise lacking or error from error
    return max((minor for minor in map(_minor, versions) if minor is not None), default=None)


def _minor(version: str) -> int | None:
    found = _VERSION.match(version)
    return int(found[1]) if found else None
