"""The defaults that Kubernetes sets in code, type by type: the `SetDefaults_*` of k8s.io/kubernetes/pkg/apis at 1.34.

In: one struct of an object, at any depth. It is completed in place, before the structs within it, as Go's generated
defaulters do. Defaults that the table of types has are not repeated here; the fields that a registry or an admission
plugin adds to a new object are in `kubesandbox.apiserver.objects.defaults`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesandbox.apiserver.schema import go_defaults_core as core
from kubesandbox.apiserver.schema.go_values import JSON, own_struct, set_nil, set_zero

Default = Callable[[JSON], None]

_FILE_MODE = 0o644
_RBAC = "rbac.authorization.k8s.io"
_HTTPS = 443


def _role_binding(obj: JSON) -> None:
    set_zero(own_struct(obj, "roleRef"), apiGroup=_RBAC)


def _default_subject(subject: JSON) -> None:
    if subject.get("kind") in {"User", "Group"}:
        set_zero(subject, apiGroup=_RBAC)


def _default_match_rules(rules: JSON) -> None:
    set_nil(rules, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})


def _default_webhook(hook: JSON) -> None:
    _default_match_rules(hook)
    set_nil(hook, failurePolicy="Fail", timeoutSeconds=10)


def _mutating_webhook(hook: JSON) -> None:
    _default_webhook(hook)
    set_nil(hook, reinvocationPolicy="Never")


def _network_policy(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_zero(spec, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _csi_driver(obj: JSON) -> None:
    spec = own_struct(obj, "spec")
    set_nil(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    set_nil(spec, fsGroupPolicy="ReadWriteOnceWithFSType", seLinuxMount=False)
    set_zero(spec, volumeLifecycleModes=["Persistent"])


def _default_definition(obj: JSON) -> None:
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


def _default_setter(set_: Callable[..., None], **values: Any) -> Default:
    return lambda obj: set_(obj, **values)


# Type, without the common part of its package's name -> the function that sets its defaults.
_DEFAULTS: dict[str, Default] = {
    "core.v1.Pod": core.default_pod,
    "core.v1.PodSpec": core.pod_spec,
    "core.v1.Container": core.default_container,
    "core.v1.EphemeralContainer": core.default_container,
    "core.v1.Probe": core.default_probe,
    "core.v1.HTTPGetAction": _default_setter(set_zero, path="/", scheme="HTTP"),
    "core.v1.ContainerPort": _default_setter(set_zero, protocol="TCP"),
    "core.v1.ObjectFieldSelector": _default_setter(set_zero, apiVersion="v1"),
    "core.v1.Volume": core.default_volume,
    "core.v1.SecretVolumeSource": _default_setter(set_nil, defaultMode=_FILE_MODE),
    "core.v1.ConfigMapVolumeSource": _default_setter(set_nil, defaultMode=_FILE_MODE),
    "core.v1.DownwardAPIVolumeSource": _default_setter(set_nil, defaultMode=_FILE_MODE),
    "core.v1.ProjectedVolumeSource": _default_setter(set_nil, defaultMode=_FILE_MODE),
    "core.v1.ServiceAccountTokenProjection": _default_setter(set_nil, expirationSeconds=3600),
    "core.v1.HostPathVolumeSource": _default_setter(set_nil, type=""),
    "core.v1.Service": core.default_service,
    "core.v1.Secret": _default_setter(set_zero, type="Opaque"),
    "core.v1.EndpointPort": _default_setter(set_zero, protocol="TCP"),
    "core.v1.ReplicationController": core.replication_controller,
    "core.v1.Namespace": core.default_namespace,
    "core.v1.NamespaceStatus": _default_setter(set_zero, phase="Active"),
    "core.v1.PersistentVolume": core.persistent_volume,
    "core.v1.PersistentVolumeClaimSpec": _default_setter(set_nil, volumeMode="Filesystem"),
    "core.v1.PersistentVolumeClaimStatus": _default_setter(set_zero, phase="Pending"),
    "core.v1.LimitRangeItem": core.default_limit_item,
    "core.v1.NodeStatus": core.node_status,
    "apps.v1.Deployment": core.default_deployment,
    "apps.v1.ReplicaSet": lambda obj: set_nil(own_struct(obj, "spec"), replicas=1),
    "apps.v1.DaemonSet": core.daemon_set,
    "apps.v1.StatefulSet": core.stateful_set,
    "batch.v1.Job": core.default_job,
    "batch.v1.CronJob": core.cron_job,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": _default_setter(set_zero, status="True"),
    "autoscaling.v1.HorizontalPodAutoscaler": core.autoscaler_v1,
    "autoscaling.v2.HorizontalPodAutoscaler": core.default_autoscaler,
    "rbac.v1.RoleBinding": _role_binding,
    "rbac.v1.ClusterRoleBinding": _role_binding,
    "rbac.v1.Subject": _default_subject,
    "admissionregistration.v1.ValidatingWebhook": _default_webhook,
    "admissionregistration.v1.MutatingWebhook": _mutating_webhook,
    "admissionregistration.v1.RuleWithOperations": _default_setter(set_nil, scope="*"),
    "admissionregistration.v1.NamedRuleWithOperations": _default_setter(set_nil, scope="*"),
    "admissionregistration.v1.ServiceReference": _default_setter(set_nil, port=_HTTPS),
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": _default_setter(set_nil, failurePolicy="Fail"),
    "admissionregistration.v1.MatchResources": _default_match_rules,
    "apiregistration.v1.ServiceReference": _default_setter(set_nil, port=_HTTPS),
    "apiextensions.v1.ServiceReference": _default_setter(set_nil, port=_HTTPS),
    "apiextensions.v1.CustomResourceDefinition": _default_definition,
    "discovery.v1.EndpointPort": _default_setter(set_nil, name="", protocol="TCP"),
    "networking.v1.NetworkPolicyPort": _default_setter(set_nil, protocol="TCP"),
    "networking.v1.NetworkPolicy": _network_policy,
    "networking.v1.IngressClassParametersReference": _default_setter(set_nil, scope="Cluster"),
    "scheduling.v1.PriorityClass": _default_setter(set_nil, preemptionPolicy="PreemptLowerPriority"),
    "storage.v1.StorageClass": _default_setter(set_nil, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "storage.v1.CSIDriver": _csi_driver,
}


def default_of(name: str) -> Default | None:
    """Returns the function that sets a type's defaults, or None; `name` is full (`io.k8s.api.core.v1.Pod`)."""
    return _DEFAULTS.get(".".join(name.split(".")[-3:]))
