"""The defaults that Kubernetes sets in code: the `SetDefaults_*` of k8s.io/kubernetes/pkg/apis from 1.33 to 1.37.

In: one struct of an object, at any depth. It is completed in place, before the structs within it, as Go's generated
defaulters do. Defaults that the table of types has are not repeated here; the fields that a registry or an admission
plugin adds to a new object are in `kubesandbox.apiserver.objects.strategies` and `admission`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kubesandbox.apiserver import kubernetes_version

JSON = dict[str, Any]
Default = Callable[[JSON], None]
_RBAC = "rbac.authorization.k8s.io"


def set_nil(obj: JSON, **values: Any) -> None:
    """Sets the pointers that are nil."""
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


def set_zero(obj: JSON, **values: Any) -> None:
    """Sets the plain fields that have their zero value."""
    for key, value in values.items():
        if not obj.get(key):
            obj[key] = value


def own_struct(obj: JSON, key: str) -> JSON:
    """Returns the struct at `key` after replacing it by a copy, or by an empty one if there was none."""
    obj[key] = dict(obj.get(key) or {})
    part: JSON = obj[key]
    return part


# Type, without the common part of its package's name -> the function that sets its defaults. `_defaults` adds others.
_DEFAULTS: dict[str, Default] = {
    "core.v1.ContainerPort": partial(set_zero, protocol="TCP"),
    "core.v1.ObjectFieldSelector": partial(set_zero, apiVersion="v1"),
    "core.v1.SecretVolumeSource": partial(set_nil, defaultMode=0o644),
    "core.v1.ConfigMapVolumeSource": partial(set_nil, defaultMode=0o644),
    "core.v1.DownwardAPIVolumeSource": partial(set_nil, defaultMode=0o644),
    "core.v1.ProjectedVolumeSource": partial(set_nil, defaultMode=0o644),
    "core.v1.ServiceAccountTokenProjection": partial(set_nil, expirationSeconds=3600),
    "core.v1.HostPathVolumeSource": partial(set_nil, type=""),
    "core.v1.Secret": partial(set_zero, type="Opaque"),
    "core.v1.EndpointPort": partial(set_zero, protocol="TCP"),
    "core.v1.NamespaceStatus": partial(set_zero, phase="Active"),
    "core.v1.PersistentVolumeClaimSpec": partial(set_nil, volumeMode="Filesystem"),
    "core.v1.PersistentVolumeClaimStatus": partial(set_zero, phase="Pending"),
    "apps.v1.ReplicaSet": lambda obj: set_nil(own_struct(obj, "spec"), replicas=1),
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": partial(set_zero, status="True"),
    "admissionregistration.v1.RuleWithOperations": partial(set_nil, scope="*"),
    "admissionregistration.v1.NamedRuleWithOperations": partial(set_nil, scope="*"),
    "admissionregistration.v1.ServiceReference": partial(set_nil, port=443),
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": partial(set_nil, failurePolicy="Fail"),
    "apiregistration.v1.ServiceReference": partial(set_nil, port=443),
    "apiextensions.v1.ServiceReference": partial(set_nil, port=443),
    "discovery.v1.EndpointPort": partial(set_nil, name="", protocol="TCP"),
    "networking.v1.NetworkPolicyPort": partial(set_nil, protocol="TCP"),
    "networking.v1.IngressClassParametersReference": partial(set_nil, scope="Cluster"),
    "flowcontrol.v1.FlowSchemaSpec": partial(set_zero, matchingPrecedence=1000),
    "flowcontrol.v1.ExemptPriorityLevelConfiguration": partial(set_nil, nominalConcurrencyShares=0, lendablePercent=0),
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": partial(
        set_nil, nominalConcurrencyShares=30, lendablePercent=0
    ),
    "flowcontrol.v1.QueuingConfiguration": partial(set_zero, queues=64, handSize=8, queueLengthLimit=50),
    "scheduling.v1.PriorityClass": partial(set_nil, preemptionPolicy="PreemptLowerPriority"),
    "storage.v1.StorageClass": partial(set_nil, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "autoscaling.v1.HorizontalPodAutoscaler": lambda obj: set_nil(own_struct(obj, "spec"), minReplicas=1),
}


def _defaults(*types: str) -> Callable[[Default], Default]:
    def register(function: Default) -> Default:
        _DEFAULTS.update(dict.fromkeys(types, function))
        return function

    return register


def default_of(name: str) -> Default | None:
    """Returns the function that sets a type's defaults, or None; `name` is full (`io.k8s.api.core.v1.Pod`)."""
    return _DEFAULTS.get(".".join(name.split(".")[-3:]))


