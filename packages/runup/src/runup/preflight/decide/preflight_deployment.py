"""The preflight's Deployment in its wanted state.

The target's image, pinned by digest, runs with minimal access: its own attempt's folder on the node whose reports the
operator reads, an empty /tmp, no added privileges, small requests and limits. The scheduler places it, so that quotas,
capacity and preemption apply; an affinity restricts it to one node.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from kubekit.api import codec
from kubekit.api.workloads_v1 import Deployment
from kubekit.lang.quantity import QuantityError, whole_units
from runup.preflight.decide.attempt import Attempt
from runup.process.names import NOBODY
from runup.report import report

NAME = "cluster-version-operator-preflight"
APP_LABEL = "app"
TARGET_LABEL = "preflight-target"
ID_ANNOTATION = "preflight.runup.dev/id"
SPEC_HASH = "preflight.runup.dev/spec-hash"
WAIVED = "preflight.runup.dev/signature-waived"
"""Annotation of a Deployment whose image was not verified: its Pod never gets the operator's account."""
ROLES = "preflight.runup.dev/role-namespaces"
"""Annotation with the namespaces, separated by commas, in which the account got a Role that must be deleted."""

COMMAND = "preflight"
SELECTOR = f"{APP_LABEL}={NAME}"

SETTINGS_MAP = "cluster-version-operator-preflight-config"
REPORT_MAP_PREFIX = "preflight-report-"

OPENSHIFT_REGISTRY = "image-registry.openshift-image-registry.svc:5000"
"""OpenShift's own registry, where builds push to by default."""

JSON = dict[str, Any]
_MIB = 1024 * 1024
# What the process of the checks takes next to a rehearsal, and what a rehearsal of nothing would.
_MEMORY_OF_CHECKS_MIB, _LEAST_MEMORY_MIB = 160, 64


class Quantities(msgspec.Struct, frozen=True):
    """Requests and limits, as Kubernetes quantities; each must be lower than the operator's own in `deploy/manifests`.

    One process computes at a time, so that 0.9 of a CPU delays it by a tenth at most; half of a CPU delayed the first
    risks by a fifth (docs/explanation/limits.md).
    """

    cpu_request: str = "10m"
    memory_request: str = "40Mi"
    cpu_limit: str = "900m"
    memory_limit: str = "512Mi"


# As in the operator's own Deployment, which runs on control plane nodes, including cordoned and single nodes.
TOLERATIONS: tuple[JSON, ...] = ({"operator": "Exists"},)
PRIORITY_CLASS = "system-cluster-critical"
# Workload partitioning: clusters that reserve cores for management workloads count this pod there.
_MANAGEMENT = {"target.workload.openshift.io/management": '{"effect": "PreferredDuringScheduling"}'}


class PodSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The place and manner in which preflights run: the operator's flags, overridden by an administrator's `settings`.

    `tolerations` and `node_affinity` are as a pod has them. An empty `documentation_base` means the release's own.
    """

    namespace: str
    node_name: str
    operator_service_account: str = "cluster-version-operator"
    service_account: Literal["operator", "dedicated"] = "operator"
    report_dir: str = "/etc/cvo/preflight"
    report_sink: Literal["volume", "configmap"] = "volume"
    quantities: Quantities = Quantities()
    timeout_s: float = 600.0
    tolerations: tuple[JSON, ...] = TOLERATIONS
    node_affinity: JSON | None = None
    priority_class: str = PRIORITY_CLASS
    documentation_base: str = ""
    # The Prometheus that the target's checks may query, its CA certificates as PEM, whether many clusters share it.
    prometheus_url: str = ""
    prometheus_ca: str = ""
    prometheus_hosted: bool = False
    # Whether the target reads its operator catalogs from their registries.
    catalogs: Literal["read", "skip"] = "read"
    # Registries at addresses of Services, of the node or link-local that objects of the cluster may name.
    inner_registries: tuple[str, ...] = (OPENSHIFT_REGISTRY,)
    # Registries that are reached by plain HTTP, as host:port.
    plain_http_registries: tuple[str, ...] = ()
    # Whether the target rehearses the update on a copy of the cluster, too.
    rehearses: bool = False
    # The cluster profile that chooses among the target's manifests and checks; empty for the default one.
    profile: str = ""

    @property
    def account(self) -> str:
        """The service account's name."""
        return NAME if self.service_account == "dedicated" else self.operator_service_account

    @property
    def security_context_constraints(self) -> str:
        """The name of the OpenShift SecurityContextConstraints that the pod needs; a host path needs `privileged`."""
        return "privileged" if self.report_sink == "volume" else "nonroot-v2"


