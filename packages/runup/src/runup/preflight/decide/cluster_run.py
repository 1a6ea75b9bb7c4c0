"""The objects of a preflight that runs as a Job in the cluster, without a managing operator of ours.

In: a `Run`, which says what is checked with which image, and what the checks may read. Out: the objects to apply, in
order, and those to delete again. Each run has objects of its own, all called `runup-<id>`, so that two runs at once
share nothing but the namespace and the ConfigMap of kept reports. The command that starts a run also removes it; what a
killed command left has an annotation that says when it may be removed (docs/decisions/0087).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import RESOURCES, Resource
from runup.api.preflight_reads_v1 import Right
from runup.preflight.decide import preflight_deployment, service_account
from runup.process.names import NOBODY
from runup.process.plan import Apply, Delete
from runup.report import report

NAMESPACE = "runup-preflight"
"""The namespace of runs, schedules and their reports, on every cluster (docs/decisions/0087)."""
FIELD_MANAGER = "runup-preflight"
"""Whose the fields are that the commands and the scheduled runs set."""
PART_OF = {"app.kubernetes.io/part-of": "runup"}
RUN_LABEL = "preflight.runup.dev/run"
"""Label of every object of one run, with the run's ID."""
EXPIRES_ANNOTATION = "preflight.runup.dev/expires"
"""Annotation with the time after which nobody waits for the run any more, RFC 3339 in UTC."""
REPORTS_LABEL = "preflight.runup.dev/reports"
"""Label of the ConfigMap that keeps reports, by which others collect it."""

JOB = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
NETWORK_POLICY = Resource(
    group="networking.k8s.io", version="v1", kind="NetworkPolicy", plural="networkpolicies", namespaced=True
)
NAMESPACES = RESOURCES["kubekit.api.core_v1.Namespace"]
CONFIG_MAP = RESOURCES["kubekit.api.core_v1.ConfigMap"]
# What a run is made of, in the order of deletion: the Job first, and what gives rights before the account.
KINDS = (
    JOB,
    service_account.CLUSTER_ROLE_BINDING,
    service_account.ROLE_BINDING,
    service_account.CLUSTER_ROLE,
    service_account.ROLE,
    NETWORK_POLICY,
    service_account.SERVICE_ACCOUNT,
    CONFIG_MAP,
)

CONTAINER = "preflight"
DISRUPTED = "DisruptionTarget"
"""Condition of a pod that was ended for another reason than what its process did: a drain, a preemption."""
# Seconds that a command may take after the Job's deadline until its objects count as left over.
LEFT_AFTER_S = 300
# Seconds after which the cluster itself removes an ended Job whose command was killed.
_JOB_KEPT_S = 3600
# A folder that no image has.
_NO_RELEASE = "/no-release"
# The Job may run where the scheduler finds room, on control plane nodes too; it tolerates no node that is broken.
_TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoSchedule"}
    for key in ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
]

JSON = dict[str, Any]