# References of images (github.com/distribution/reference): a host may come first; the rest has small letters.
_IDENTIFIER = re.compile("[0-9a-f]{64}")
_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[\w.-]+(?::[0-9]+)?/|\[[0-9a-fA-F:]+\](?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?P<digest>@[\w.+-]+:[0-9a-fA-F]{32,})?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """Returns a container's default imagePullPolicy: Always for an image without a tag or digest or tagged latest.

    A name that cannot be parsed has no tag (pkg/util/parsers of kubernetes).
    """
    match = _IMAGE.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image):
        return "IfNotPresent"
    return "Always" if match["tag"] == "latest" or not (match["tag"] or match["digest"]) else "IfNotPresent"


@_defaults("core.v1.Pod")
def _pod(obj: JSON) -> None:
    """Sets the defaults of a Pod: requests from limits, host ports, service links."""
    spec = own_struct(obj, "spec")
    set_nil(spec, enableServiceLinks=True)
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [dict(container) for container in spec[name]]
        for container in spec.get(name) or ():
            resources = container.get("resources") or {}
            if limits := resources.get("limits"):
                # Where a container states no request, its limit is the request.
                requests = resources.get("requests") or {}
                missing = {name: amount for name, amount in limits.items() if name not in requests}
                container["resources"] = {**resources, "requests": {**requests, **missing}}
            for port in (container.get("ports") or ()) if spec.get("hostNetwork") else ():
                set_zero(port, hostPort=port.get("containerPort", 0))


