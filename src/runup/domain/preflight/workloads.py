"""The preflight's Deployment as it should be.

The target's image runs with as little as it needs: one writable folder on the node (the report's) and an empty /tmp,
no privileges, small requests and limits, pinned by digest to the node whose folder we read.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from runup.api import codec
from runup.api.workloads_v1 import Deployment
from runup.domain.preflight import report
from runup.domain.preflight.attempt import Attempt

NAME = "cluster-version-operator-preflight"
APP_LABEL = "app"
TARGET_LABEL = "preflight-target"
ID_ANNOTATION = "preflight.runup.dev/id"
SPEC_HASH = "preflight.runup.dev/spec-hash"
COMMAND = "preflight"
SELECTOR = f"{APP_LABEL}={NAME}"

REPORT_MAP_PREFIX = "preflight-report-"

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quantities:
    """Requests and limits, as Kubernetes writes quantities. The operator itself requests 20m and 50Mi, unlimited."""

    cpu_request: str = "10m"
    memory_request: str = "50Mi"
    cpu_limit: str = "500m"
    memory_limit: str = "512Mi"


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where and how preflights run; set by the operator's flags."""

    namespace: str
    node_name: str
    operator_service_account: str = "cluster-version-operator"
    service_account: Literal["operator", "dedicated"] = "operator"
    report_dir: str = "/etc/cvo/preflight"
    report_sink: Literal["volume", "configmap"] = "volume"
    quantities: Quantities = Quantities()
    timeout_s: float = 600.0

    @property
    def account(self) -> str:
        """The service account's name."""
        return NAME if self.service_account == "dedicated" else self.operator_service_account


def deployment(attempt: Attempt, place: Workplace) -> JSON:
    """The Deployment to apply for `attempt`; its annotation tells a later pass whether it is still as it should be."""
    labels = {APP_LABEL: NAME, TARGET_LABEL: label_value(attempt.target_version)}
    template = {"metadata": {"labels": labels, "annotations": _pod_annotations(attempt)}, "spec": _pod(attempt, place)}
    spec = {
        "replicas": 1,
        # Two targets' processes must never write to one folder, and the second would not fit beside the first.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {APP_LABEL: NAME}},
        "template": template,
    }
    annotations = {ID_ANNOTATION: attempt.id, SPEC_HASH: _hash(spec)}
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
        host_path = {"path": place.report_dir, "type": "DirectoryOrCreate"}
        volumes.append({"name": "reports", "hostPath": host_path})
        mounts.append({"name": "reports", "mountPath": place.report_dir})
    return {
        "nodeName": place.node_name,
        "serviceAccountName": place.account,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 10,
        # The operator's node is often a control plane node, and may be cordoned while it is checked.
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(attempt, place, mounts)],
        "volumes": volumes,
    }


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
            # The kubelet makes the host's folder as root, and SELinux keeps ordinary containers out of it.
            "runAsUser": 0,
            "seLinuxOptions": {"type": "spc_t"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _env(attempt: Attempt, place: Workplace) -> dict[str, str]:
    env = {
        "PREFLIGHT_ID": attempt.id,
        "PREFLIGHT_SOURCE_VERSION": attempt.source_version,
        "PREFLIGHT_TARGET_VERSION": attempt.target_version,
        "PREFLIGHT_TARGET_IMAGE": attempt.target_image,
        "PREFLIGHT_REPORT": report_path(attempt.id, place),
        "CVO_NAMESPACE": place.namespace,
        "NODE_NAME": place.node_name,
    }
    return env if place.report_sink == "volume" else env | {"PREFLIGHT_REPORT_SINK": "configmap"}


def _pod_annotations(attempt: Attempt) -> dict[str, str]:
    return {ID_ANNOTATION: attempt.id, "openshift.io/required-scc": "privileged"}


def _hash(spec: JSON) -> str:
    return hashlib.sha256(codec.encode(spec)).hexdigest()[:16]
