"""Validation of built-in kinds beyond their types: names, labels, immutable fields, dependencies between fields.

In: a kind, the object, and the object before (None for a new one). Out: faults, worded as k8s.io/kubernetes/pkg/apis
words them. For custom resources only metadata is validated here; the rest is in their schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubesandbox.apiserver.schema.crd import validate_crd, validate_crd_update
from kubesandbox.apiserver.schema.field_errors import FieldError
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.validation import (
    certificates,
    common,
    core,
    jobs,
    networking,
    pod_updates,
    pods,
    policies,
    webhooks,
    workloads,
)

JSON = dict[str, Any]
Rule = Callable[[JSON, JSON | None], Iterable[FieldError]]


def object_faults(kind: Kind, obj: JSON, old: JSON | None, part: str = "") -> list[FieldError]:
    """Returns all faults of `obj`, which is written through the subresource `part`."""
    field_errors = common.metadata_faults(kind, obj, old)
    rule = None if kind.custom else _RULES.get((kind.group, kind.kind))
    if (kind.group, kind.kind) == ("", "Pod"):
        rule = _OF_PODS.get(part)
    if rule is not None:
        field_errors += rule(obj, old)
    return field_errors


# By subresource. A binding sets the node of a pod; the others change no spec.
_OF_PODS: dict[str, Rule] = {
    "": lambda obj, old: pods.whole_spec(obj.get("spec") or {}) if old is None else pod_updates.update_faults(obj, old),
    "resize": pod_updates.resize_faults,
}
_RBAC = "rbac.authorization.k8s.io"
_RULES: dict[tuple[str, str], Rule] = {
    ("", "ConfigMap"): core.config_map,
    ("", "Secret"): core.secret_faults,
    ("", "Service"): networking.service_faults,
    ("", "Event"): core.event_faults,
    ("", "PersistentVolume"): core.volume_faults,
    ("", "PersistentVolumeClaim"): core.claim_faults,
    ("", "ResourceQuota"): core.quota_faults,
    ("", "LimitRange"): core.limit_range,
    ("", "PodTemplate"): pods.template_faults,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.autoscaler_faults,
    ("networking.k8s.io", "Ingress"): networking.ingress_faults,
    ("networking.k8s.io", "IngressClass"): networking.ingress_class,
    ("storage.k8s.io", "StorageClass"): core.class_faults,
    ("storage.k8s.io", "CSIDriver"): core.driver_faults,
    ("apps", "Deployment"): workloads.deployment_faults,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("batch", "Job"): jobs.job_faults,
    ("batch", "CronJob"): workloads.cron_job,
    ("policy", "PodDisruptionBudget"): workloads.budget_faults,
    ("coordination.k8s.io", "Lease"): core.lease_faults,
    ("networking.k8s.io", "NetworkPolicy"): networking.network_policy,
    ("certificates.k8s.io", "CertificateSigningRequest"): certificates.request_faults,
    ("scheduling.k8s.io", "PriorityClass"): policies.priority_class,
    ("node.k8s.io", "RuntimeClass"): policies.runtime_class,
    (_RBAC, "Role"): policies.role_faults,
    (_RBAC, "ClusterRole"): policies.cluster_role,
    (_RBAC, "RoleBinding"): policies.role_binding,
    (_RBAC, "ClusterRoleBinding"): policies.cluster_role_binding,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): policies.policy_faults,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): webhooks.configuration_faults,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): webhooks.configuration_faults,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        lambda obj, old: validate_crd(obj) if old is None else validate_crd_update(obj, old)
    ),
}
