"""The CronJob by which a cluster of a hub shows how its update goes, with its account. Pure.

In: how often, and the image. Out: the objects, all called `runup-status`. The account reads what `upgrade status` and
`upgrade recommend` read, and writes ConfigMap `status-newest` alone (docs/decisions/0111).
"""

from __future__ import annotations

from typing import Any

from kubekit.api.scheme import Resource
from runup.api.preflight_reads_v1 import Right
from runup.fleet.decide import newest_status
from runup.preflight.decide.cluster_run import NAMESPACE, PART_OF, Checking, account_objects, job_spec
from runup.preflight.decide.schedule import CRON_JOB, EVERY_ANNOTATION, cron_job_object
from runup.preflight.decide.service_account import CLUSTER_ROLE_BINDING, RBAC

NAME = "runup-status"
COMMAND = "report-status"
"""The command of the operator's image that the Job runs."""
TIMEOUT_S = 240
"""Seconds after which a Job that has not ended is ended: the next one must find its place free."""
# A start that is missed by more is left to the next one.
_START_DEADLINE_S = 120
# Cluster-wide, because a Role in a namespace that is not there could never be applied, and not every cluster has all.
RIGHTS = (
    Right("config.openshift.io", "clusterversions"),
    Right("config.openshift.io", "clusteroperators"),
    Right("machineconfiguration.openshift.io", "machineconfigpools"),
    Right("machineconfiguration.openshift.io", "machineconfigs"),
    Right("update.openshift.io", "updatestatuses"),
    Right("", "nodes"),
    Right("", "pods"),
    Right("apps", "deployments"),
    Right("policy", "poddisruptionbudgets"),
    Right("coordination.k8s.io", "leases"),
    Right("route.openshift.io", "routes"),
)
# https://docs.redhat.com/en/documentation/openshift_container_platform, "Accessing metrics": who may ask Thanos.
_MONITORING_VIEW = "cluster-monitoring-view"

JSON = dict[str, Any]


def objects(every: str, cron: str, image: str) -> tuple[tuple[Resource, JSON], ...]:
    """Returns the account with its rights, and the CronJob that starts as `cron` says in UTC."""
    marks: JSON = {"labels": PART_OF}
    access = account_objects(NAME, RIGHTS, config_maps=(newest_status.NAME,), verbs=("get", "patch"), marks=marks)
    made = [(each.resource, each.object) for each in access]
    spec = job_spec(NAME, Checking(image=image, user=None), (), args=(COMMAND,)) | {"activeDeadlineSeconds": TIMEOUT_S}
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": PART_OF, "annotations": {EVERY_ANNOTATION: every}}
    return (
        *made,
        (
            CLUSTER_ROLE_BINDING,
            {
                "metadata": {"name": f"{NAME}-alerts", **marks},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": _MONITORING_VIEW},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
            },
        ),
        (CRON_JOB, cron_job_object(metadata, cron, spec, start_deadline_s=_START_DEADLINE_S)),
    )
