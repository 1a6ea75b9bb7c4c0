"""Which type stands for which kind: the one table that knows plurals and scopes."""

from __future__ import annotations

import msgspec

from runup.api import (
    apiserver_v1,
    config_v1,
    core_v1,
    machineconfig_v1,
    operator_v1,
    update_v1alpha1,
    whole_v1,
    workloads_v1,
)
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


RESOURCES: dict[type[Object], Resource] = {
    core_v1.ConfigMap: Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    core_v1.Event: Resource("", "v1", "Event", "events", namespaced=True),
    core_v1.Namespace: Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    core_v1.Node: Resource("", "v1", "Node", "nodes", namespaced=False),
    core_v1.Pod: Resource("", "v1", "Pod", "pods", namespaced=True),
    core_v1.ServiceAccount: Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True),
    workloads_v1.Deployment: Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    workloads_v1.Lease: Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True),
    workloads_v1.PodDisruptionBudget: Resource(
        "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True
    ),
    config_v1.ClusterOperator: _config("ClusterOperator", "clusteroperators"),
    config_v1.ClusterVersion: _config("ClusterVersion", "clusterversions"),
    config_v1.FeatureGate: _config("FeatureGate", "featuregates"),
    config_v1.Infrastructure: _config("Infrastructure", "infrastructures"),
    config_v1.Network: _config("Network", "networks"),
    machineconfig_v1.MachineConfig: _machineconfig("MachineConfig", "machineconfigs"),
    machineconfig_v1.MachineConfigPool: _machineconfig("MachineConfigPool", "machineconfigpools"),
    operator_v1.Etcd: Resource("operator.openshift.io", "v1", "Etcd", "etcds", namespaced=False),
    apiserver_v1.APIRequestCount: Resource(
        "apiserver.openshift.io", "v1", "APIRequestCount", "apirequestcounts", namespaced=False
    ),
    update_v1alpha1.UpdateStatus: Resource(
        "update.openshift.io", "v1alpha1", "UpdateStatus", "updatestatuses", namespaced=False
    ),
    whole_v1.WholePod: Resource("", "v1", "Pod", "pods", namespaced=True),
    whole_v1.WholeNode: Resource("", "v1", "Node", "nodes", namespaced=False),
    whole_v1.WholeNamespace: Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    whole_v1.WholeDeployment: Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    whole_v1.WholeReplicaSet: Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True),
    whole_v1.WholeJob: Resource("batch", "v1", "Job", "jobs", namespaced=True),
}


def resource_of(kind: type[Object]) -> Resource:
    """The resource that `kind` stands for; raises KeyError for a type that is not in the table."""
    return RESOURCES[kind]