class Checking(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a run: its target and options; the process in the Job chooses empty ones.

    `image` runs; its files are the target's only if it is `target_image`. `user` is the user ID of its process, None
    where the cluster assigns one (OpenShift's `restricted-v2`). `prometheus_ca` are certificates as PEM.
    """

    image: str
    target_version: str = ""
    target_channel: str = ""
    source_version: str = ""
    target_image: str = ""
    user: int | None = NOBODY
    check_timeout_s: float = 10.0
    prometheus_url: str = ""
    prometheus_ca: str = ""
    reads_catalogs: bool = False
    inner_registries: tuple[str, ...] = ()
    quantities: preflight_deployment.Quantities = preflight_deployment.Quantities()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A preflight as a Job: its ID, what it checks with which image, the rights of its account, and its time limit."""

    id: str
    checking: Checking
    rights: tuple[Right, ...]
    started: datetime
    timeout_s: int = 600

    @property
    def name(self) -> str:
        """The name of the run's objects."""
        return f"runup-{self.id}"


def run_id(now: datetime, random: str) -> str:
    """Returns a run's ID, of the form that attempts have; `random` is ten hexadecimal digits."""
    return f"preflight-{int(now.timestamp())}-{random}"


def namespace_object() -> Apply:
    """Returns the namespace: its pods must need no privilege, and OpenShift's monitoring reads its rules."""
    labels = PART_OF | {
        "pod-security.kubernetes.io/enforce": "restricted",
        # https://docs.redhat.com/en/documentation/openshift_container_platform, "Configuring core platform monitoring"
        "openshift.io/cluster-monitoring": "true",
    }
    return Apply(resource=NAMESPACES, object={"metadata": {"name": NAMESPACE, "labels": labels}})


def objects(run: Run) -> tuple[Apply, ...]:
    """Returns the objects of a run in the order in which they are applied: the account and its rights, then the Job."""
    expires = run.started.astimezone(UTC) + timedelta(seconds=run.timeout_s + LEFT_AFTER_S)
    marks = {
        "labels": PART_OF | {RUN_LABEL: run.id},
        "annotations": {
            preflight_deployment.ID_ANNOTATION: run.id,
            EXPIRES_ANNOTATION: f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        },
    }
    access = account_objects(
        run.name,
        run.rights,
        config_maps=(preflight_deployment.report_map(run.id),),
        verbs=("get", "create", "patch"),
        marks=marks,
    )
    return (*access, Apply(resource=JOB, object=_with_marks(job(run), marks)))


def deletions(run: Run) -> tuple[Delete, ...]:
    """Returns the deletions of all that `objects` names, and of the report that the Job wrote."""
    applied = [(apply.resource, apply.object["metadata"]) for apply in objects(run)]
    return deletions_of((*applied, _report_object(run.id)))


def deletions_of(objects: Iterable[tuple[Resource, JSON]], first_kinds: Iterable[Resource] = ()) -> tuple[Delete, ...]:
    """Returns the deletions of objects (kind and metadata): of the kinds `first_kinds`, then as `KINDS` are in "
    "order."""
    order = (*first_kinds, *KINDS)
    return tuple(
        Delete(resource, NamespacedName(metadata.get("namespace", ""), metadata["name"]))
        for resource, metadata in sorted(objects, key=lambda pair: order.index(pair[0]))
    )


def with_reports(objects: Iterable[tuple[Resource, JSON]]) -> tuple[tuple[Resource, JSON], ...]:
    """Returns objects of runs (kind and metadata), and the report of each run that has one in our namespace.

    The process in the pod writes its report without the label of the run, so that no search by it finds the report.
    """
    objects = tuple(objects)
    in_namespace = (metadata for _, metadata in objects if metadata.get("namespace") == NAMESPACE)
    runs = dict.fromkeys(metadata["labels"][RUN_LABEL] for metadata in in_namespace)
    return (*objects, *(_report_object(run) for run in runs))


def _report_object(run: str) -> tuple[Resource, JSON]:
    return CONFIG_MAP, {"name": preflight_deployment.report_map(run), "namespace": NAMESPACE}


def is_left_over(metadata: Mapping[str, Any], now: datetime) -> bool:
    """Returns whether an object of a run was left behind by a command that was killed.

    An object without a valid time is kept: it may have been made by hand.
    """
    try:
        expires = datetime.fromisoformat(str((metadata.get("annotations") or {}).get(EXPIRES_ANNOTATION, "")))
    except ValueError:
        return False
    return expires.utcoffset() is not None and expires < now


def account_objects(
    name: str, rights: Iterable[Right], config_maps: tuple[str, ...], verbs: tuple[str, ...], marks: JSON
) -> tuple[Apply, ...]:
    """Returns an account called `name`, which may read `rights` and use `verbs` on its ConfigMaps, and nothing else.

    A NetworkPolicy admits no traffic to its pods. A namespace that does not exist holds nothing to read, so its Role is
    left out.
    """
    rights = tuple(rights)
    own_rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [*config_maps], "verbs": list(verbs)}
    objects: list[tuple[Resource, JSON]] = [
        (service_account.SERVICE_ACCOUNT, {"metadata": {"name": name, "namespace": NAMESPACE}}),
        (service_account.CLUSTER_ROLE, {"metadata": {"name": name}, "rules": service_account.read_rules(rights)}),
        (
            service_account.CLUSTER_ROLE_BINDING,
            {"metadata": {"name": name}, **service_account.role_binding(service_account.CLUSTER_ROLE, name, NAMESPACE)},
        ),
    ]
    for namespace in sorted({right.namespace for right in rights} - {""} | {NAMESPACE}):
        rules = ([own_rule] if namespace == NAMESPACE else []) + service_account.read_rules(rights, namespace)
        metadata = {"name": name, "namespace": namespace}
        objects.append((service_account.ROLE, {"metadata": metadata, "rules": rules}))
        objects.append(
            (
                service_account.ROLE_BINDING,
                {"metadata": dict(metadata), **service_account.role_binding(service_account.ROLE, name, NAMESPACE)},
            )
        )
    policy = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}, "policyTypes": ["Ingress"]}
    objects.append((NETWORK_POLICY, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": policy}))
    return tuple(
        Apply(
            resource=resource,
            object=_with_marks(obj, marks),
            where_namespace=obj["metadata"].get("namespace", NAMESPACE) != NAMESPACE,
        )
        for resource, obj in objects
    )


def job(run: Run) -> JSON:
    """Returns the Job: one pod, once, and no longer than the run may take."""
    checking = run.checking
    env = {"PREFLIGHT_ID": run.id, "PREFLIGHT_REPORT_SINK": "configmap"}
    spec = job_spec(run.name, checking, [{"name": key, "value": value} for key, value in env.items()])
    spec |= {"activeDeadlineSeconds": run.timeout_s, "ttlSecondsAfterFinished": _JOB_KEPT_S}
    return {"metadata": {"name": run.name, "namespace": NAMESPACE}, "spec": spec}


def job_spec(name: str, checking: Checking, env: Iterable[JSON], args: tuple[str, ...] = ()) -> JSON:
    """Returns the spec of a Job that runs `checking` under account `name`; `env` says where the report goes.

    `args` is another command of the image than the preflight.

    A pod that fails is not tried again: what it said is the result. One that is evicted has said nothing, and is
    replaced.
    """
    labels = PART_OF | {"app.kubernetes.io/name": name}
    labels |= (
        {preflight_deployment.TARGET_LABEL: preflight_deployment.label_value(checking.target_version)}
        if checking.target_version
        else {}
    )
    return {
        "backoffLimit": 0,
        # https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": DISRUPTED, "status": "True"}]}]
        },
        "completions": 1,
        "parallelism": 1,
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec(name, checking, env, args)},
    }


