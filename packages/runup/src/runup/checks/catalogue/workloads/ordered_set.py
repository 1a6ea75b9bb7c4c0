"""A StatefulSet does not recreate its pods, because an earlier pod is not ready.

Applies when a StatefulSet creates its pods in order (podManagementPolicy OrderedReady, which is the default), and a pod
that does not recover (CrashLoopBackOff, ImagePullBackOff, Unschedulable, ...) comes before others that a drain would
move. All such StatefulSets are one risk.

Why it matters: its controller creates no pod before all pods with a lower ordinal are ready, so an evicted pod is not
recreated until the broken pod is fixed.

Remedy: fix the pod that is named: `oc describe pod NAME -n NAMESPACE`.

Accepting it means that these pods are not recreated automatically.

Source of the rule: the Kubernetes documentation of StatefulSets (Deployment and Scaling Guarantees, Forced rollback).
"""

from __future__ import annotations

from runup.checks.catalogue.shared.pods import PODS, is_broken
from runup.checks.catalogue.shared.workload_reads import STATEFUL_SETS, Workload, with_pods_that_move
from runup.checks.writing import DOWN_PATIENCE, Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "StatefulSetHeldUp"
EXAMPLE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: queue, namespace: shop}
spec: {replicas: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: queue-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: queue, controller: true}]}
spec: {nodeName: worker-0}
status: {phase: Running, containerStatuses: [{name: queue, state: {waiting: {reason: CrashLoopBackOff}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: queue-1, namespace: shop, ownerReferences: [{kind: StatefulSet, name: queue, controller: true}]}
spec: {nodeName: worker-1}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the StatefulSets that would wait for a broken earlier pod."""
    held_up: list[Workload] = []
    reasons: list[str] = []
    for workload, pods in with_pods_that_move(snapshot, STATEFUL_SETS):
        if workload.spec.pod_management_policy not in ("", "OrderedReady"):
            continue
        ordinals = [(pod.metadata.name.rpartition("-")[2], pod) for pod in pods]
        in_order = [pod for _, pod in sorted(ordinals, key=lambda pair: int(pair[0]) if pair[0].isdigit() else 0)]
        broken = next((pod for pod in in_order if is_broken(pod, context.now, DOWN_PATIENCE)), None)
        if broken is not None and any(later.status.ready for later in in_order[in_order.index(broken) + 1 :]):
            held_up.append(workload)
            why = broken.status.waiting or broken.status.pending
            reasons.append(f"{full_name(workload)} ({broken.metadata.name}: {why})")
    if held_up:
        yield risk(
            NAME,
            f"{count(len(held_up), 'StatefulSet')} would not make evicted pods again before an earlier one is ready: "
            f"{names(reasons)}.",
            held_up,
            fix="Fix the pods that are named: `oc describe pod NAME -n NAMESPACE`.",
            kind=STATEFUL_SETS,
        )


CHECK = declared(run, NAME, "kube-controller-manager", reads=(STATEFUL_SETS, PODS), rank=618)