def deployment(attempt: Attempt, settings: PodSettings, *, waived: bool = False, roles: Iterable[str] = ()) -> JSON:
    """Returns the Deployment to apply for `attempt`; its annotations tell a later pass whether it is still as wanted.

    `waived`: the image's signature was not verified, so its account must not be the operator's (`settings` says which).
    `roles` are the namespaces in which the account gets a Role.
    """
    labels = {APP_LABEL: NAME, TARGET_LABEL: label_value(attempt.target_version)}
    pod_annotations = {ID_ANNOTATION: attempt.id, "openshift.io/required-scc": settings.security_context_constraints}
    template = {
        "metadata": {"labels": labels, "annotations": pod_annotations | _MANAGEMENT},
        "spec": _pod_spec(attempt, settings),
    }
    spec = {
        "replicas": 1,
        # Two targets' processes must never write to one folder, and the second would not fit next to the first.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {APP_LABEL: NAME}},
        "template": template,
    }
    # A hash, because the API server adds defaults to the spec, so that it cannot be compared as a whole.
    annotations = {ID_ANNOTATION: attempt.id, SPEC_HASH: hashlib.sha256(codec.encode(spec)).hexdigest()[:16]}
    annotations |= {WAIVED: "true"} if waived else {}
    annotations |= {ROLES: ",".join(sorted(roles))} if roles else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": settings.namespace, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def is_as_wanted(live_deployment: Deployment, wanted_spec: JSON) -> bool:
    """Returns whether `live_deployment` needs no apply: its spec is the last applied, and no relevant field changed."""
    template: JSON = wanted_spec["spec"]["template"]["spec"]
    pod = live_deployment.spec.template.spec
    return (
        live_deployment.metadata.annotations.get(SPEC_HASH) == wanted_spec["metadata"]["annotations"][SPEC_HASH]
        and live_deployment.spec.replicas == wanted_spec["spec"]["replicas"]
        and [container.image for container in pod.containers]
        == [container_spec["image"] for container_spec in template["containers"]]
        and pod.service_account_name in ("", template["serviceAccountName"])
    )


def was_waived(live_deployment: Deployment) -> bool:
    """Returns whether `live_deployment` was started without a verified signature."""
    return live_deployment.metadata.annotations.get(WAIVED) == "true"


def roles_of(live_deployment: Deployment) -> tuple[str, ...]:
    """Returns the namespaces in which the account of `live_deployment` got a Role."""
    return tuple(filter(None, live_deployment.metadata.annotations.get(ROLES, "").split(",")))


def report_path(preflight_id: str, settings: PodSettings) -> str:
    """Returns the path to which the target writes its report."""
    return f"{settings.report_dir}/{preflight_id}/{report.FILE_NAME}"


def report_map(preflight_id: str) -> str:
    """Returns the name of the ConfigMap that holds the report on clusters that forbid host paths."""
    return f"{REPORT_MAP_PREFIX}{preflight_id}"


def label_value(text: str) -> str:
    """Returns `text` as a label's value of at most 63 characters.

    Characters that are not allowed there (a version's `+`) become `_`.
    """
    # https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:63].strip("._-")


def _pod_spec(attempt: Attempt, settings: PodSettings) -> JSON:
    """Returns the spec of the target's Pod, with its volumes, account, affinity and tolerations."""
    volumes: list[JSON] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[JSON] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 -- the pod's own
    if settings.report_sink == "volume":
        # Only the attempt's own folder is mounted, so that it cannot write another attempt's report.
        folder = report_path(attempt.id, settings).rpartition("/")[0]
        volumes.append({"name": "report", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}})
        mounts.append({"name": "report", "mountPath": folder})
    # An affinity to the operator's node. If the report goes into a ConfigMap, an administrator's may name other nodes.
    affinity = settings.node_affinity or {}
    if settings.report_sink == "volume" or settings.node_affinity is None:
        # By `metadata.name` and not by the label kubernetes.io/hostname, which may differ from it.
        node_term: JSON = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [settings.node_name]}]}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        terms = affinity.get(required, {}).get("nodeSelectorTerms") or [{}]
        # Node selector terms are alternatives, so each of them has to name the node.
        affinity = affinity | {required: {"nodeSelectorTerms": [term | node_term for term in terms]}}
    pod: JSON = {
        "affinity": {"nodeAffinity": affinity},
        "serviceAccountName": settings.account,
        # Explicit, because a ServiceAccount may turn it off.
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 10,
        "tolerations": list(settings.tolerations),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(attempt, settings, mounts)],
        "volumes": volumes,
    }
    return pod | ({"priorityClassName": settings.priority_class} if settings.priority_class else {})


