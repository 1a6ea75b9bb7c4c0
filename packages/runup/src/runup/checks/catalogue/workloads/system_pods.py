"""Pods of the platform cannot run: they are not scheduled, do not start, or their containers restart repeatedly.

Applies when a pod in a namespace of the platform (`openshift-*`, `kube-*`) has a container in CrashLoopBackOff,
ImagePullBackOff or a state like it, or has been Pending for ten minutes or more: Unschedulable, ContainerCreating, or
without a reason. A pod that is held back by a scheduling gate does not count. All such pods are one risk.

Why it matters: an update pulls hundreds of images and restarts all of these pods. An image that cannot be pulled today
cannot be pulled during the update, and an operator without pods does not finish.

Remedy: `oc describe pod NAME -n NAMESPACE` says why: a pull secret, a mirror, a proxy, a volume, room on the nodes, or
the container's own log.

Accepting it means that the update may wait for these pods.

Source of the rule: kubernetes, `pkg/kubelet` (reasons of waiting containers) and core/v1 (phase Pending, condition
PodScheduled).
"""

from __future__ import annotations

from kubekit.rules.eviction_rules import ENDED
from runup.checks.catalogue.shared.pods import PODS, select_pods
from runup.checks.writing import DOWN_PATIENCE, Context, Findings, Snapshot, count, declared, full_name, names, risk
from runup.rules.platform_namespaces import is_system

NAME = "SystemPodsFailing"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: coredns-5d9, namespace: kube-system}
spec: {nodeName: worker-0}
status:
  phase: Pending
  containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff}}}]
"""


# Pods of the platform's namespaces that wait or are Pending, and are not being deleted.
_FAILING_PODS = select_pods(
    lambda pods: [
        pod
        for pod in pods
        if (pod.status.waiting or pod.status.pending)
        and pod.status.phase not in ENDED
        and is_system(pod.metadata.namespace)
        and pod.metadata.deletion_timestamp is None
    ]
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the pods of the platform that cannot run."""
    failing = [
        pod
        for pod in _FAILING_PODS(snapshot.listed(PODS))
        if pod.status.waiting
        or (
            pod.metadata.creation_timestamp is not None
            and context.now - pod.metadata.creation_timestamp >= DOWN_PATIENCE
        )
    ]
    if failing:
        listing = names([f"{full_name(pod)} ({pod.status.waiting or pod.status.pending})" for pod in failing])
        yield risk(
            NAME,
            f"{count(len(failing), 'pod')} of the platform cannot run: {listing}.",
            failing,
            fix="See `oc describe pod NAME -n NAMESPACE`, and fix what it names; `oc get pods -A` shows them Running.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "cluster-version-operator", reads=(PODS,), rank=580)
