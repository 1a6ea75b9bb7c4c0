"""The preflight's Deployment as it should be.

The target's image, pinned by digest, runs with as little as it needs: its own attempt's folder of the node whose
reports we read and an empty /tmp, no privileges, small requests and limits. The scheduler places it, so that quotas,
room and preemption have their say; an affinity leaves it one node to choose.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from kubekit.api import codec
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import report
from runup.preflight.decide.attempt import Attempt

NAME = "cluster-version-operator-preflight"
APP_LABEL = "app"
TARGET_LABEL = "preflight-target"
ID_ANNOTATION = "preflight.runup.dev/id"
SPEC_HASH = "preflight.runup.dev/spec-hash"
WAIVED = "preflight.runup.dev/signature-waived"
"""On the Deployment of a target that was started without a signature: it never gets the operator's account."""
ROLES = "preflight.runup.dev/role-namespaces"
"""The namespaces, separated by commas, in which its account got a Role: what is to be taken away again."""

COMMAND = "preflight"
SELECTOR = f"{APP_LABEL}={NAME}"

SETTINGS_MAP = "cluster-version-operator-preflight-config"
REPORT_MAP_PREFIX = "preflight-report-"

JSON = dict[str, Any]


class Quantities(msgspec.Struct, frozen=True):
    """Requests and limits, as Kubernetes writes quantities. The operator itself requests 20m and 50Mi, unlimited."""

    cpu_request: str = "10m"
    memory_request: str = "50Mi"
    cpu_limit: str = "500m"
    memory_limit: str = "512Mi"


# What the operator's own Deployment has: it runs on control plane nodes, cordoned ones and single nodes included.
TOLERATIONS: tuple[JSON, ...] = ({"operator": "Exists"},)
PRIORITY_CLASS = "system-cluster-critical"
# Clusters that set cores aside for what manages them count this pod there (workload partitioning).
_MANAGEMENT = {"target.workload.openshift.io/management": '{"effect": "PreferredDuringScheduling"}'}
# Nobody, where no folder of the node has to be written.
_NOBODY = 65534


class Workplace(msgspec.Struct, frozen=True):
    """Where and how preflights run: the operator's flags, and over them what an administrator set (`settings`).

    `tolerations` and `node_affinity` are as a pod has them; an empty `documentation_base` is the release's own.
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
    # Whom the target's checks may put queries to, the authorities for it as PEM, whether many clusters share it.
    prometheus_url: str = ""
    prometheus_ca: str = ""
    prometheus_hosted: bool = False
    # Whether the target reads the catalogs of operators that it brings out of their registries.
    catalogs: Literal["read", "skip"] = "read"

    @property
    def account(self) -> str:
        """The service account's name."""
        return NAME if self.service_account == "dedicated" else self.operator_service_account

    @property
    def security_context_constraints(self) -> str:
        """Which of OpenShift's constraints the pod needs: a folder of the node takes the widest."""
        return "privileged" if self.report_sink == "volume" else "nonroot-v2"


def deployment(attempt: Attempt, place: Workplace, *, waived: bool = False, roles: Iterable[str] = ()) -> JSON:
    """The Deployment to apply for `attempt`; its annotations tell a later pass whether it is still as it should be.

    `waived`: nobody vouches for the image, whose account is then not the operator's (`place` says which); `roles` are
    the namespaces in which it gets a Role.
    """
    labels = {APP_LABEL: NAME, TARGET_LABEL: label_value(attempt.target_version)}
    template = {
        "metadata": {"labels": labels, "annotations": _pod_annotations(attempt, place)},
        "spec": _pod(attempt, place),
    }
    spec = {
        "replicas": 1,
        # Two targets' processes must never write to one folder, and the second would not fit beside the first.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {APP_LABEL: NAME}},
        "template": template,
    }
    annotations = {ID_ANNOTATION: attempt.id, SPEC_HASH: _hash(spec)}
    annotations |= {WAIVED: "true"} if waived else {}
    annotations |= {ROLES: ",".join(sorted(roles))} if roles else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": place.namespace, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def is_as_wanted(found: Deployment, wanted: JSON) -> bool:
    """Whether `found` needs no apply: same spec as last applied, and nobody changed what matters since."""
    template: JSON = wanted["spec"]["template"]["spec"]
    pod = found.spec.template.spec
    return (
        found.metadata.annotations.get(SPEC_HASH) == wanted["metadata"]["annotations"][SPEC_HASH]
        and found.spec.replicas == wanted["spec"]["replicas"]
        and [container.image for container in pod.containers] == [c["image"] for c in template["containers"]]
        and pod.service_account_name in ("", template["serviceAccountName"])
    )


