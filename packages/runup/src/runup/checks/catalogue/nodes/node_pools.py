"""Nodes that no machine config pool updates: they are in none, or in several custom ones.

Who belongs to which pool is decided as the machine-config operator does (pkg/helpers, GetPoolsForNode): a pool without
a selector, or with an empty one, has no nodes; of several pools master goes before a custom pool and that before
worker; in more than one custom pool a node is an error, and is left alone. Windows nodes are not its business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kubekit.api.core_v1 import Node
from kubekit.rules.node_rules import is_windows
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools
from runup.checks.catalogue.shared.result_cache import cache_each
from runup.checks.catalogue.shared.topology import control_plane, control_plane_first
from runup.checks.decide.wording import count, names, refer
from runup.checks.writing import Context, Finding, Findings, Snapshot, declared, names_of, resource_of
from runup.rules.machine_config import PoolsOfNode, pools_of_node

CHECK_NAME = "NodePools"
IN_NONE = "NodeInNoPool"
IN_SEVERAL = "NodeInSeveralPools"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for nodes in no machine config pool, and one for nodes in several custom pools."""
    nodes = control_plane_first(snapshot.all(Node))
    if all(is_windows(node.metadata.labels) for node in nodes):
        return
    pools = all_pools(snapshot)
    # It is not known which nodes an unreadable pool selects; the engine reports that it was not read.
    kind = resource_of(MachineConfigPool)
    all_known = not snapshot.undecoded.get(kind) and not snapshot.incomplete.get(kind)
    if control_plane(snapshot) == "External" and not pools:
        return
    pools_by_node = [
        (node, node_pools)
        for node, node_pools in zip(nodes, _pools_of_node(nodes, pools), strict=True)
        if not is_windows(node.metadata.labels)
    ]
    none = [node for node, node_pools in pools_by_node if not node_pools.selecting]
    several = [(node, node_pools.custom) for node, node_pools in pools_by_node if len(node_pools.custom) > 1]
    if none and all_known:
        at_own_release_text = (
            "it at the release that it runs" if len(none) == 1 else "them at the release that they run"
        )
        listed = names_of(none)
        nodes_are = f"{count(len(none), 'node')} ({listed}) {'is' if len(none) == 1 else 'are'}"
        yield _nodes_finding(
            IN_NONE,
            f"{nodes_are} in no machine config pool: an update leaves {at_own_release_text}.",
            none,
            "Give each the role of a pool (a label such as node-role.kubernetes.io/worker), or update it yourself.",
        )
    if several:
        nodes_text = names([f"{node.metadata.name} in {names(custom)}" for node, custom in several])
        are = "is" if len(several) == 1 else "are"
        yield _nodes_finding(
            IN_SEVERAL,
            f"{count(len(several), 'node')} {are} in more than one custom machine config pool: {nodes_text}. The "
            f"machine-config operator does not update {'it' if len(several) == 1 else 'them'}.",
            [node for node, _ in several],
            "Take the labels off that put them into all but one of these pools.",
        )


def nodes_by_pool(nodes: tuple[Node, ...], pools: tuple[MachineConfigPool, ...]) -> dict[str, list[Node]]:
    """Returns the nodes that each pool updates.

    The empty name has the nodes that no pool updates: of Windows, in no pool, or in several custom ones.
    """
    members: dict[str, list[Node]] = defaultdict(list)
    for node, node_pools in zip(nodes, _pools_of_node(nodes, pools), strict=True):
        members[node_pools.updating].append(node)
    return members


@cache_each
def _pools_of_node(node: Node, pools: tuple[MachineConfigPool, ...]) -> PoolsOfNode:
    return pools_of_node(node.metadata.labels, pools)


def _nodes_finding(risk: str, message: str, nodes: Sequence[Node], remediation: str) -> Finding:
    resources = tuple(refer(node) for node in nodes)
    return Finding(name=risk, message=message, reason=risk, resources=resources, remediation=remediation)


CHECK = declared(run, CHECK_NAME, "machine-config", reads=(Node, *READS), by_hand=True, rank=100)
