"""The defaults of the core and workload types: their `SetDefaults_*` in k8s.io/kubernetes/pkg/apis at 1.34.

In: one struct. Out: the same struct, completed in place; `go_defaults` maps types to these functions.
"""

from __future__ import annotations

from kubesandbox.apiserver.schema.go_values import JSON, own_struct, set_nil, set_zero


def pull_policy(image: str) -> str:
    """Returns a container's default imagePullPolicy: Always for an image without a tag or digest or tagged latest."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if image and "@" not in image and tag in {"", "latest"} else "IfNotPresent"


def default_pod(obj: JSON) -> None:
    """Sets the defaults of a Pod: requests from limits, host ports, service links."""
    spec = own_struct(obj, "spec")
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_with_requests(container) for container in spec[name]]
    set_nil(spec, enableServiceLinks=True)
    if spec.get("hostNetwork"):
        for name in ("initContainers", "containers"):
            for container in spec.get(name) or ():
                for port in container.get("ports") or ():
                    set_zero(port, hostPort=port.get("containerPort", 0))


def _with_requests(container: JSON) -> JSON:
    """Returns a container whose requests are its limits where it states none."""
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**(resources.get("requests") or {})}
    requests |= {name: amount for name, amount in resources["limits"].items() if name not in requests}
    return {**container, "resources": {**resources, "requests": requests}}


def pod_spec(spec: JSON) -> None:
    """Sets the defaults of a PodSpec, of a Pod or of a template."""
    set_zero(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    set_nil(spec, securityContext={}, terminationGracePeriodSeconds=30)
    # One field under two names (pkg/apis/core/v1/conversion.go).
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def default_container(obj: JSON) -> None:
    """Sets the defaults of a container of any kind."""
    set_zero(
        obj,
        imagePullPolicy=pull_policy(str(obj.get("image") or "")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )


def default_probe(obj: JSON) -> None:
    """Sets the defaults of a probe."""
    set_zero(obj, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


def default_volume(obj: JSON) -> None:
    """Makes a volume without a source an emptyDir."""
    if all(value is None for key, value in obj.items() if key != "name"):
        obj["emptyDir"] = {}


def default_service(obj: JSON) -> None:
    """Sets the defaults of a Service."""
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


def replication_controller(obj: JSON) -> None:
    """Sets the defaults of a ReplicationController: selector and labels from its template."""
    labels = (((obj.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        set_zero(own_struct(obj, "spec"), selector=labels)
        set_zero(own_struct(obj, "metadata"), labels=labels)


def default_namespace(obj: JSON) -> None:
    """Sets the label of a Namespace that holds its name."""
    metadata = own_struct(obj, "metadata")
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


def persistent_volume(obj: JSON) -> None:
    """Sets the defaults of a PersistentVolume."""
    set_zero(own_struct(obj, "status"), phase="Pending")
    spec = own_struct(obj, "spec")
    set_zero(spec, persistentVolumeReclaimPolicy="Retain")
    set_nil(spec, volumeMode="Filesystem")


def default_limit_item(item: JSON) -> None:
    """Sets the defaults of a LimitRange's item: limits from the maximum, requests from the limits and the minimum."""
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    item["default"] = limits
    item["defaultRequest"] = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}


def node_status(status: JSON) -> None:
    """Sets a Node's allocatable to its capacity if it has none."""
    if status.get("capacity"):
        set_zero(status, allocatable=dict(status["capacity"]))


# -- workloads ---------------------------------------------------------------------------------------------------------


def default_deployment(obj: JSON) -> None:
    """Sets the defaults of a Deployment."""
    spec = own_struct(obj, "spec")
    set_nil(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = own_struct(spec, "strategy")
    set_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_nil(own_struct(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def daemon_set(obj: JSON) -> None:
    """Sets the defaults of a DaemonSet."""
    spec = own_struct(obj, "spec")
    set_nil(spec, revisionHistoryLimit=10)
    strategy = own_struct(spec, "updateStrategy")
    set_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_nil(own_struct(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    # The internal templateGeneration, which only this annotation shows (pkg/apis/apps/v1/conversion.go).
    metadata = own_struct(obj, "metadata")
    metadata["annotations"] = {"deprecated.daemonset.template.generation": "1", **(metadata.get("annotations") or {})}


def stateful_set(obj: JSON) -> None:
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


def default_job(obj: JSON) -> None:
    """Sets the defaults of a Job."""
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


def cron_job(obj: JSON) -> None:
    """Sets the defaults of a CronJob."""
    spec = own_struct(obj, "spec")
    set_zero(spec, concurrencyPolicy="Allow")
    set_nil(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def autoscaler_v1(obj: JSON) -> None:
    """Sets the defaults of autoscaling/v1's HorizontalPodAutoscaler."""
    set_nil(own_struct(obj, "spec"), minReplicas=1)


def default_autoscaler(obj: JSON) -> None:
    """Sets the defaults of a HorizontalPodAutoscaler: metrics, and scaling rules if it has a behavior."""
    spec = own_struct(obj, "spec")
    set_nil(spec, minReplicas=1)
    target = {"type": "Utilization", "averageUtilization": 80}
    set_zero(spec, metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    if spec.get("behavior") is not None:
        behavior = own_struct(spec, "behavior")
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        set_nil(
            own_struct(behavior, "scaleUp"), stabilizationWindowSeconds=0, selectPolicy="Max", policies=[pods, percent]
        )
        set_nil(own_struct(behavior, "scaleDown"), selectPolicy="Max", policies=[percent])