def was_waived(found: Deployment) -> bool:
    """Whether `found` was started without a signature."""
    return found.metadata.annotations.get(WAIVED) == "true"


def roles_of(found: Deployment) -> tuple[str, ...]:
    """The namespaces in which the account of `found` got a Role."""
    return tuple(filter(None, found.metadata.annotations.get(ROLES, "").split(",")))


def report_path(preflight_id: str, place: Workplace) -> str:
    """Where the target writes its report."""
    return f"{place.report_dir}/{preflight_id}/{report.FILE_NAME}"


def report_map(preflight_id: str) -> str:
    """The name of the ConfigMap that holds the report where host paths are forbidden."""
    return f"{REPORT_MAP_PREFIX}{preflight_id}"


def label_value(text: str) -> str:
    """`text` as a label's value: what is not allowed there (a version's `+`) becomes `_`; at most 63 characters."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:63].strip("._-")


def _pod(attempt: Attempt, place: Workplace) -> JSON:
    volumes: list[JSON] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[JSON] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 -- the pod's own
    if place.report_sink == "volume":
        # The attempt's own folder and none above it: another attempt's report is not this one's to write.
        folder = report_path(attempt.id, place).rpartition("/")[0]
        volumes.append({"name": "report", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}})
        mounts.append({"name": "report", "mountPath": folder})
    pod: JSON = {
        "affinity": {"nodeAffinity": _node_affinity(place)},
        "serviceAccountName": place.account,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 10,
        "tolerations": list(place.tolerations),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(attempt, place, mounts)],
        "volumes": volumes,
    }
    return pod | ({"priorityClassName": place.priority_class} if place.priority_class else {})


def _node_affinity(place: Workplace) -> JSON:
    """The operator's node; where no folder of it is needed, an administrator's affinity may name others."""
    wanted = place.node_affinity or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if place.report_sink == "configmap" and place.node_affinity is not None:
        return wanted
    here: JSON = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [place.node_name]}]}
    terms = wanted.get(required, {}).get("nodeSelectorTerms") or [{}]
    # Terms are alternatives: each has to say where.
    return wanted | {required: {"nodeSelectorTerms": [term | here for term in terms]}}


def _container(attempt: Attempt, place: Workplace, mounts: list[JSON]) -> JSON:
    quantities = place.quantities
    return {
        "name": NAME,
        "image": attempt.target_image,
        "imagePullPolicy": "IfNotPresent",
        "args": [COMMAND, f"--format={report.FORMAT}"],
        "env": [{"name": name, "value": value} for name, value in _env(attempt, place).items()],
        "resources": {
            "requests": {"cpu": quantities.cpu_request, "memory": quantities.memory_request},
            "limits": {"cpu": quantities.cpu_limit, "memory": quantities.memory_limit},
        },
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        | _user(place),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _user(place: Workplace) -> JSON:
    if place.report_sink == "configmap":
        return {"runAsNonRoot": True, "runAsUser": _NOBODY}
    # The kubelet makes the node's folder as root, and SELinux keeps ordinary containers out of it.
    return {"runAsUser": 0, "seLinuxOptions": {"type": "spc_t"}}


def _env(attempt: Attempt, place: Workplace) -> dict[str, str]:
    env = {
        "PREFLIGHT_ID": attempt.id,
        "PREFLIGHT_SOURCE_VERSION": attempt.source_version,
        "PREFLIGHT_TARGET_VERSION": attempt.target_version,
        "PREFLIGHT_TARGET_IMAGE": attempt.target_image,
        "PREFLIGHT_REPORT": report_path(attempt.id, place),
        "CVO_NAMESPACE": place.namespace,
    }
    env |= {"PREFLIGHT_PROMETHEUS_URL": place.prometheus_url} if place.prometheus_url else {}
    env |= {"PREFLIGHT_PROMETHEUS_CA": place.prometheus_ca} if place.prometheus_ca else {}
    env |= {"PREFLIGHT_PROMETHEUS_HOSTED": "true"} if place.prometheus_url and place.prometheus_hosted else {}
    env |= {"PREFLIGHT_CATALOGS": place.catalogs} if place.catalogs != "read" else {}
    return env if place.report_sink == "volume" else env | {"PREFLIGHT_REPORT_SINK": "configmap"}


def _pod_annotations(attempt: Attempt, place: Workplace) -> dict[str, str]:
    constraints = {"openshift.io/required-scc": place.security_context_constraints}
    return {ID_ANNOTATION: attempt.id} | constraints | _MANAGEMENT


def _hash(spec: JSON) -> str:
    return hashlib.sha256(codec.encode(spec)).hexdigest()[:16]
