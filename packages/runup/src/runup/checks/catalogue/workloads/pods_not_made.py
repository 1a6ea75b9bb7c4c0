"""A workload lacks pods that its controller is not allowed to create.

Applies when a Deployment has the condition ReplicaFailure: an attempt to make one of its pods was refused, by a
quota, by pod security admission, by security context constraints or by a webhook. All such Deployments are one risk.

Why it matters: the same refusal applies to every pod that a drain evicts, so such a workload loses its pods node by
node. A Deployment of the platform does not get the target's pods.

Remedy: `oc describe replicaset NAME -n NAMESPACE` shows the refusal in its events; remove its cause.

Accepting it means that these workloads shrink with each node that is drained.

Source of the rule: kubernetes, apps/v1 (DeploymentReplicaFailure) and `pkg/controller/replicaset` (FailedCreate).
"""

from __future__ import annotations

from kubekit.api.conditions import find
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS
from runup.checks.writing import Context, Findings, Snapshot, cause, count, declared, full_name, risk

NAME = "PodsNotMade"
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 3}
status:
  replicas: 2
  conditions:
  - {type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-6d9" is forbidden: exceeded quota'}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk for the Deployments whose condition ReplicaFailure is True."""
    failing = [
        (deployment, failure)
        for deployment in sorted(snapshot.listed(DEPLOYMENTS), key=full_name)
        if (failure := find(deployment.status.conditions, "ReplicaFailure"))
        and failure.status == "True"
        and deployment.spec.replicas
    ]
    if failing:
        first, refused = failing[0]
        more = f" (and of {count(len(failing) - 1, 'other')})" if len(failing) > 1 else ""
        yield risk(
            NAME,
            f"A pod of Deployment {full_name(first)}{more} was refused: {cause(refused)}.",
            [deployment for deployment, _ in failing],
            fix="Fix what the events of `oc describe replicaset -n NAMESPACE` name; the condition then goes away.",
            kind=DEPLOYMENTS,
        )


CHECK = declared(run, NAME, "kube-controller-manager", reads=(DEPLOYMENTS,), rank=614)
