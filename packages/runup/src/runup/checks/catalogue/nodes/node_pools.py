"""Nodes that no machine config pool updates: they are in none, or in several custom ones.

Who belongs to which pool is decided as the machine-config operator does (pkg/helpers, GetPoolsForNode): a pool without
a selector, or with an empty one, has no nodes; of several pools master goes before a custom pool and that before
worker; in more than one custom pool a node is an error, and is left alone. Windows nodes are not its business.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.rules.node_rules import is_windows
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools, pools_of_nodes
from runup.checks.catalogue.shared.topology import control_plane, control_plane_first
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, names_of, resource_of, risk

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
        for node, node_pools in zip(nodes, pools_of_nodes(nodes, pools), strict=True)
        if not is_windows(node.metadata.labels)
    ]
    none = [node for node, node_pools in pools_by_node if not node_pools.selecting]
    several = [(node, node_pools.custom) for node, node_pools in pools_by_node if len(node_pools.custom) > 1]
    if none and all_known:
        single = len(none) == 1
        leaves = "it at the release that it runs" if single else "them at the release that they run"
        yield risk(
            IN_NONE,
            f"{count(len(none), 'node')} ({names_of(none)}) {'is' if single else 'are'} in no machine config pool: an "
            f"update leaves {leaves}.",
            none,
            fix="Give each the role of a pool (a label such as node-role.kubernetes.io/worker), or update it yourself.",
        )
    if several:
        single = len(several) == 1
        nodes_text = names([f"{node.metadata.name} in {names(custom)}" for node, custom in several])
        yield risk(
            IN_SEVERAL,
            f"{count(len(several), 'node')} {'is' if single else 'are'} in more than one custom machine config pool: "
            f"{nodes_text}. The machine-config operator does not update {'it' if single else 'them'}.",
            [node for node, _ in several],
            fix="Take the labels off that put them into all but one of these pools.",
        )


CHECK = declared(run, CHECK_NAME, "machine-config", reads=(Node, *READS), by_hand=True, rank=100)
