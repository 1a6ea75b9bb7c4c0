"""Pods may take longer to end than a drain waits.

Applies when a pod that a drain evicts has a terminationGracePeriodSeconds of more than an hour. After that time the
machine-config operator reports the drain as failed, and continues to try. Other tools that update nodes wait for at
most that time.

Why it matters: a node that such a pod is on can hold up its pool for hours.

Remedy: make the period shorter, or move the pod before its node is drained; `oc get pods -A -o
custom-columns=N:.metadata.name,G:.spec.terminationGracePeriodSeconds` shows it.

Accepting it is right where the pods end sooner than they may.

Source of the rule: the documentation of Google Kubernetes Engine, Node upgrade strategies (a drain respects budgets and
grace periods for up to an hour); machine-config-operator, `pkg/controller/drain` (DrainTimeoutDuration, an hour).
"""

from __future__ import annotations

from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS, is_drained, select_pods
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "LongTerminationGrace"
DRAIN_TIMEOUT_S = 3600
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: "1"}]}
spec: {nodeName: worker-0, terminationGracePeriodSeconds: 7200}
status: {phase: Running}
"""


_SLOW_PODS = select_pods(
    lambda pods: [
        pod for pod in pods if pod.spec.termination_grace_period_seconds > DRAIN_TIMEOUT_S and is_drained(pod)
    ]
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the pods whose grace period is longer than a drain waits."""
    # The machine-config daemon does not drain the node of a single-node control plane.
    if control_plane(snapshot) == "SingleReplica":
        return
    slow = _SLOW_PODS(snapshot.listed(PODS))
    if slow:
        listing = names([f"{full_name(pod)} ({pod.spec.termination_grace_period_seconds} s)" for pod in slow])
        yield risk(
            NAME,
            f"{count(len(slow), 'pod')} may take longer to end than a drain waits ({DRAIN_TIMEOUT_S} s): {listing}.",
            slow,
            severity="info",
            fix="Shorten terminationGracePeriodSeconds, or move these pods before their nodes are drained.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "machine-config", reads=(PODS, Infrastructure), rank=600, severity="info", clusters="both")