def _pod_spec(name: str, checking: Checking, env: Iterable[JSON], args: tuple[str, ...]) -> JSON:
    """Returns the spec of the run's Pod."""
    security: JSON = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    # It runs the checks once, or the command `args`.
    checks = (
        preflight_deployment.COMMAND,
        "--once",
        f"--format={report.FORMAT}",
        f"--check-timeout={checking.check_timeout_s:g}",
    )
    container = {
        "name": CONTAINER,
        "image": checking.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [*(args or checks)],
        "env": [*env, *({"name": key, "value": value} for key, value in _environment(checking).items())],
        "resources": preflight_deployment.resources_of(checking.quantities),
        "securityContext": preflight_deployment.confined(),
        # A process that fails says why in the last lines of its log, which then are in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- the pod's own
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": name,
        # Explicit, because a ServiceAccount may turn it off.
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "tolerations": [dict(toleration) for toleration in _TOLERATIONS],
        "securityContext": security | ({"runAsUser": checking.user} if checking.user is not None else {}),
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _environment(checking: Checking) -> dict[str, str]:
    """Returns the container's environment by which `preflight` knows what to check; empty values are left out."""
    values = {
        "CVO_NAMESPACE": NAMESPACE,
        "PREFLIGHT_TARGET_VERSION": checking.target_version,
        "PREFLIGHT_TARGET_CHANNEL": checking.target_channel,
        "PREFLIGHT_SOURCE_VERSION": checking.source_version,
        "PREFLIGHT_TARGET_IMAGE": checking.target_image,
        "PREFLIGHT_PROMETHEUS_URL": checking.prometheus_url,
        "PREFLIGHT_PROMETHEUS_CA": checking.prometheus_ca,
        # What our own image holds is the release of this operator, whose definitions say nothing of the target's.
        "PAYLOAD_OVERRIDE": "" if checking.image == checking.target_image else _NO_RELEASE,
        "PREFLIGHT_CATALOGS": "read" if checking.reads_catalogs else "skip",
        "PREFLIGHT_INNER_REGISTRIES": " ".join(checking.inner_registries),
    }
    return {name: value for name, value in values.items() if value}


def _with_marks(obj: JSON, marks: JSON) -> JSON:
    return obj | {"metadata": obj["metadata"] | marks}
