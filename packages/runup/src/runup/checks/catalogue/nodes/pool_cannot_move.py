"""Unavailable nodes use up the number of nodes of a pool that may be unavailable.

Applies when as many nodes of a machine config pool are unavailable as its maxUnavailable allows: nodes that are
cordoned, not ready, or have disk pressure or no network. The nodes that an update of the pool makes unavailable do not
count. A paused pool, and a pool of one node, is left out.

Why it matters: the machine-config operator starts with no further node of the pool until a node is available again.

Remedy: make the nodes available again, or raise maxUnavailable of a pool of workers; `oc get nodes` shows them Ready,
without SchedulingDisabled.

Accepting it means that the pool does not begin its update.

Source of the rule: openshift/machine-config-operator, `pkg/controller/node` (getAllCandidateMachines and
getUnavailableMachines: cordoned nodes are unavailable).
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools, pools_of_nodes
from runup.checks.writing import Context, Findings, Snapshot, declared, names_of, resource_of, risk
from runup.rules.machine_config import allowed_unavailable, nodes_by_pool, nodes_that_take_places

NAME = "MachineConfigPoolCannotMove"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
status: {machineCount: 2}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
spec: {unschedulable: true}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: ""}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each pool whose unavailable nodes leave no room for another one."""
    pools = all_pools(snapshot)
    nodes = snapshot.all(Node)
    members_by_pool = nodes_by_pool(nodes, pools_of_nodes(nodes, pools))
    for pool in sorted(pools, key=lambda each: each.metadata.name):
        name = pool.metadata.name
        if pool.spec.paused:
            continue
        members = members_by_pool.get(name, [])
        away = nodes_that_take_places(pool, members)
        allowed = allowed_unavailable(pool)
        if len(members) > 1 and len(away) >= allowed:
            yield risk(
                f"{NAME}-{name}",
                f"Machine config pool {name} updates no node while {names_of(away)} "
                f"{'is' if len(away) == 1 else 'are'} unavailable: its maxUnavailable is {allowed}.",
                [pool, *away],
                fix=f"Make {names_of(away)} available again; `oc get nodes` shows the status Ready then.",
            )


CHECK = declared(run, NAME, "machine-config", reads=(*READS, resource_of(Node)), rank=95)
