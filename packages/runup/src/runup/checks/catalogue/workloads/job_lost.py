"""A Job is lost when its pod is evicted.

Applies when a Job that runs has a pod that a drain would move, and the eviction counts as its failure: its backoffLimit
is used up by it, and no rule of its podFailurePolicy spares evicted pods (action Ignore for the condition
DisruptionTarget). A Job that a CronJob made does not count: another one follows. All such Jobs are one risk.

Why it matters: the Job fails permanently, and its work so far is lost.

Remedy: let it end before its node is drained, or give Jobs like it a podFailurePolicy that ignores the condition
DisruptionTarget.

Accepting it is right where the Job can be started again.

Source of the rule: the Kubernetes documentation of Jobs (Pod backoff failure policy, Pod failure policy) and of
disruptions (DisruptionTarget).
"""

from __future__ import annotations

from kubekit.rules.owners import controller_of
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_namespace
from runup.checks.catalogue.shared.workload_reads import JOBS, Job, has_ended
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names_of, risk
from runup.rules.platform_namespaces import is_system

NAME = "JobLostByDrain"
EXAMPLE = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: science}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never}}}
status: {active: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: train-x2, namespace: science, ownerReferences: [{kind: Job, name: train, controller: true}]}
spec: {nodeName: worker-0}
status: {phase: Running}
"""


_DEFAULT_BACKOFF_LIMIT = 6


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one finding (info) that names the Jobs that fail for good when a pod is evicted."""
    fragile = sorted((job for job in snapshot.listed(JOBS) if _ends_with_its_pod(job)), key=full_name)
    if not fragile:
        return
    pods = pods_by_namespace(snapshot.listed(PODS))
    lost = [
        job
        for job in fragile
        if any(
            is_drained(pod)
            and (owner := controller_of(pod.metadata.owner_references))
            and (owner.kind, owner.name) == ("Job", job.metadata.name)
            for pod in pods.get(job.metadata.namespace, ())
        )
    ]
    if lost:
        yield risk(
            NAME,
            f"{count(len(lost), 'Job')} would fail for good by the eviction of a pod: {names_of(lost)}.",
            lost,
            severity="info",
            fix="Let them end first, or give them a podFailurePolicy that ignores the condition DisruptionTarget.",
            kind=JOBS,
        )


def _ends_with_its_pod(job: Job) -> bool:
    """Returns whether the Job runs, and does not outlive one more failed pod."""
    spec, status = job.spec, job.status
    if has_ended(job) or spec.suspend or not status.active or is_system(job.metadata.namespace):
        return False
    if any(owner.kind == "CronJob" for owner in job.metadata.owner_references) or (
        any(
            rule.action == "Ignore" and any(pattern.type == "DisruptionTarget" for pattern in rule.on_pod_conditions)
            for rule in spec.pod_failure_policy.rules
        )
    ):
        return False
    limit = _DEFAULT_BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
    return spec.backoff_limit_per_index is None and status.failed >= limit


CHECK = declared(run, NAME, "kube-controller-manager", reads=(JOBS, PODS), rank=622, severity="info")
