"""The table of kinds: maps each wire type to its resource, with plural and scope.

It begins with the kinds of Kubernetes itself. A package with other types adds their rows when it is imported, as
`runup.api` does.
"""

from __future__ import annotations

from importlib import import_module

import msgspec

from kubekit.api.meta_v1 import Object


class Resource(msgspec.Struct, frozen=True):
    """A kind as the API server knows it; `group` is empty for core."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The apiVersion: `group/version`, or `version` for core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The resource's full name, `plural.group`, as kubectl and RBAC errors write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return self.name


def _v1(group: str, kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group=group, version="v1", kind=kind, plural=plural, namespaced=namespaced)


# Keyed by the names of types, so that a command that needs one kind does not import all others.
RESOURCES: dict[str, Resource] = {
    "kubekit.api.core_v1.ConfigMap": _v1("", "ConfigMap", "configmaps"),
    "kubekit.api.core_v1.Event": _v1("", "Event", "events"),
    "kubekit.api.core_v1.Namespace": _v1("", "Namespace", "namespaces", namespaced=False),
    "kubekit.api.core_v1.Node": _v1("", "Node", "nodes", namespaced=False),
    "kubekit.api.core_v1.Pod": _v1("", "Pod", "pods"),
    "kubekit.api.core_v1.ServiceAccount": _v1("", "ServiceAccount", "serviceaccounts"),
    "kubekit.api.workloads_v1.Deployment": _v1("apps", "Deployment", "deployments"),
    "kubekit.api.workloads_v1.DaemonSet": _v1("apps", "DaemonSet", "daemonsets"),
    "kubekit.api.workloads_v1.Job": _v1("batch", "Job", "jobs"),
    "kubekit.api.workloads_v1.CronJob": _v1("batch", "CronJob", "cronjobs"),
    "kubekit.api.workloads_v1.Lease": _v1("coordination.k8s.io", "Lease", "leases"),
    "kubekit.api.workloads_v1.PodDisruptionBudget": _v1("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    "kubekit.api.whole_v1.WholePod": _v1("", "Pod", "pods"),
    "kubekit.api.whole_v1.WholeNode": _v1("", "Node", "nodes", namespaced=False),
    "kubekit.api.whole_v1.WholeDeployment": _v1("apps", "Deployment", "deployments"),
    "kubekit.api.whole_v1.WholeReplicaSet": _v1("apps", "ReplicaSet", "replicasets"),
    "kubekit.api.whole_v1.WholeJob": _v1("batch", "Job", "jobs"),
    "kubekit.api.extension_v1.CustomResourceDefinition": _v1(
        "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    ),
    "kubekit.api.extension_v1.APIService": _v1("apiregistration.k8s.io", "APIService", "apiservices", namespaced=False),
    "kubekit.api.extension_v1.ValidatingWebhookConfiguration": _v1(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    ),
    "kubekit.api.extension_v1.MutatingWebhookConfiguration": _v1(
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        namespaced=False,
    ),
    "kubekit.api.extension_v1.ValidatingAdmissionPolicy": _v1(
        "admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
    ),
    "kubekit.api.extension_v1.ValidatingAdmissionPolicyBinding": _v1(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        namespaced=False,
    ),
}


def resources_by_type() -> dict[type[Object], Resource]:
    """Returns the whole table, keyed by the types themselves, which it imports."""
    return {_import_type(name): resource for name, resource in RESOURCES.items()}


def guess_plural(kind: str) -> str:
    """Returns the most likely plural of a kind (apimachinery, pkg/api/meta: UnsafeGuessKindToResource)."""
    lower = kind.lower()
    if lower.endswith("endpoints"):
        return lower
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _import_type(name: str) -> type[Object]:
    module, _, kind = name.rpartition(".")
    wire_type: type[Object] = getattr(import_module(module), kind)
    return wire_type


def resource_of(kind: type[Object]) -> Resource:
    """Returns the resource of the type `kind`. Raises KeyError for a type that is not in the table."""
    return RESOURCES[f"{kind.__module__}.{kind.__name__}"]
