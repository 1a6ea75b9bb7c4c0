"""The defaults that Kubernetes sets in code, type by type: the `SetDefaults_*` of k8s.io/kubernetes/pkg/apis at 1.34.

In: one struct of an object, wherever in the object it stands. It is completed in place, before the structs within it,
as Go's generated defaulters do. Defaults that stand in the table of types are not repeated here; what a registry or an
admission plugin adds to a new object is in `runup.sandbox.apiserver.defaults`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

JSON = dict[str, Any]
Default = Callable[[JSON], None]

_FILE_MODE = 0o644
_RBAC = "rbac.authorization.k8s.io"
_HTTPS = 443


def _nil(obj: JSON, **values: Any) -> None:
    """Set pointers that are nil."""
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


def _zero(obj: JSON, **values: Any) -> None:
    """Set plain values that are zero."""
    for key, value in values.items():
        if not obj.get(key):
            obj[key] = value


def _part(obj: JSON, key: str) -> JSON:
    """A struct within a struct, a copy of its own: what was given is not changed."""
    obj[key] = dict(obj.get(key) or {})
    part: JSON = obj[key]
    return part


# -- core --------------------------------------------------------------------------------------------------------------


def pull_policy(image: str) -> str:
    """A container's imagePullPolicy when it says nothing: only what may change under its name is pulled always."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if image and "@" not in image and tag in {"", "latest"} else "IfNotPresent"


def _pod(obj: JSON) -> None:
    spec = _part(obj, "spec")
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_with_requests(container) for container in spec[name]]
    _nil(spec, enableServiceLinks=True)
    if spec.get("hostNetwork"):
        for name in ("initContainers", "containers"):
            for container in spec.get(name) or ():
                for port in container.get("ports") or ():
                    _zero(port, hostPort=port.get("containerPort", 0))


def _with_requests(container: JSON) -> JSON:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**(resources.get("requests") or {})}
    requests |= {name: amount for name, amount in resources["limits"].items() if name not in requests}
    return {**container, "resources": {**resources, "requests": requests}}


