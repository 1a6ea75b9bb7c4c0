"""Determines which nodes take the pods that a drain moves: by readiness, cordon, taints, and whose nodes they are."""

from __future__ import annotations

from kubekit.api.conditions import status_of
from kubekit.api.core_v1 import Node

# Key, value and effect of a taint that keeps new pods away unless they tolerate it.
Repelling = frozenset[tuple[str, str, str]]
_NO_TAINTS: Repelling = frozenset()


def takes_pods(node: Node) -> bool:
    """Returns whether pods can be placed on the node, taints apart."""
    return not node.spec.unschedulable and status_of(node.status.conditions, "Ready") in ("True", None)


def repelling_taints(node: Node) -> Repelling:
    """Returns the taints that keep new pods away.

    Pods that run on a node are assumed to tolerate its taints, and so to fit on any node without further taints.
    """
    if not node.spec.taints:
        return _NO_TAINTS
    return frozenset(
        (taint.key, taint.value, taint.effect)
        for taint in node.spec.taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def is_windows(node: Node) -> bool:
    """Returns whether the node runs Windows: the machine-config operator neither drains nor updates it."""
    return node.metadata.labels.get("kubernetes.io/os") == "windows"
