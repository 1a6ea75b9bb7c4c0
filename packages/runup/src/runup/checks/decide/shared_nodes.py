"""Keeps once what many Nodes have in common: a cluster may have ten thousand, of a few kinds of machines.

A node as it is decoded takes two KiB. What the kubelet reports of its machine, what pods may request, and the texts of
conditions and labels are the same on all nodes of a pool.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import Condition, shared_texts, with_shared_texts


def share_node(node: Node) -> Node:
    """Returns an equal node, whose parts are those of the nodes before it where they are equal."""
    metadata, status = node.metadata, node.status
    return replace(
        node,
        metadata=replace(metadata, labels=shared_texts(metadata.labels)),
        status=NodeStatus(
            conditions=tuple(_shared_condition(condition) for condition in status.conditions),
            node_info=_shared_info(status.node_info),
            allocatable=_shared_quantities(tuple(status.allocatable.items())),
        ),
    )


# By value: conditions of many nodes became true in the same second, when they were made or updated together.
@lru_cache(4096)
def _shared_condition(condition: Condition) -> Condition:
    return with_shared_texts(condition)


@lru_cache(256)
def _shared_info(info: NodeSystemInfo) -> NodeSystemInfo:
    return info


@lru_cache(1024)
def _shared_quantities(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(items)
