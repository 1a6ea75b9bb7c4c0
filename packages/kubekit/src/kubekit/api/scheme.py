"""The table of kinds: maps each wire type to its resource, with plural and scope.

It begins with the kinds of Kubernetes itself. A package with types of its own adds their rows when it is imported, as
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


def _admission_resource(kind: str, plural: str) -> Resource:
    return Resource(group="admissionregistration.k8s.io", version="v1", kind=kind, plural=plural, namespaced=False)


# Keyed by the names of types, so that a command that needs one kind does not import all others.
RESOURCES: dict[str, Resource] = {
    "kubekit.api.core_v1.ConfigMap": Resource(
        group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True
    ),
    "kubekit.api.core_v1.Event": Resource(group="", version="v1", kind="Event", plural="events", namespaced=True),
    "kubekit.api.core_v1.Namespace": Resource(
        group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False
    ),
    "kubekit.api.core_v1.Node": Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False),
    "kubekit.api.core_v1.Pod": Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True),
    "kubekit.api.core_v1.ServiceAccount": Resource(
        group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True
    ),
    "kubekit.api.workloads_v1.Deployment": Resource(
        group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True
    ),
    "kubekit.api.workloads_v1.Job": Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True),
    "kubekit.api.workloads_v1.CronJob": Resource(
        group="batch", version="v1", kind="CronJob", plural="cronjobs", namespaced=True
    ),
    "kubekit.api.workloads_v1.Lease": Resource(
        group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", namespaced=True
    ),
    "kubekit.api.workloads_v1.PodDisruptionBudget": Resource(
        group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
    ),
    "kubekit.api.whole_v1.WholePod": Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True),
    "kubekit.api.whole_v1.WholeNode": Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False),
    "kubekit.api.whole_v1.WholeDeployment": Resource(
        group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True
    ),
    "kubekit.api.whole_v1.WholeReplicaSet": Resource(
        group="apps", version="v1", kind="ReplicaSet", plural="replicasets", namespaced=True
    ),
    "kubekit.api.whole_v1.WholeJob": Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True),
    "kubekit.api.extension_v1.CustomResourceDefinition": Resource(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
    ),
    "kubekit.api.extension_v1.APIService": Resource(
        group="apiregistration.k8s.io", version="v1", kind="APIService", plural="apiservices", namespaced=False
    ),
    "kubekit.api.extension_v1.ValidatingWebhookConfiguration": _admission_resource(
        "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
    ),
    "kubekit.api.extension_v1.MutatingWebhookConfiguration": _admission_resource(
        "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
    ),
    "kubekit.api.extension_v1.ValidatingAdmissionPolicy": _admission_resource(
        "ValidatingAdmissionPolicy", "validatingadmissionpolicies"
    ),
    "kubekit.api.extension_v1.ValidatingAdmissionPolicyBinding": _admission_resource(
        "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
    ),
}


def resources_by_type() -> dict[type[Object], Resource]:
    """Returns the whole table, keyed by the types themselves, which it imports."""
    return {_import_type(name): resource for name, resource in RESOURCES.items()}


def _import_type(name: str) -> type[Object]:
    module, _, kind = name.rpartition(".")
    wire_type: type[Object] = getattr(import_module(module), kind)
    return wire_type


def resource_of(kind: type[Object]) -> Resource:
    """Returns the resource of the type `kind`. Raises KeyError for a type that is not in the table."""
    return RESOURCES[f"{kind.__module__}.{kind.__name__}"]
