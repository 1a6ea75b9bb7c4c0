"""Determines which taints of a node keep away the pods that a drain moves."""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.rules.node_rules import REPELLING

# Key, value and effect of a taint that keeps new pods away unless they tolerate it.
Repelling = frozenset[tuple[str, str, str]]
_NO_TAINTS: Repelling = frozenset()


def repelling_taints(node: Node) -> Repelling:
    """Returns the taints that keep new pods away.

    Pods that run on a node are assumed to tolerate its taints, and so to fit on any node without further taints.
    """
    if not node.spec.taints:
        return _NO_TAINTS
    return frozenset((taint.key, taint.value, taint.effect) for taint in node.spec.taints if taint.effect in REPELLING)
