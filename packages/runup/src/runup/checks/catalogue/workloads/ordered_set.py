"""A StatefulSet does not make its pods again, because one before them is not ready.

Applies when a StatefulSet makes its pods in order (podManagementPolicy OrderedReady, which is the default), and a pod
that does not recover (CrashLoopBackOff, ImagePullBackOff, Unschedulable, ...) comes before others that a drain would
move. All such StatefulSets are one risk.

Why it matters: its controller makes no pod before all those with a smaller number are ready: each pod that is evicted
is gone until the broken one is mended.

What to do: mend the pod that is named: `oc describe pod NAME -n NAMESPACE`.

Accepting it means that these pods do not come back by themselves.

Source of the rule: the Kubernetes documentation of StatefulSets (Deployment and Scaling Guarantees, Forced rollback).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubekit.api.pod_parts import PlacedPod
from runup.checks.catalogue.declaring import declared, namespaced_name, risk
from runup.checks.catalogue.shared.pods import PODS, is_broken
from runup.checks.catalogue.shared.workload_reads import STATEFUL_SETS, with_pods_that_move
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import DOWN_PATIENCE, count, names

NAME = "StatefulSetHeldUp"
EXAMPLE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: queue, namespace: shop}
spec: {replicas: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: queue-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: queue}]}
spec: {nodeName: worker-0}
status: {phase: Running, containerStatuses: [{name: queue, state: {waiting: {reason: CrashLoopBackOff}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: queue-1, namespace: shop, ownerReferences: [{kind: StatefulSet, name: queue}]}
spec: {nodeName: worker-1}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
"""


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    """Yields one risk that names the StatefulSets that would wait for a broken earlier pod."""
    held_up = [
        (workload, broken)
        for workload, pods in with_pods_that_move(snapshot, STATEFUL_SETS)
        if workload.spec.pod_management_policy in ("", "OrderedReady")
        if (broken := _first_broken(pods, context))
    ]
    if held_up:
        listing = names(
            [f"{namespaced_name(workload)} ({pod.metadata.name}: {_broken_reason(pod)})" for workload, pod in held_up]
        )
        yield risk(
            NAME,
            f"{count(len(held_up), 'StatefulSet')} would not make evicted pods again before an earlier one is ready: "
            f"{listing}.",
            [workload for workload, _ in held_up],
            fix="Mend the pods that are named: `oc describe pod NAME -n NAMESPACE`.",
            kind=STATEFUL_SETS,
        )


def _first_broken(pods: Sequence[PlacedPod], context: Context) -> PlacedPod | None:
    """Returns the first broken pod by ordinal if healthy pods come after it, else None."""
    in_order = sorted(pods, key=_ordinal)
    for place, pod in enumerate(in_order):
        if is_broken(pod, context.now, DOWN_PATIENCE):
            return pod if any(later.status.ready for later in in_order[place + 1 :]) else None
    return None


def _ordinal(pod: PlacedPod) -> int:
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _broken_reason(pod: PlacedPod) -> str:
    return pod.status.waiting or pod.status.pending


CHECK = declared(__doc__, NAME, "kube-controller-manager", (STATEFUL_SETS, PODS), _run, rank=618, example=EXAMPLE)
