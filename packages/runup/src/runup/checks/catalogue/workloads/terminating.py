"""Objects are being deleted, and their deletion does not finish.

Applies when a namespace has been in deletion for an hour or more and is one of the platform (`kube-*`), or has pods
that a drain would move; or when a pod on a node has been in deletion for an hour longer than its grace period. On
OpenShift namespaces `openshift-*` are of the platform, too.

Why it matters: a pod whose deletion does not finish blocks the drain of its node. A namespace of the platform may be
one that the update deletes or recreates; in a namespace that is being deleted, evicted pods cannot be recreated.

Remedy: `oc get namespace NAME -o yaml` names the remaining kinds and finalizers; for a pod, check its finalizers and
whether its node exists. `oc get namespaces` then no longer shows the namespace.

Accepting it means that a drain may wait for these pods.

Source of the rule: kubernetes, `pkg/controller/namespace` and the kubelet's termination of pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.core_v1 import Namespace
from kubekit.api.pod_parts import PlacedPod
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_namespace, select_pods
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, risk, since_text
from runup.rules.platform_namespaces import is_system

NAME = "StuckTerminating"
PATIENCE = timedelta(hours=1)
EXAMPLE = """
apiVersion: v1
kind: Namespace
metadata: {name: kube-old, deletionTimestamp: "2026-01-10T12:00:00Z"}
"""


_ENDING_PODS = select_pods(
    lambda pods: [pod for pod in pods if pod.metadata.deletion_timestamp is not None and pod.spec.node_name]
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk for namespaces, and one for pods, whose deletion does not end."""
    namespaces = [
        namespace for namespace in snapshot.all(Namespace) if _is_stuck(namespace.metadata.deletion_timestamp, context)
    ]
    if namespaces:
        pods_of: Mapping[str, Sequence[PlacedPod]] = {}
        if any(not is_system(full_name(namespace)) for namespace in namespaces):
            pods_of = pods_by_namespace(snapshot.listed(PODS))
        namespaces = [
            namespace
            for namespace in namespaces
            if is_system(namespace.metadata.name) or any(map(is_drained, pods_of.get(namespace.metadata.name, ())))
        ]
    if namespaces:
        namespaces.sort(key=full_name)
        listing = names(
            [
                f"{full_name(namespace)} ({since_text(namespace.metadata.deletion_timestamp)})"
                for namespace in namespaces
            ]
        )
        yield risk(
            NAME,
            f"{count(len(namespaces), 'namespace')} cannot be deleted: {listing}.",
            namespaces,
            fix="See with `oc get namespace NAME -o yaml` which kinds and finalizers are left.",
        )
    ending_pods = _ENDING_PODS(snapshot.listed(PODS))
    pods = [pod for pod in ending_pods if _is_stuck(pod.metadata.deletion_timestamp, context)]
    if pods:
        listing = names([f"{full_name(pod)} ({since_text(pod.metadata.deletion_timestamp)})" for pod in pods])
        yield risk(
            NAME,
            f"{count(len(pods), 'pod')} should have ended: {listing}.",
            pods,
            fix="See whether their nodes are there, and which finalizers they have: `oc get pod NAME -o yaml`.",
            kind=PODS,
        )


def _is_stuck(deleted: datetime | None, context: Context) -> bool:
    """Returns whether the object should have been gone for at least `PATIENCE`.

    A deletionTimestamp is the moment by which the object was to be gone.
    """
    return deleted is not None and context.now - deleted >= PATIENCE


CHECK = declared(run, NAME, "machine-config", reads=(Namespace, PODS), rank=590)
