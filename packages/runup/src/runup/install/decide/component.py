"""The components that can be installed, and the choices that decide which objects they consist of."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from runup.process.names import OPERATOR_NAMESPACE

# The image of deploy/kernel-module-preflight, and of every form in which another tool puts the image.
PLACEHOLDER = "cluster-version-operator:latest"


class Platform(StrEnum):
    """The kind of cluster: what OpenShift brings, another cluster lacks."""

    OPENSHIFT = "openshift"
    KUBERNETES = "kubernetes"


class Certificates(StrEnum):
    """Maker of the certificates that components serve with."""

    SERVICE_CA = "service-ca"
    OWN = "own"
    CERT_MANAGER = "cert-manager"


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A component that can be installed by itself.

    `folder` is its folder below `deploy`, `namespace` the namespace of its manifests, `definitions` the files of the
    definitions that OpenShift brings and another cluster gets with the component. `kubernetes` is the oldest supported
    version. `fixed`: it is installed in that namespace only. `of_pools` is the file with the rights to pause pools,
    which the option `--with-pools` adds, `of_hubs` the one of `--hub`.
    """

    name: str
    folder: str
    namespace: str
    deployment: str
    does: str
    definitions: tuple[str, ...] = ()
    kubernetes: tuple[int, int] = (1, 29)
    fixed: bool = False
    of_pools: str = ""
    of_hubs: str = ""


OPERATOR = Component(
    name="operator",
    folder="manifests",
    namespace=OPERATOR_NAMESPACE,
    deployment="cluster-version-operator",
    does="keeps ClusterVersion: preflights, update advice, releases",
    definitions=(
        "0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
        "0000_00_cluster-version-operator_01_clusterversions.crd.yaml",
    ),
)
UPDATE_STATUS = Component(
    name="update-status",
    folder="update-status",
    namespace="openshift-update-status-controller",
    deployment="update-status-controller",
    does="keeps the object UpdateStatus, which `runup upgrade status` shows",
)
KERNEL_MODULES = Component(
    name="kernel-modules",
    folder="kernel-module-preflight",
    namespace="openshift-kernel-module-preflight",
    deployment="kernel-module-preflight",
    does="tries kernel modules for the kernel of another release",
    # The messages of its definitions use CEL functions of that version.
    kubernetes=(1, 30),
)
UPDATE_POLICY = Component(
    name="update-policy",
    folder="update-policy",
    namespace="runup-update",
    deployment="update-controller",
    does="starts updates by an UpdatePolicy, behind gates and in windows",
    # ValidatingAdmissionPolicy is GA since that version. The policies name the controller's account.
    kubernetes=(1, 30),
    fixed=True,
    of_pools="09_pools.yaml",
    of_hubs="10_hub.yaml",
)
FLEET_UPDATE = Component(
    name="fleet-update",
    folder="fleet-update",
    namespace="runup-fleet",
    deployment="fleet-controller",
    does="updates the clusters of a hub stage by stage, by FleetUpdates",
    # The engine's labels contain the namespace, so it must be short.
    fixed=True,
)
COMPONENTS = {
    component.name: component for component in (OPERATOR, UPDATE_STATUS, KERNEL_MODULES, UPDATE_POLICY, FLEET_UPDATE)
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of one installation.

    `hub`: the cluster takes update runs from a hub. `prometheus` are namespace and account of the Prometheus that reads
    metrics, `api_ports` the ports at which pods reach the API server.
    """

    image: str
    namespace: str
    platform: Platform
    monitoring: bool = False
    certificates: Certificates = Certificates.SERVICE_CA
    least_privilege: bool = False
    with_pools: bool = False
    hub: bool = False
    prometheus: tuple[str, str] = ("openshift-monitoring", "prometheus-k8s")
    api_ports: tuple[int, ...] = (443, 6443)


PROMETHEUS = {
    Platform.OPENSHIFT: ("openshift-monitoring", "prometheus-k8s"),
    # As kube-prometheus names it: https://github.com/prometheus-operator/kube-prometheus
    Platform.KUBERNETES: ("monitoring", "prometheus-k8s"),
}
