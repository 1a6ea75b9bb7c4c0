"""Names the events that record the steps of a node's update, and what each of them begins.

Events of the machine-config daemon: `Cordon`, `Drain`, `OSUpdateStarted`, `Reboot` and `Uncordon`
(https://github.com/openshift/machine-config-operator/tree/main/pkg/daemon). Events of a kubelet:
`NodeNotSchedulable`, `Rebooted`, `NodeSchedulable` and `NodeReady`
(https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/events/event.go).
"""

from __future__ import annotations

CORDON, DRAIN, APPLY, REBOOT, READY = "cordon", "drain", "apply", "reboot", "ready"
STEPS = (CORDON, DRAIN, APPLY, REBOOT, READY)
# Reasons of events about a node, with the step that each begins.
STEP_OF_REASON = {
    "Cordon": CORDON,
    "NodeNotSchedulable": CORDON,
    "Drain": DRAIN,
    "OSUpdateStarted": APPLY,
    "Reboot": REBOOT,
    "Rebooted": REBOOT,
    "Uncordon": READY,
    "NodeSchedulable": READY,
    "NodeReady": READY,
}
# Of an event: a node is an object without a namespace, and its events are in this one.
EVENTS_NAMESPACE = "default"


def is_of_node_step(kind: str, reason: str) -> bool:
    """Returns whether an event about an object of this kind, with this reason, records a step of a node's update."""
    return kind == "Node" and reason in STEP_OF_REASON