@_defaults("core.v1.PodSpec")
def _pod_spec(spec: JSON) -> None:
    set_zero(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    set_nil(spec, securityContext={}, terminationGracePeriodSeconds=30)
    # One field under two names (pkg/apis/core/v1/conversion.go).
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


@_defaults("core.v1.Container", "core.v1.EphemeralContainer")
def _container(obj: JSON) -> None:
    set_zero(obj, imagePullPolicy=pull_policy(str(obj.get("image") or "")))
    set_zero(obj, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")


@_defaults("core.v1.Probe")
def _probe(obj: JSON) -> None:
    set_zero(obj, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


@_defaults("core.v1.Volume")
def _volume(obj: JSON) -> None:
    """Makes a volume without a source an emptyDir."""
    if all(value is None for key, value in obj.items() if key != "name"):
        obj["emptyDir"] = {}


@_defaults("core.v1.Service")
def _service(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_zero(spec, sessionAffinity="None", type="ClusterIP")
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
        set_zero(spec, externalTrafficPolicy="Cluster")
    if spec["type"] != "ExternalName":
        set_nil(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        set_nil(spec, allocateLoadBalancerNodePorts=True)


@_defaults("core.v1.ReplicationController")
def _replication_controller(obj: JSON) -> None:
    """Sets the defaults of a ReplicationController: selector and labels from its template."""
    labels = (((obj.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        set_zero(own_struct(obj, "spec"), selector=labels)
        set_zero(own_struct(obj, "metadata"), labels=labels)


@_defaults("core.v1.Namespace")
def _namespace(obj: JSON) -> None:
    """Sets the label of a Namespace that holds its name."""
    metadata = own_struct(obj, "metadata")
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


@_defaults("core.v1.PersistentVolume")
def _persistent_volume(obj: JSON) -> None:
    set_zero(own_struct(obj, "status"), phase="Pending")
    spec = own_struct(obj, "spec")
    set_zero(spec, persistentVolumeReclaimPolicy="Retain")
    set_nil(spec, volumeMode="Filesystem")


@_defaults("core.v1.LimitRangeItem")
def _limit_range_item(item: JSON) -> None:
    """Sets the defaults of a LimitRange's item: limits from the maximum, requests from the limits and the minimum."""
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    item["default"] = limits
    item["defaultRequest"] = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}


@_defaults("core.v1.NodeStatus")
def _node_status(status: JSON) -> None:
    """Sets a Node's allocatable, if it is absent, to its capacity."""
    if status.get("capacity"):
        set_zero(status, allocatable=dict(status["capacity"]))


@_defaults("apps.v1.Deployment")
def _deployment(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_nil(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = own_struct(spec, "strategy")
    set_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_nil(own_struct(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


@_defaults("apps.v1.DaemonSet")
def _daemon_set(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_nil(spec, revisionHistoryLimit=10)
    strategy = own_struct(spec, "updateStrategy")
    set_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_nil(own_struct(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    # The internal templateGeneration, which only this annotation shows (pkg/apis/apps/v1/conversion.go).
    metadata = own_struct(obj, "metadata")
    metadata["annotations"] = {"deprecated.daemonset.template.generation": "1", **(metadata.get("annotations") or {})}


@_defaults("apps.v1.StatefulSet")
def _stateful_set(obj: JSON) -> None:
    """Sets the defaults of a StatefulSet. An update strategy that names its type gets no partition."""
    spec = own_struct(obj, "spec")
    set_nil(spec, replicas=1, revisionHistoryLimit=10)
    set_zero(spec, podManagementPolicy="OrderedReady")
    strategy = own_struct(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        set_nil(strategy, rollingUpdate={})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        set_nil(own_struct(strategy, "rollingUpdate"), partition=0)
    set_zero(own_struct(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")


@_defaults("batch.v1.Job")
def _job(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    set_nil(
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
        set_zero(own_struct(obj, "metadata"), labels=labels)


@_defaults("batch.v1.CronJob")
def _cron_job(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_zero(spec, concurrencyPolicy="Allow")
    set_nil(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


@_defaults("autoscaling.v2.HorizontalPodAutoscaler")
def _autoscaler(obj: JSON) -> None:
    """Sets the defaults of a HorizontalPodAutoscaler: metrics, and scaling rules if it has a behavior."""
    spec = own_struct(obj, "spec")
    set_nil(spec, minReplicas=1)
    target = {"type": "Utilization", "averageUtilization": 80}
    set_zero(spec, metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    if spec.get("behavior") is not None:
        behavior = own_struct(spec, "behavior")
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        scale_up = own_struct(behavior, "scaleUp")
        set_nil(scale_up, stabilizationWindowSeconds=0, selectPolicy="Max", policies=[pods, percent])
        set_nil(own_struct(behavior, "scaleDown"), selectPolicy="Max", policies=[percent])


@_defaults("rbac.v1.RoleBinding", "rbac.v1.ClusterRoleBinding")
def _role_binding(obj: JSON) -> None:
    set_zero(own_struct(obj, "roleRef"), apiGroup=_RBAC)


@_defaults("core.v1.HTTPGetAction")
def _http_get(action: JSON) -> None:
    set_zero(action, path="/", scheme="HTTP")
    if kubernetes_version.enabled("H2CContainerProbe"):
        set_nil(action, protocol="HTTP1")


@_defaults("rbac.v1.Subject")
def _subject(subject: JSON) -> None:
    if subject.get("kind") in {"User", "Group"}:
        set_zero(subject, apiGroup=_RBAC)


@_defaults("admissionregistration.v1.MatchResources")
def _match_rules(rules: JSON) -> None:
    set_nil(rules, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})


@_defaults("admissionregistration.v1.ValidatingWebhook")
def _webhook(hook: JSON) -> None:
    _match_rules(hook)
    set_nil(hook, failurePolicy="Fail", timeoutSeconds=10)


@_defaults("admissionregistration.v1.MutatingWebhook")
def _mutating_webhook(hook: JSON) -> None:
    _webhook(hook)
    set_nil(hook, reinvocationPolicy="Never")


@_defaults("networking.v1.NetworkPolicy")
def _network_policy(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_zero(spec, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])


@_defaults("storage.v1.CSIDriver")
def _csi_driver(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_nil(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    set_nil(spec, fsGroupPolicy="ReadWriteOnceWithFSType", seLinuxMount=False)
    set_zero(spec, volumeLifecycleModes=["Persistent"])
    if kubernetes_version.enabled("VolumeLimitScaling"):
        set_nil(spec, preventPodSchedulingIfMissing=False)


@_defaults("apiextensions.v1.CustomResourceDefinition")
def _definition(obj: JSON) -> None:
    """Sets the defaults of a CustomResourceDefinition: names, conversion, stored versions."""
    spec, status = own_struct(obj, "spec"), own_struct(obj, "status")
    names = own_struct(spec, "names")
    kind = str(names.get("kind") or "")
    set_zero(names, singular=kind.lower())
    if kind:
        set_zero(names, listKind=f"{kind}List")
    set_nil(spec, conversion={"strategy": "None"})
    storage = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    set_zero(status, storedVersions=storage[:1])
