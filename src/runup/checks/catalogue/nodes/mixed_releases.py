"""Nodes of one machine config pool run different releases.

Applies when the kubelets of nodes that one pool selects have different versions. A node that does not report a
version is Unknown. Who belongs to which pool is decided as the machine-config operator does, which has nothing to do
with Windows nodes: another operator updates them, to kubelets of its own.

Why it matters an update was left half done, or is under way: the target is applied to nodes of which some are a release
behind, and the distance that Kubernetes supports counts from the oldest.

What to do see what holds the pool up (`oc get mcp`, `oc describe node NAME`), and let it finish first;
`oc get nodes` then shows one version.

Accepting it means to update from two releases at once.

Source of the rule machine-config-operator, `pkg/helpers` (GetPoolsForNode); kubernetes, version skew policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.declaring import declared, risk, unsure
from runup.checks.catalogue.nodes.node_pools import by_pool
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools
from runup.checks.catalogue.shared.placement import is_windows
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import count, names

NAME = "NodeReleasesMixed"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
status: {nodeInfo: {kubeletVersion: v1.36.2}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}
status: {nodeInfo: {kubeletVersion: v1.35.7}}
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    nodes = control_plane_first(snapshot.all(Node))
    if not nodes:
        return
    pools = all_pools(snapshot)
    # The nodes of a pool that is not in the list would be counted for another.
    snapshot.require_all(resource_of(MachineConfigPool))
    silent = [node for node in nodes if not (node.status.node_info.kubelet_version or is_windows(node))]
    for pool, members in sorted(by_pool(nodes, pools).items()):
        if pool:
            yield from _judge(pool, [node for node in members if node.status.node_info.kubelet_version])
    if silent:
        yield unsure(
            NAME,
            f"{count(len(silent), 'node')} ({names([node.metadata.name for node in silent])}) report no kubelet "
            "version",
            silent,
            fix="See whether the kubelet runs there: `oc describe node NAME`.",
        )


def _judge(pool: str, nodes: list[Node]) -> Iterator[Finding]:
    versions: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        versions[node.status.node_info.kubelet_version.partition("+")[0]].append(node)
    if len(versions) < 2:
        return
    descriptions = [
        f"{version} on {count(len(version_nodes), 'node')}" for version, version_nodes in sorted(versions.items())
    ]
    fewest = min(versions.values(), key=len)
    yield risk(
        f"{NAME}-{pool}",
        f"The nodes of machine config pool {pool} run different releases: {names(descriptions)} (the fewest: "
        f"{names([node.metadata.name for node in fewest])}).",
        fewest,
        fix=f"Let the pool finish first: `oc get mcp {pool}`, and `oc describe node NAME` for what holds it up.",
    )


CHECK = declared(__doc__, NAME, "machine-config", (Node, *READS), _run, rank=190, example=EXAMPLE)
