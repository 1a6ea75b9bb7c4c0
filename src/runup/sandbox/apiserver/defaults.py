"""What a real server fills into built-in objects (SetDefaults_* in k8s.io/kubernetes/pkg/apis), as far as users notice.

In: a resource and an object. Out: the same object, completed in place. Applied before comparison, so that writing back
what was read changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from runup.sandbox.apiserver.objects import meta

JSON = dict[str, Any]
Filler = Callable[[JSON], None]

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODE = 0o644
_RBAC = "rbac.authorization.k8s.io"


def complete(resource: str, obj: JSON) -> None:
    """Complete an object of the built-in `resource` (`deployments.apps`) in place."""
    filler = _FILLERS.get(resource)
    if filler is not None:
        filler(obj)


def pull_policy(image: str) -> str:
    """A container's imagePullPolicy when it says nothing: only what may change under its name is pulled always."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in {"", "latest"} else "Always"


def _set(obj: JSON, **values: Any) -> None:
    for key, value in values.items():
        if obj.get(key) is None or obj[key] == "":  # to Go an empty text is one that was not given
            obj[key] = value


def _sub(obj: JSON, key: str) -> JSON:
    if not isinstance(obj.get(key), dict):
        obj[key] = {}
    value: JSON = obj[key]
    return value


def _items(obj: JSON, key: str) -> Iterator[JSON]:
    return (item for item in obj.get(key) or () if isinstance(item, dict))


# -- pods --------------------------------------------------------------------------------------------------------------


def pod_spec(spec: JSON) -> None:
    """The defaults of a pod, alone or in a template."""
    _set(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for name in _CONTAINER_LISTS:
        for container in _items(spec, name):
            _container(container, host=bool(spec.get("hostNetwork")))
    for volume in _items(spec, "volumes"):
        _volume(volume)


def _container(container: JSON, *, host: bool) -> None:
    _set(
        container,
        imagePullPolicy=pull_policy(str(container.get("image") or "")),
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in _items(container, "ports"):
        _set(port, protocol="TCP")
        if host:
            _set(port, hostPort=port.get("containerPort"))
    for name in _PROBES:
        if isinstance(probe := container.get(name), dict):
            _set(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            if isinstance(http := probe.get("httpGet"), dict):
                _set(http, path="/", scheme="HTTP")
    for env in _items(container, "env"):
        reference = (env.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            _set(reference, apiVersion="v1")


def _volume(volume: JSON) -> None:
    for name in ("secret", "configMap", "projected", "downwardAPI"):
        if isinstance(source := volume.get(name), dict):
            _set(source, defaultMode=_FILE_MODE)
    if isinstance(host := volume.get("hostPath"), dict):
        _set(host, type="")
    for source in _items(volume.get("projected") or {}, "sources"):
        if isinstance(token := source.get("serviceAccountToken"), dict):
            _set(token, expirationSeconds=3600)
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}


def _pod(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    pod_spec(spec)
    _set(spec, enableServiceLinks=True)
    for name in ("initContainers", "containers"):
        for container in _items(spec, name):
            resources = container.get("resources") or {}
            for resource, amount in (resources.get("limits") or {}).items():
                _set(_sub(resources, "requests"), **{resource: amount})


def pod_status(obj: JSON) -> None:
    """The status that a new pod begins with."""
    obj["status"] = {"phase": "Pending", "qosClass": _qos(obj.get("spec") or {})}


def _qos(spec: JSON) -> str:
    resources = [
        container.get("resources") or {}
        for name in ("initContainers", "containers")
        for container in _items(spec, name)
    ]
    pairs = [(one.get("requests") or {}, one.get("limits") or {}) for one in resources]
    named = [[part.get(name) for name in ("cpu", "memory")] for pair in pairs for part in pair]
    if not any(any(values) for values in named):
        return "BestEffort"
    even = all(
        limits.get(name) and requests.get(name, limits.get(name)) == limits.get(name)
        for requests, limits in pairs
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if even else "Burstable"


# -- workloads ---------------------------------------------------------------------------------------------------------


def _template(spec: JSON) -> None:
    template = _sub(spec, "template")
    pod_spec(_sub(template, "spec"))


def _deployment(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _sub(spec, "strategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_sub(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, replicas=1)
    _template(spec)


def _daemon_set(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, revisionHistoryLimit=10)
    strategy = _sub(spec, "updateStrategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_sub(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _template(spec)


def _stateful_set(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    _set(_sub(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    strategy = _sub(spec, "updateStrategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_sub(strategy, "rollingUpdate"), partition=0)
    _template(spec)


def _job_spec(spec: JSON) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _set(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    _template(spec)


def job_selector(obj: JSON) -> None:
    """The selector and labels by which a new Job knows its pods (the job strategy's generateSelector)."""
    spec, name, uid = obj["spec"], meta(obj)["name"], meta(obj)["uid"]
    if spec.get("manualSelector"):
        return
    labels = _sub(_sub(_sub(spec, "template"), "metadata"), "labels")
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
    _sub(_sub(spec, "selector"), "matchLabels")["batch.kubernetes.io/controller-uid"] = uid


def _cron_job(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = _sub(spec, "jobTemplate")
    pod_spec(_sub(_sub(_sub(template, "spec"), "template"), "spec"))


# -- the rest ----------------------------------------------------------------------------------------------------------


def _service(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    _set(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    for port in _items(spec, "ports"):
        _set(port, protocol="TCP", targetPort=port.get("port"))
    if spec["type"] != "ExternalName":
        _set(spec, clusterIP=_address(obj), ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        _set(spec, clusterIPs=[spec["clusterIP"]])


def _address(obj: JSON) -> str:
    # Nothing listens there; the same name has the same address so that a dry run shows what a run does.
    key = f"{meta(obj).get('namespace')}/{meta(obj).get('name')}"
    digest = hashlib.sha256(key.encode()).digest()
    return f"10.96.{digest[0]}.{digest[1] % 254 + 1}"


def _secret(obj: JSON) -> None:
    _set(obj, type="Opaque")
    for key, text in (obj.pop("stringData", None) or {}).items():
        _sub(obj, "data")[key] = base64.b64encode(str(text).encode()).decode()


def _binding(obj: JSON) -> None:
    if isinstance(role := obj.get("roleRef"), dict):
        _set(role, apiGroup=_RBAC)
    for subject in _items(obj, "subjects"):
        if subject.get("kind") in {"User", "Group"}:
            _set(subject, apiGroup=_RBAC)


def _claim(obj: JSON) -> None:
    _set(_sub(obj, "spec"), volumeMode="Filesystem")


def _volume_object(obj: JSON) -> None:
    _set(_sub(obj, "spec"), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")


def _webhooks(obj: JSON) -> None:
    for hook in _items(obj, "webhooks"):
        _set(hook, failurePolicy="Fail", matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
        _set(hook, timeoutSeconds=10)


def _storage_class(obj: JSON) -> None:
    _set(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _network_policy(obj: JSON) -> None:
    spec = _sub(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


_FILLERS: dict[str, Filler] = {
    "pods": _pod,
    "services": _service,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume_object,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "daemonsets.apps": _daemon_set,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": lambda obj: _job_spec(_sub(obj, "spec")),
    "cronjobs.batch": _cron_job,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "storageclasses.storage.k8s.io": _storage_class,
    "networkpolicies.networking.k8s.io": _network_policy,
}
