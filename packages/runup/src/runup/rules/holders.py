"""Decides which controller keeps a node cordoned or a pool paused, and how to end that.

`oc adm uncordon` or a patch of `paused` does not help against a controller: it sets the field again, or loses track of
its own work. Covered are the controllers below, with the marks that their current releases set; a node or a pool
without such a mark counts as held by an administrator.

Sources: medik8s/node-maintenance-operator, `controllers/taint.go` (`kubevirt.io/drain` before 0.9);
kubernetes/autoscaler, `cluster-autoscaler/utils/taints`; karpenter, `pkg/apis/v1/taints.go`
(`karpenter.sh/disruption` before 1.0);
medik8s/self-node-remediation and fence-agents-remediation (`medik8s.io/remediation`); aws-node-termination-handler,
`pkg/node`; kured with `--annotate-nodes`; sriov-network-operator, `pkg/consts`.
"""

from __future__ import annotations

import msgspec

from kubekit.api.core_v1 import Node, Taint
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import PAUSED_BY


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A controller that holds a node or a pool: its name, and the remedy as a sentence.

    kind: the kind of the object that requests it, empty if it does not exist.
    """

    name: str
    remedy: str
    kind: str = ""


_MAINTENANCE = Holder(
    name="the node maintenance operator",
    kind="NodeMaintenance",
    remedy="Delete the NodeMaintenance of the node when the work is done: `oc get nodemaintenance` lists them by node. "
    "Do not uncordon the node: the operator keeps its taint.",
)
_AUTOSCALER = Holder(name="the cluster autoscaler", remedy="Wait until the cluster autoscaler has deleted the node.")
_KARPENTER = Holder(name="Karpenter", remedy="Wait until Karpenter has replaced the node.")
_REMEDIATION = Holder(
    name="a remediation operator",
    remedy="Repair the node, or wait for its remediation: the operator removes its taint when the node is healthy.",
)
_TERMINATION = Holder(name="the AWS node termination handler", remedy="Wait until the instance has been replaced.")
_KURED = Holder(name="kured", remedy="Wait until kured has restarted the node; it uncordons the node then.")
_SRIOV = Holder(
    name="the SR-IOV network operator",
    remedy="Wait until the SR-IOV network operator has configured the nodes; it resumes the pool then. "
    "`oc get sriovnetworknodestates -A` shows its progress.",
)
_UPDATE_RUN = Holder(
    name="an update run",
    kind="UpdateRun",
    remedy="Wait until the update run resumes the pool: `oc get updateruns` shows its step. If the run has ended, its "
    "last decision says how to resume the pool.",
)
_BY_TAINT = {
    "medik8s.io/drain": _MAINTENANCE,
    "kubevirt.io/drain": _MAINTENANCE,
    "ToBeDeletedByClusterAutoscaler": _AUTOSCALER,
    "karpenter.sh/disrupted": _KARPENTER,
    "karpenter.sh/disruption": _KARPENTER,
    "medik8s.io/remediation": _REMEDIATION,
}
_BY_TAINT_PREFIX = {"aws-node-termination-handler/": _TERMINATION}
_BY_ANNOTATION = {"weave.works/kured-reboot-in-progress": _KURED}
_SRIOV_STATE = "sriovnetwork.openshift.io/state"


HOLDING_ANNOTATIONS = frozenset(_BY_ANNOTATION)


def holder_of_taint(taint: Taint) -> Holder | None:
    """Returns the controller that sets a taint, None if none is known."""
    by_prefix = (holder for prefix, holder in _BY_TAINT_PREFIX.items() if taint.key.startswith(prefix))
    return _BY_TAINT.get(taint.key) or next(by_prefix, None)


def cordon_holder(node: Node) -> Holder | None:
    """Returns the controller that keeps a node cordoned, None if none is known."""
    if holder := next(filter(None, map(holder_of_taint, node.spec.taints)), None):
        return holder
    return next((holder for key, holder in _BY_ANNOTATION.items() if key in node.metadata.annotations), None)


def pause_holder(pool: MachineConfigPool) -> Holder | None:
    """Returns the controller that keeps a pool paused, None if none is known."""
    if PAUSED_BY in pool.metadata.annotations:
        return _UPDATE_RUN
    return _SRIOV if pool.metadata.annotations.get(_SRIOV_STATE) == "Paused" else None