def resources_of(quantities: Quantities) -> JSON:
    """Returns the requests and limits as a container has them."""
    return {
        "requests": {"cpu": quantities.cpu_request, "memory": quantities.memory_request},
        "limits": {"cpu": quantities.cpu_limit, "memory": quantities.memory_limit},
    }


def confined() -> JSON:
    """Returns the securityContext of a container that writes to its volumes only, and has no privileges."""
    capabilities = {"drop": ["ALL"]}
    return {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": capabilities}


def attempt_environment(attempt: Attempt) -> dict[str, str]:
    """Returns the environment by which a container knows the update that it is about."""
    return {
        "PREFLIGHT_ID": attempt.id,
        "PREFLIGHT_SOURCE_VERSION": attempt.source_version,
        "PREFLIGHT_TARGET_VERSION": attempt.target_version,
        "PREFLIGHT_TARGET_IMAGE": attempt.target_image,
    }


def _container(attempt: Attempt, settings: PodSettings, mounts: list[JSON]) -> JSON:
    """Returns the container that runs the target's checks."""
    # The kubelet creates the host folder as root, and SELinux denies ordinary containers access to it.
    user: JSON = {"runAsUser": 0, "seLinuxOptions": {"type": "spc_t"}}
    if settings.report_sink == "configmap":
        user = {"runAsNonRoot": True, "runAsUser": NOBODY}
    return {
        "name": NAME,
        "image": attempt.target_image,
        "imagePullPolicy": "IfNotPresent",
        "args": [COMMAND, f"--format={report.FORMAT}"],
        "env": [{"name": name, "value": value} for name, value in _environment(attempt, settings).items()],
        "resources": resources_of(settings.quantities),
        "securityContext": confined() | user,
        # A release without the `preflight` command fails with a usage text, which then appears in the status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _environment(attempt: Attempt, settings: PodSettings) -> dict[str, str]:
    """Returns the container's environment by which `preflight` knows what to check and where its report goes."""
    env = attempt_environment(attempt)
    env |= {"PREFLIGHT_REPORT": report_path(attempt.id, settings), "CVO_NAMESPACE": settings.namespace}
    env |= {"PREFLIGHT_PROMETHEUS_URL": settings.prometheus_url} if settings.prometheus_url else {}
    env |= {"PREFLIGHT_PROMETHEUS_CA": settings.prometheus_ca} if settings.prometheus_ca else {}
    env |= {"PREFLIGHT_PROMETHEUS_HOSTED": "true"} if settings.prometheus_url and settings.prometheus_hosted else {}
    env |= {"PREFLIGHT_CATALOGS": settings.catalogs} if settings.catalogs != "read" else {}
    env |= {"CLUSTER_PROFILE": settings.profile} if settings.profile else {}
    if settings.rehearses:
        # A rehearsal has half of the preflight's time, and what the checks leave of its memory.
        try:
            memory = whole_units(settings.quantities.memory_limit) // _MIB - _MEMORY_OF_CHECKS_MIB
        except QuantityError:
            memory = 0
        env |= {
            "PREFLIGHT_REHEARSE": "true",
            "PREFLIGHT_REHEARSE_SECONDS": str(int(settings.timeout_s / 2)),
            "PREFLIGHT_REHEARSE_MEMORY_MIB": str(max(memory, _LEAST_MEMORY_MIB)),
        }
    env |= {"PREFLIGHT_INNER_REGISTRIES": " ".join(settings.inner_registries)} if settings.inner_registries else {}
    env |= {"PREFLIGHT_PLAIN_HTTP": " ".join(settings.plain_http_registries)} if settings.plain_http_registries else {}
    return env if settings.report_sink == "volume" else env | {"PREFLIGHT_REPORT_SINK": "configmap"}
