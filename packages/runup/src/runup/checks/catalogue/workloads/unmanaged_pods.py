"""Pods have no controller, and a drain deletes them permanently.

Applies when a pod outside the platform's namespaces runs on a node and has no controller. Pods that have ended, and
those of the node itself, do not count. All such pods are one risk.

Why it matters: `oc adm drain` refuses such a pod, and with `--force` deletes it together with its data on the node.
The machine-config operator drains with force.

Remedy: give it a Deployment, StatefulSet or Job, or delete it; `oc get pods -A` shows it gone.

Accepting it is right where these pods are no longer needed.

Source of the rule: kubectl drain (pkg/drain, unmanaged pods); machine-config-operator, `pkg/controller/drain`
(Force).
"""

from __future__ import annotations

from kubekit.rules.owners import controller_of
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS, is_drained, select_pods
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names_of, risk
from runup.rules.platform_namespaces import is_system

NAME = "UnmanagedPods"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: debug, namespace: shop}
spec: {nodeName: worker-0}
status: {phase: Running}
"""


# A drain deletes these, and no controller makes them again; those of the platform are left out.
_UNOWNED_PODS = select_pods(
    lambda pods: [
        pod
        for pod in pods
        if controller_of(pod.metadata.owner_references) is None
        and is_drained(pod)
        and not is_system(pod.metadata.namespace)
    ]
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the pods that no controller recreates after a drain."""
    # The machine-config daemon does not drain the node of a single-node control plane.
    if control_plane(snapshot) == "SingleReplica":
        return
    lost = _UNOWNED_PODS(snapshot.listed(PODS))
    if lost:
        yield risk(
            NAME,
            f"{count(len(lost), 'pod')} {'has' if len(lost) == 1 else 'have'} no owner that brings "
            f"{'it' if len(lost) == 1 else 'them'} back after a drain: {names_of(lost)}.",
            lost,
            severity="info",
            fix="Give them a Deployment, StatefulSet or Job, or delete them; `oc get pods -A` shows what is left.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "machine-config", reads=(PODS, Infrastructure), rank=610, severity="info", clusters="both")
