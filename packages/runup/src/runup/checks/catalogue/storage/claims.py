"""A pod has a volume that would be lost after an eviction.

Applies when a pod that a drain would move has a PersistentVolumeClaim that is being deleted, that has lost its volume
(phase Lost), or that is not there any more. All such claims are one risk. It is critical if a claim was seen in this
state; a claim that is not there may have been made after claims were listed, and before pods were.

Why it matters: a claim in use is only deleted once no pod has it: when its pod is evicted the claim goes, and with
reclaim policy Delete its data. A claim that has lost its volume, or was deleted, blocks the next pod permanently.

Remedy: save the data and recreate the claim before the node is drained; `oc describe pvc NAME -n NAMESPACE` shows the
pods that use it.

Accepting it means that these pods are not recreated, and that their data may be lost.

Source of the rule: the Kubernetes documentation of persistent volumes (Storage Object in Use Protection, phases of
claims).
"""

from __future__ import annotations

from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.storage.shared.volumes import CLAIMS, claims_that_move
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "VolumeClaimLost"
EXAMPLE = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, deletionTimestamp: "2026-01-10T12:00:00Z"}
spec: {volumeName: pv-1}
status: {phase: Bound}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: db}]}
spec: {nodeName: worker-0, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
status: {phase: Running}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the pods whose claim is missing, deleted or without its volume."""
    lost, has_claims = [], False
    for pod, name, claim in claims_that_move(snapshot):
        if claim is None:
            # One that is not in the list may be there.
            snapshot.require_all(CLAIMS, pod.metadata.namespace)
            why = "is not there"
        elif claim.metadata.deletion_timestamp is not None:
            why = "is being deleted"
        else:
            why = "has lost its volume" if claim.status.phase == "Lost" else ""
        if why:
            has_claims = has_claims or claim is not None
            lost.append((pod, f"{full_name(pod)} ({name} {why})"))
    if lost:
        yield risk(
            NAME,
            f"{count(len(lost), 'pod')} would not get {'its' if len(lost) == 1 else 'their'} volume again: "
            f"{names([text for _, text in lost])}.",
            [pod for pod, _ in lost],
            severity="critical" if has_claims else "warning",
            fix="Save the data and recreate the claim: `oc describe pvc NAME -n NAMESPACE` shows who has it.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "kube-controller-manager", reads=(PODS, CLAIMS), rank=635, severity="critical")
