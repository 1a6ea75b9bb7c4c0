"""Pods of the platform cannot run: their image does not come, or their containers end again and again.

Applies when a pod in a namespace of the platform (`openshift-*`, `kube-system`) has a container in CrashLoopBackOff,
ImagePullBackOff or a state like it. All of them are one risk.

Why it matters an update brings hundreds of images and restarts every one of these: what cannot be pulled today cannot
be pulled then, and an operator without its pods does not finish.

What to do `oc describe pod NAME -n NAMESPACE` says why: a pull secret, a mirror, a proxy, or the container's own log.

Accepting it means that the update may wait for these pods.

Source of the rule kubernetes, `pkg/kubelet` (reasons of waiting containers).
"""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.core_v1 import PlacedPod
from runup.checks.catalogue.declaring import declared, named, risk
from runup.checks.catalogue.shared.namespaces import is_system
from runup.checks.catalogue.shared.pods import ENDED, PODS, those
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import count, names

NAME = "SystemPodsFailing"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: console-5d9, namespace: openshift-console}
spec: {nodeName: worker-0}
status:
  phase: Pending
  containerStatuses: [{name: console, state: {waiting: {reason: ImagePullBackOff}}}]
"""


@those
def _failing(pods: list[PlacedPod]) -> list[PlacedPod]:
    return [
        pod
        for pod in pods
        if pod.waiting and pod.status.phase not in ENDED and is_system(pod.metadata.namespace)
        if pod.metadata.deletion_timestamp is None
    ]


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    failing = _failing(snapshot.listed(PODS))
    if failing:
        listing = names([f"{named(pod)} ({pod.waiting})" for pod in failing])
        yield risk(
            NAME,
            f"{count(len(failing), 'pod')} of the platform cannot run: {listing}.",
            failing,
            fix="See `oc describe pod NAME -n NAMESPACE`, and mend what it names; `oc get pods -A` shows them Running.",
            kind=PODS,
        )


CHECK = declared(__doc__, NAME, "cluster-version-operator", (PODS,), _run, rank=580, example=EXAMPLE)
