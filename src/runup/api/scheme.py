"""Which type stands for which kind: the one table that knows plurals and scopes."""

from __future__ import annotations

from importlib import import_module

import msgspec

from runup.api.meta_v1 import Object


class Resource(msgspec.Struct, frozen=True):
    """A kind as the API server knows it; `group` is empty for core."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` for core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The resource's full name, `plural.group`, as kubectl and RBAC errors write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return self.name


def _config(kind: str, plural: str) -> Resource:
    return Resource("config.openshift.io", "v1", kind, plural, namespaced=False)


def _machineconfig(kind: str, plural: str) -> Resource:
    return Resource("machineconfiguration.openshift.io", "v1", kind, plural, namespaced=False)


def _olm(kind: str, plural: str) -> Resource:
    return Resource("operators.coreos.com", "v1alpha1", kind, plural, namespaced=True)


def _operator(kind: str, plural: str) -> Resource:
    return Resource("operator.openshift.io", "v1", kind, plural, namespaced=False)


def _admission(kind: str, plural: str) -> Resource:
    return Resource("admissionregistration.k8s.io", "v1", kind, plural, namespaced=False)


def _kmm(version: str, kind: str, plural: str) -> Resource:
    return Resource("kmm.sigs.x-k8s.io", version, kind, plural, namespaced=kind == "Module")


# By the names of types: a command that asks for one kind need not make the types of all others.
RESOURCES: dict[str, Resource] = {
    "core_v1.ConfigMap": Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    "core_v1.Event": Resource("", "v1", "Event", "events", namespaced=True),
    "core_v1.Namespace": Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    "core_v1.Node": Resource("", "v1", "Node", "nodes", namespaced=False),
    "core_v1.Pod": Resource("", "v1", "Pod", "pods", namespaced=True),
    "core_v1.ServiceAccount": Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True),
    "workloads_v1.Deployment": Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    "workloads_v1.Lease": Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True),
    "workloads_v1.PodDisruptionBudget": Resource(
        "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True
    ),
    "config_v1.ClusterOperator": _config("ClusterOperator", "clusteroperators"),
    "config_v1.ClusterVersion": _config("ClusterVersion", "clusterversions"),
    "config_v1.FeatureGate": _config("FeatureGate", "featuregates"),
    "config_v1.Infrastructure": _config("Infrastructure", "infrastructures"),
    "config_v1.Network": _config("Network", "networks"),
    "machineconfig_v1.MachineConfig": _machineconfig("MachineConfig", "machineconfigs"),
    "machineconfig_v1.MachineConfigPool": _machineconfig("MachineConfigPool", "machineconfigpools"),
    "operator_v1.Etcd": Resource("operator.openshift.io", "v1", "Etcd", "etcds", namespaced=False),
    "apiserver_v1.APIRequestCount": Resource(
        "apiserver.openshift.io", "v1", "APIRequestCount", "apirequestcounts", namespaced=False
    ),
    "update_v1alpha1.UpdateStatus": Resource(
        "update.openshift.io", "v1alpha1", "UpdateStatus", "updatestatuses", namespaced=False
    ),
    "build_v1.Build": Resource("build.openshift.io", "v1", "Build", "builds", namespaced=True),
    "whole_v1.WholePod": Resource("", "v1", "Pod", "pods", namespaced=True),
    "whole_v1.WholeNode": Resource("", "v1", "Node", "nodes", namespaced=False),
    "whole_v1.WholeNamespace": Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    "whole_v1.WholeDeployment": Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    "whole_v1.WholeReplicaSet": Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True),
    "whole_v1.WholeJob": Resource("batch", "v1", "Job", "jobs", namespaced=True),
    "config_v1.ConfigNode": _config("Node", "nodes"),
    "config_v1.Proxy": _config("Proxy", "proxies"),
    "machineconfig_v1.KubeletConfig": _machineconfig("KubeletConfig", "kubeletconfigs"),
    "operator_v1.CloudCredential": _operator("CloudCredential", "cloudcredentials"),
    "operator_v1.KubeAPIServer": _operator("KubeAPIServer", "kubeapiservers"),
    "operator_v1.KubeControllerManager": _operator("KubeControllerManager", "kubecontrollermanagers"),
    "operator_v1.KubeScheduler": _operator("KubeScheduler", "kubeschedulers"),
    "operator_v1.EtcdBackup": Resource(
        "operator.openshift.io", "v1alpha1", "EtcdBackup", "etcdbackups", namespaced=False
    ),
    "operator_v1.CredentialsRequest": Resource(
        "cloudcredential.openshift.io", "v1", "CredentialsRequest", "credentialsrequests", namespaced=True
    ),
    "operator_v1.ImageRegistryConfig": Resource(
        "imageregistry.operator.openshift.io", "v1", "Config", "configs", namespaced=False
    ),
    "olm_v1alpha1.Subscription": _olm("Subscription", "subscriptions"),
    "olm_v1alpha1.InstallPlan": _olm("InstallPlan", "installplans"),
    "olm_v1alpha1.ClusterServiceVersion": _olm("ClusterServiceVersion", "clusterserviceversions"),
    "olm_v1alpha1.CatalogSource": _olm("CatalogSource", "catalogsources"),
    "olm_v1alpha1.ClusterExtension": Resource(
        "olm.operatorframework.io", "v1", "ClusterExtension", "clusterextensions", namespaced=False
    ),
    "extension_v1.CustomResourceDefinition": Resource(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    ),
    "extension_v1.APIService": Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False),
    "extension_v1.ValidatingWebhookConfiguration": _admission(
        "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
    ),
    "extension_v1.MutatingWebhookConfiguration": _admission(
        "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
    ),
    "extension_v1.ValidatingAdmissionPolicy": _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    "extension_v1.ValidatingAdmissionPolicyBinding": _admission(
        "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
    ),
    "platform_v1.PersistentVolume": Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    "platform_v1.CSINode": Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False),
    "platform_v1.VolumeAttachment": Resource(
        "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False
    ),
    "platform_v1.StorageVersionMigration": Resource(
        "migration.k8s.io", "v1alpha1", "StorageVersionMigration", "storageversionmigrations", namespaced=False
    ),
    "platform_v1.CertificateSigningRequest": Resource(
        "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
    ),
    "platform_v1.Service": Resource("", "v1", "Service", "services", namespaced=True),
    "platform_v1.Machine": Resource("machine.openshift.io", "v1beta1", "Machine", "machines", namespaced=True),
    "platform_v1.VirtualMachineInstance": Resource(
        "kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances", namespaced=True
    ),
    "platform_v1.PreflightValidation": _kmm("v1beta2", "PreflightValidation", "preflightvalidations"),
    "platform_v1.PreflightValidationOCP": _kmm("v1beta2", "PreflightValidationOCP", "preflightvalidationsocp"),
    "kmm_v1beta1.Module": _kmm("v1beta1", "Module", "modules"),
    "kmm_v1beta1.PreflightValidation": _kmm("v1beta1", "PreflightValidation", "preflightvalidations"),
    "kmm_v1beta1.PreflightValidationOCP": _kmm("v1beta1", "PreflightValidationOCP", "preflightvalidationsocp"),
    "kmm_v1beta2.PreflightValidation": _kmm("v1beta2", "PreflightValidation", "preflightvalidations"),
    "kmm_v1beta2.PreflightValidationOCP": _kmm("v1beta2", "PreflightValidationOCP", "preflightvalidationsocp"),
}


def types() -> dict[type[Object], Resource]:
    """The whole table, by the types themselves."""
    return {_type(name): resource for name, resource in RESOURCES.items()}


def _type(name: str) -> type[Object]:
    module, _, kind = name.partition(".")
    found: type[Object] = getattr(import_module(f"runup.api.{module}"), kind)
    return found


def resource_of(kind: type[Object]) -> Resource:
    """The resource that `kind` stands for; raises KeyError for a type that is not in the table."""
    return RESOURCES[f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"]
