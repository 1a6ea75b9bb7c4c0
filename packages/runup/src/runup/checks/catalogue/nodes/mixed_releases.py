"""Nodes that are updated together run different releases.

Applies when the kubelets of nodes that are updated together, as those that one pool selects are, have different
versions. Builds of one version (`v1.34.2+k3s1`, `v1.30.4-eks-a737599`) count as the same version. A node that does not
report a version is Unknown. Which node belongs to which pool is decided as the machine-config operator does. Windows
nodes belong to no pool: another operator updates them, to its own kubelets. Without a ClusterVersion, patch releases of
one minor version are for information.

Why it matters: an update is incomplete or in progress. Some nodes are one release behind, and the version skew that
Kubernetes supports counts from the oldest node.

Remedy: find out why the pool does not finish (`oc get mcp`, `oc describe node NAME`). Let the pool finish first: then
`oc get nodes` shows one version.

Accepting it means that the update starts from two releases.

Source of the rule: machine-config-operator, `pkg/helpers` (GetPoolsForNode); kubernetes, version skew policy.
"""

from __future__ import annotations

from collections import defaultdict

from kubekit.api.core_v1 import Node
from kubekit.lang.text import count
from kubekit.rules.node_rules import is_windows
from kubekit.rules.version_skew import without_build
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import READS as POOL_READS
from runup.checks.catalogue.nodes.shared.pools import all_pools, pools_of_nodes
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.wording import names
from runup.checks.writing import Context, Findings, Snapshot, declared, names_of, resource_of, risk, unknown
from runup.rules.machine_config import nodes_by_pool
from runup.rules.node_groups import nodes_by_group

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


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of each pool or group of nodes whose kubelets have several versions."""
    nodes = control_plane_first(snapshot.all(Node))
    if not nodes:
        return
    silent = [node for node in nodes if not (node.status.node_info.kubelet_version or is_windows(node.metadata.labels))]
    # Before the pools, of which one may be unreadable.
    if silent:
        yield unknown(
            NAME,
            f"{count(len(silent), 'node')} ({names_of(silent)}) report no kubelet version",
            silent,
            fix="See whether the kubelet runs there: `oc describe node NAME`.",
        )
    if context.cluster is ClusterKind.KUBERNETES:
        owner, members_by_name = "node group", nodes_by_group(nodes)
    else:
        pools = all_pools(snapshot)
        # The nodes of a pool that is not in the list would be counted for another.
        snapshot.require_all(resource_of(MachineConfigPool))
        owner, members_by_name = "machine config pool", nodes_by_pool(nodes, pools_of_nodes(nodes, pools))
    for name, members in sorted(members_by_name.items()):
        versions: dict[str, list[Node]] = defaultdict(list)
        for node in members:
            if node.status.node_info.kubelet_version:
                versions[without_build(node.status.node_info.kubelet_version)].append(node)
        # Nodes that no pool updates are under the empty name.
        if not name or len(versions) < 2:
            continue
        descriptions = [f"{version} on {count(len(alike), 'node')}" for version, alike in sorted(versions.items())]
        fewest = min(versions.values(), key=len)
        minors = {version.rpartition(".")[0] for version in versions}
        is_patch = context.cluster is ClusterKind.KUBERNETES and len(minors) == 1
        yield risk(
            f"{NAME}-{name}",
            f"The nodes of {owner} {name} run different releases: {names(descriptions)} "
            f"(the fewest: {names_of(fewest)}).",
            fewest,
            severity="info" if is_patch else "warning",
            fix="Let its update finish first: `oc get nodes`."
            if owner == "node group"
            else f"Let the pool finish first: `oc get mcp {name}`, and `oc describe node NAME` for what holds it up.",
        )


CHECK = declared(run, NAME, "machine-config", reads=(Node, *POOL_READS), rank=190, clusters="both")
