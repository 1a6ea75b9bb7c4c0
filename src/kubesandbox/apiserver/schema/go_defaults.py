"""The defaults that Kubernetes sets in code, type by type: the `SetDefaults_*` of k8s.io/kubernetes/pkg/apis at 1.34.

In: one struct of an object, at any depth. It is completed in place, before the structs within it, as Go's generated
defaulters do. Defaults that the table of types has are not repeated here; the fields that a registry or an admission
plugin adds to a new object are in `kubesandbox.apiserver.objects.defaults`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesandbox.apiserver.schema import go_defaults_core as core
from kubesandbox.apiserver.schema.go_values import JSON, nil, part, zero

Default = Callable[[JSON], None]

_FILE_MODE = 0o644
_RBAC = "rbac.authorization.k8s.io"
_HTTPS = 443


def _role_binding(obj: JSON) -> None:
    zero(part(obj, "roleRef"), apiGroup=_RBAC)


def _subject(subject: JSON) -> None:
    if subject.get("kind") in {"User", "Group"}:
        zero(subject, apiGroup=_RBAC)


def _match(rules: JSON) -> None:
    nil(rules, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})


def _webhook(hook: JSON) -> None:
    _match(hook)
    nil(hook, failurePolicy="Fail", timeoutSeconds=10)


def _mutating_webhook(hook: JSON) -> None:
    _webhook(hook)
    nil(hook, reinvocationPolicy="Never")


def _network_policy(obj: JSON) -> None:
    spec = part(obj, "spec")
    zero(spec, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _csi_driver(obj: JSON) -> None:
    spec = part(obj, "spec")
    nil(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    nil(spec, fsGroupPolicy="ReadWriteOnceWithFSType", seLinuxMount=False)
    zero(spec, volumeLifecycleModes=["Persistent"])


def _definition(obj: JSON) -> None:
    spec, status = part(obj, "spec"), part(obj, "status")
    names = part(spec, "names")
    kind = str(names.get("kind") or "")
    zero(names, singular=kind.lower())
    if kind:
        zero(names, listKind=f"{kind}List")
    nil(spec, conversion={"strategy": "None"})
    storage = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    zero(status, storedVersions=storage[:1])


def _setting(set_: Callable[..., None], **values: Any) -> Default:
    return lambda obj: set_(obj, **values)


# Type, without the common part of its package's name -> the function that sets its defaults.
_DEFAULTS: dict[str, Default] = {
    "core.v1.Pod": core.pod,
    "core.v1.PodSpec": core.pod_spec,
    "core.v1.Container": core.container,
    "core.v1.EphemeralContainer": core.container,
    "core.v1.Probe": core.probe,
    "core.v1.HTTPGetAction": _setting(zero, path="/", scheme="HTTP"),
    "core.v1.ContainerPort": _setting(zero, protocol="TCP"),
    "core.v1.ObjectFieldSelector": _setting(zero, apiVersion="v1"),
    "core.v1.Volume": core.volume,
    "core.v1.SecretVolumeSource": _setting(nil, defaultMode=_FILE_MODE),
    "core.v1.ConfigMapVolumeSource": _setting(nil, defaultMode=_FILE_MODE),
    "core.v1.DownwardAPIVolumeSource": _setting(nil, defaultMode=_FILE_MODE),
    "core.v1.ProjectedVolumeSource": _setting(nil, defaultMode=_FILE_MODE),
    "core.v1.ServiceAccountTokenProjection": _setting(nil, expirationSeconds=3600),
    "core.v1.HostPathVolumeSource": _setting(nil, type=""),
    "core.v1.Service": core.service,
    "core.v1.Secret": _setting(zero, type="Opaque"),
    "core.v1.EndpointPort": _setting(zero, protocol="TCP"),
    "core.v1.ReplicationController": core.replication_controller,
    "core.v1.Namespace": core.namespace,
    "core.v1.NamespaceStatus": _setting(zero, phase="Active"),
    "core.v1.PersistentVolume": core.persistent_volume,
    "core.v1.PersistentVolumeClaimSpec": _setting(nil, volumeMode="Filesystem"),
    "core.v1.PersistentVolumeClaimStatus": _setting(zero, phase="Pending"),
    "core.v1.LimitRangeItem": core.limit,
    "core.v1.NodeStatus": core.node_status,
    "apps.v1.Deployment": core.deployment,
    "apps.v1.ReplicaSet": lambda obj: nil(part(obj, "spec"), replicas=1),
    "apps.v1.DaemonSet": core.daemon_set,
    "apps.v1.StatefulSet": core.stateful_set,
    "batch.v1.Job": core.job,
    "batch.v1.CronJob": core.cron_job,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": _setting(zero, status="True"),
    "autoscaling.v1.HorizontalPodAutoscaler": core.autoscaler_v1,
    "autoscaling.v2.HorizontalPodAutoscaler": core.autoscaler,
    "rbac.v1.RoleBinding": _role_binding,
    "rbac.v1.ClusterRoleBinding": _role_binding,
    "rbac.v1.Subject": _subject,
    "admissionregistration.v1.ValidatingWebhook": _webhook,
    "admissionregistration.v1.MutatingWebhook": _mutating_webhook,
    "admissionregistration.v1.RuleWithOperations": _setting(nil, scope="*"),
    "admissionregistration.v1.NamedRuleWithOperations": _setting(nil, scope="*"),
    "admissionregistration.v1.ServiceReference": _setting(nil, port=_HTTPS),
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": _setting(nil, failurePolicy="Fail"),
    "admissionregistration.v1.MatchResources": _match,
    "apiregistration.v1.ServiceReference": _setting(nil, port=_HTTPS),
    "apiextensions.v1.ServiceReference": _setting(nil, port=_HTTPS),
    "apiextensions.v1.CustomResourceDefinition": _definition,
    "discovery.v1.EndpointPort": _setting(nil, name="", protocol="TCP"),
    "networking.v1.NetworkPolicyPort": _setting(nil, protocol="TCP"),
    "networking.v1.NetworkPolicy": _network_policy,
    "networking.v1.IngressClassParametersReference": _setting(nil, scope="Cluster"),
    "scheduling.v1.PriorityClass": _setting(nil, preemptionPolicy="PreemptLowerPriority"),
    "storage.v1.StorageClass": _setting(nil, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "storage.v1.CSIDriver": _csi_driver,
}


def default_of(name: str) -> Default | None:
    """Returns the function that sets a type's defaults, or None; `name` is full (`io.k8s.api.core.v1.Pod`)."""
    return _DEFAULTS.get(".".join(name.split(".")[-3:]))
