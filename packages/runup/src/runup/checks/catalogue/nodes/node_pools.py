"""Nodes that no machine config pool updates: they are in none, or in several custom ones.

Who belongs to which pool is decided as the machine-config operator does (pkg/helpers, GetPoolsForNode): a pool without
a selector, or with an empty one, has no nodes; of several pools master goes before a custom pool and that before
worker; in more than one custom pool a node is an error, and is left alone. Windows nodes are not its business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.declaring import BY_HAND, declared
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools
from runup.checks.catalogue.shared.placement import is_windows
from runup.checks.catalogue.shared.result_cache import cache_each
from runup.checks.catalogue.shared.topology import control_plane, control_plane_first
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import count, names, resource

CHECK_NAME = "NodePools"
IN_NONE = "NodeInNoPool"
IN_SEVERAL = "NodeInSeveralPools"
BUILT_IN = ("master", "worker")


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    """Yields a risk for nodes in no machine config pool, and one for nodes in several custom pools."""
    nodes = control_plane_first(snapshot.all(Node))
    if all(is_windows(node) for node in nodes):
        return
    pools = all_pools(snapshot)
    # It is not known which nodes an unreadable pool selects; the engine reports that it was not read.
    kind = resource_of(MachineConfigPool)
    all_known = not snapshot.undecoded.get(kind) and not snapshot.incomplete.get(kind)
    if control_plane(snapshot) == "External" and not pools:
        return
    pools_by_node = list(zip(nodes, _pools_of_node(nodes, pools), strict=True))
    none = [node for node, node_pools in pools_by_node if not node_pools.selecting and not is_windows(node)]
    several = [
        (node, node_pools.custom)
        for node, node_pools in pools_by_node
        if len(node_pools.custom) > 1 and not is_windows(node)
    ]
    if none and all_known:
        yield _nodes_finding(
            IN_NONE,
            f"{_nodes_are(none)} in no machine config pool: an update leaves {_at_own_release_text(none)}.",
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


class _Pools(msgspec.Struct, frozen=True):
    """The pools of a node: all that select it, the custom ones of them, and the one that updates it.

    See `nodes_by_pool`.
    """

    selecting: list[str]
    custom: list[str]
    updating: str


@cache_each
def _pools_of_node(node: Node, pools: tuple[MachineConfigPool, ...]) -> _Pools:
    selecting = [pool.metadata.name for pool in pools if _selects_node(pool, node)]
    custom = sorted(set(selecting) - set(BUILT_IN))
    return _Pools(selecting, custom, "" if is_windows(node) else _updating_pool(selecting, custom))


def _updating_pool(pool_names: Sequence[str], custom: Sequence[str]) -> str:
    """Returns the pool that updates a node: master, else its one custom pool, else worker; empty if there is none."""
    if "master" in pool_names:
        return "master"
    if custom:
        return custom[0] if len(custom) == 1 else ""
    return "worker" if "worker" in pool_names else ""


def _selects_node(pool: MachineConfigPool, node: Node) -> bool:
    """Reports whether the pool's node selector matches the labels of `node`."""
    selector = pool.spec.node_selector
    # An empty selector selects no node, unlike a LabelSelector elsewhere (machine-config-operator, pkg/helpers).
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    return selector.matches(node.metadata.labels)


def _nodes_are(nodes: Sequence[Node]) -> str:
    listed = names([node.metadata.name for node in nodes])
    return f"{count(len(nodes), 'node')} ({listed}) {'is' if len(nodes) == 1 else 'are'}"


def _at_own_release_text(nodes: Sequence[Node]) -> str:
    return "it at the release that it runs" if len(nodes) == 1 else "them at the release that they run"


def _nodes_finding(risk: str, message: str, nodes: Sequence[Node], remediation: str) -> Finding:
    resources = tuple(resource(node) for node in nodes)
    return Finding(risk, message, reason=risk, resources=resources, remediation=remediation)


CHECK = declared(BY_HAND, CHECK_NAME, "machine-config", (Node, *READS), _run, rank=100)
