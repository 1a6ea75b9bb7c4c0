"""Nodes run out of disk, memory or processes, or have no network.

Applies when a Node has the condition DiskPressure,
MemoryPressure, PIDPressure or NetworkUnavailable. All such Nodes are one risk.

Why it matters: such a node evicts pods and takes no new ones; the target's images, several gigabytes, do not fit on a
disk that is full.

Remedy: make room (`oc adm node-logs`, `oc debug node/NAME -- chroot /host crictl rmi --prune`), or replace the node;
`oc describe node NAME` shows the condition gone.

Accepting it means that these nodes may not take the update.

Source of the rule: kubernetes, node conditions and eviction by the kubelet.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.result_cache import cache_each
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, risk

NAME = "NodePressure"
TYPES = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {conditions: [{type: DiskPressure, status: "True"}, {type: Ready, status: "True"}]}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the nodes that report pressure or no network."""
    nodes = control_plane_first(snapshot.all(Node))
    pressed = [(node, why) for node, why in zip(nodes, _pressure_types(nodes, ()), strict=True) if why]
    if pressed:
        listing = names([f"{node.metadata.name} ({why})" for node, why in pressed])
        yield risk(
            NAME,
            f"{count(len(pressed), 'node')} {'lacks' if len(pressed) == 1 else 'lack'} room or network: {listing}.",
            [node for node, _ in pressed],
            fix="Make room on them or replace them; `oc describe node NAME` shows the condition.",
        )


@cache_each
def _pressure_types(node: Node, _: tuple[()]) -> str:
    return ", ".join(
        condition.type for condition in node.status.conditions if condition.type in TYPES and condition.status == "True"
    )


CHECK = declared(run, NAME, "machine-config", reads=(Node,), rank=540)