def _pod_spec(spec: JSON) -> None:
    _zero(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    _nil(spec, securityContext={}, terminationGracePeriodSeconds=30)
    # One field under two names (pkg/apis/core/v1/conversion.go).
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _container(container: JSON) -> None:
    _zero(
        container,
        imagePullPolicy=pull_policy(str(container.get("image") or "")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )


def _probe(probe: JSON) -> None:
    _zero(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


def _volume(volume: JSON) -> None:
    if all(value is None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}


def _service(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _zero(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if spec.get("ports"):
        spec["ports"] = [
            {**port, "targetPort": port.get("targetPort") or port.get("port", 0)} for port in spec["ports"]
        ]
    if spec["type"] in {"NodePort", "LoadBalancer"} or spec.get("externalIPs"):
        _zero(spec, externalTrafficPolicy="Cluster")
    if spec["type"] != "ExternalName":
        _nil(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _nil(spec, allocateLoadBalancerNodePorts=True)


def _replication_controller(obj: JSON) -> None:
    labels = (((obj.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        _zero(_part(obj, "spec"), selector=labels)
        _zero(_part(obj, "metadata"), labels=labels)


def _namespace(obj: JSON) -> None:
    metadata = _part(obj, "metadata")
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


def _persistent_volume(obj: JSON) -> None:
    _zero(_part(obj, "status"), phase="Pending")
    spec = _part(obj, "spec")
    _zero(spec, persistentVolumeReclaimPolicy="Retain")
    _nil(spec, volumeMode="Filesystem")


def _limit(item: JSON) -> None:
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    item["default"] = limits
    item["defaultRequest"] = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}


def _node_status(status: JSON) -> None:
    if status.get("capacity"):
        _zero(status, allocatable=dict(status["capacity"]))


# -- workloads ---------------------------------------------------------------------------------------------------------


def _deployment(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _nil(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _part(spec, "strategy")
    _zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _nil(_part(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _daemon_set(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _nil(spec, revisionHistoryLimit=10)
    strategy = _part(spec, "updateStrategy")
    _zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _nil(_part(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    # The internal templateGeneration, which only this annotation shows (pkg/apis/apps/v1/conversion.go).
    metadata = _part(obj, "metadata")
    metadata["annotations"] = {"deprecated.daemonset.template.generation": "1", **(metadata.get("annotations") or {})}


def _stateful_set(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _nil(spec, replicas=1, revisionHistoryLimit=10)
    _zero(spec, podManagementPolicy="OrderedReady")
    strategy = _part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        _nil(strategy, rollingUpdate={})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _nil(_part(strategy, "rollingUpdate"), partition=0)
    _zero(_part(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")


def _job(obj: JSON) -> None:
    spec = _part(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _nil(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else (1 << 31) - 1,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
        manualSelector=False,
    )
    # The same map, not a copy: the labels that generateSelector puts into the template's appear in the Job's as well.
    if labels := ((spec.get("template") or {}).get("metadata") or {}).get("labels"):
        _zero(_part(obj, "metadata"), labels=labels)


def _cron_job(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _zero(spec, concurrencyPolicy="Allow")
    _nil(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def _autoscaler(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _nil(spec, minReplicas=1)
    target = {"type": "Utilization", "averageUtilization": 80}
    _zero(spec, metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    if spec.get("behavior") is not None:
        behavior = _part(spec, "behavior")
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        _nil(_part(behavior, "scaleUp"), stabilizationWindowSeconds=0, selectPolicy="Max", policies=[pods, percent])
        _nil(_part(behavior, "scaleDown"), selectPolicy="Max", policies=[percent])


# -- the rest ----------------------------------------------------------------------------------------------------------


def _role_binding(obj: JSON) -> None:
    _zero(_part(obj, "roleRef"), apiGroup=_RBAC)


def _subject(subject: JSON) -> None:
    if subject.get("kind") in {"User", "Group"}:
        _zero(subject, apiGroup=_RBAC)


def _match(rules: JSON) -> None:
    _nil(rules, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})


def _webhook(hook: JSON) -> None:
    _match(hook)
    _nil(hook, failurePolicy="Fail", timeoutSeconds=10)


def _mutating_webhook(hook: JSON) -> None:
    _webhook(hook)
    _nil(hook, reinvocationPolicy="Never")


def _network_policy(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _zero(spec, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _csi_driver(obj: JSON) -> None:
    spec = _part(obj, "spec")
    _nil(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    _nil(spec, fsGroupPolicy="ReadWriteOnceWithFSType", seLinuxMount=False)
    _zero(spec, volumeLifecycleModes=["Persistent"])


def _definition(obj: JSON) -> None:
    spec, status = _part(obj, "spec"), _part(obj, "status")
    names = _part(spec, "names")
    kind = str(names.get("kind") or "")
    _zero(names, singular=kind.lower())
    if kind:
        _zero(names, listKind=f"{kind}List")
    _nil(spec, conversion={"strategy": "None"})
    storage = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    _zero(status, storedVersions=storage[:1])


def _setting(set_: Callable[..., None], **values: Any) -> Default:
    return lambda obj: set_(obj, **values)


# Type, without the common part of its package's name -> what completes it.
_DEFAULTS: dict[str, Default] = {
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.Probe": _probe,
    "core.v1.HTTPGetAction": _setting(_zero, path="/", scheme="HTTP"),
    "core.v1.ContainerPort": _setting(_zero, protocol="TCP"),
    "core.v1.ObjectFieldSelector": _setting(_zero, apiVersion="v1"),
    "core.v1.Volume": _volume,
    "core.v1.SecretVolumeSource": _setting(_nil, defaultMode=_FILE_MODE),
    "core.v1.ConfigMapVolumeSource": _setting(_nil, defaultMode=_FILE_MODE),
    "core.v1.DownwardAPIVolumeSource": _setting(_nil, defaultMode=_FILE_MODE),
    "core.v1.ProjectedVolumeSource": _setting(_nil, defaultMode=_FILE_MODE),
    "core.v1.ServiceAccountTokenProjection": _setting(_nil, expirationSeconds=3600),
    "core.v1.HostPathVolumeSource": _setting(_nil, type=""),
    "core.v1.Service": _service,
    "core.v1.Secret": _setting(_zero, type="Opaque"),
    "core.v1.EndpointPort": _setting(_zero, protocol="TCP"),
    "core.v1.ReplicationController": _replication_controller,
    "core.v1.Namespace": _namespace,
    "core.v1.NamespaceStatus": _setting(_zero, phase="Active"),
    "core.v1.PersistentVolume": _persistent_volume,
    "core.v1.PersistentVolumeClaimSpec": _setting(_nil, volumeMode="Filesystem"),
    "core.v1.PersistentVolumeClaimStatus": _setting(_zero, phase="Pending"),
    "core.v1.LimitRangeItem": _limit,
    "core.v1.NodeStatus": _node_status,
    "apps.v1.Deployment": _deployment,
    "apps.v1.ReplicaSet": lambda obj: _nil(_part(obj, "spec"), replicas=1),
    "apps.v1.DaemonSet": _daemon_set,
    "apps.v1.StatefulSet": _stateful_set,
    "batch.v1.Job": _job,
    "batch.v1.CronJob": _cron_job,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": _setting(_zero, status="True"),
    "autoscaling.v2.HorizontalPodAutoscaler": _autoscaler,
    "rbac.v1.RoleBinding": _role_binding,
    "rbac.v1.ClusterRoleBinding": _role_binding,
    "rbac.v1.Subject": _subject,
    "admissionregistration.v1.ValidatingWebhook": _webhook,
    "admissionregistration.v1.MutatingWebhook": _mutating_webhook,
    "admissionregistration.v1.RuleWithOperations": _setting(_nil, scope="*"),
    "admissionregistration.v1.NamedRuleWithOperations": _setting(_nil, scope="*"),
    "admissionregistration.v1.ServiceReference": _setting(_nil, port=_HTTPS),
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": _setting(_nil, failurePolicy="Fail"),
    "admissionregistration.v1.MatchResources": _match,
    "apiregistration.v1.ServiceReference": _setting(_nil, port=_HTTPS),
    "apiextensions.v1.ServiceReference": _setting(_nil, port=_HTTPS),
    "apiextensions.v1.CustomResourceDefinition": _definition,
    "discovery.v1.EndpointPort": _setting(_nil, name="", protocol="TCP"),
    "networking.v1.NetworkPolicyPort": _setting(_nil, protocol="TCP"),
    "networking.v1.NetworkPolicy": _network_policy,
    "networking.v1.IngressClassParametersReference": _setting(_nil, scope="Cluster"),
    "scheduling.v1.PriorityClass": _setting(_nil, preemptionPolicy="PreemptLowerPriority"),
    "storage.v1.StorageClass": _setting(_nil, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "storage.v1.CSIDriver": _csi_driver,
}


def default_of(name: str) -> Default | None:
    """What completes a type, given by its full name (`io.k8s.api.core.v1.Pod`); None where nothing does."""
    return _DEFAULTS.get(".".join(name.split(".")[-3:]))
