"""Nodes never became usable: they still have a taint that is removed at initialization.

Applies when a Node has the taint `node.cloudprovider.kubernetes.io/uninitialized` or
`node.kubernetes.io/network-unavailable` and is older than an hour.

Why it matters: no pod is scheduled to the node, although it may be Ready. A drain lacks its capacity, and the component
that removes the taint (the cloud controller manager or the network plug-in) does not work.

Remedy: see the pods of the cloud controller manager and of the network on that node; `oc describe node NAME` shows the
taint gone.

Accepting it is right where the cluster has enough capacity without them.

Source of the rule: kubernetes, `cloud-provider/api/well_known_taints.go` and the node lifecycle controller.
"""

from __future__ import annotations

from datetime import timedelta

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names_of, risk

NAME = "NodeUninitialized"
TAINTS = ("node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/network-unavailable")
PATIENCE = timedelta(hours=1)
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0, creationTimestamp: "2026-01-10T08:00:00Z"}
spec: {taints: [{key: node.cloudprovider.kubernetes.io/uninitialized, effect: NoSchedule}]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the nodes that still have a taint of their initialization."""
    held_nodes = [
        node
        for node in control_plane_first(snapshot.all(Node))
        if (
            any(taint.key in TAINTS for taint in node.spec.taints)
            and node.metadata.creation_timestamp is not None
            and (context.now - node.metadata.creation_timestamp >= PATIENCE)
        )
    ]
    if held_nodes:
        yield risk(
            NAME,
            f"{count(len(held_nodes), 'node')} never came into service, by a taint of "
            f"{'its' if len(held_nodes) == 1 else 'their'} first minutes: {names_of(held_nodes)}.",
            held_nodes,
            fix="See the cloud controller manager's and the network's pods there; `oc describe node NAME` shows "
            "the taint.",
        )


CHECK = declared(run, NAME, "machine-config", reads=(Node,), rank=550)
