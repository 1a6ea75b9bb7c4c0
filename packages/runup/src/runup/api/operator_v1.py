"""`operator.openshift.io/v1`: configuration and detailed status of operators, beyond their ClusterOperator."""

from typing import Any

import msgspec

from kubekit.api.meta_v1 import Condition, LabelSelector, Object, Wire


class OperatorSpec(Wire, frozen=True):
    """The configuration that every operator has; the overrides are any JSON."""

    management_state: str = ""
    unsupported_config_overrides: Any = None


class EtcdStatus(Wire, frozen=True):
    """`status` of Etcd: one condition for each of the operator's controllers."""

    conditions: tuple[Condition, ...] = ()


class Etcd(Object, frozen=True, kw_only=True):
    """The singleton `cluster`: the etcd of the control plane."""

    spec: OperatorSpec = OperatorSpec()
    status: EtcdStatus = EtcdStatus()


class CloudCredentialSpec(Wire, frozen=True):
    """`spec` of CloudCredential; the empty mode is the operator's own choice."""

    credentials_mode: str = ""


class CloudCredential(Object, frozen=True):
    """The singleton `cluster`: the way in which components get credentials for the cloud."""

    spec: CloudCredentialSpec = CloudCredentialSpec()


class CredentialsRequest(Object, frozen=True):
    """A component's request for credentials for the cloud."""


class MachineSelection(Wire, frozen=True):
    """Part of the machine sets, by their labels."""

    machine_resource_selector: LabelSelector | None = None


class MachineManagerSelector(Wire, frozen=True):
    """The machine sets that are meant: mode All, Partial or None."""

    mode: str = ""
    partial: MachineSelection = MachineSelection()


class MachineManager(Wire, frozen=True):
    """The kind of machine sets whose boot images are kept up to date, and which of them."""

    resource: str = ""
    selection: MachineManagerSelector = MachineManagerSelector()


class ManagedBootImages(Wire, frozen=True):
    """Machine sets whose boot images are kept up to date."""

    machine_managers: tuple[MachineManager, ...] = ()


class BootImageVersion(Wire, frozen=True):
    """The version of the oldest boot image, by the release it is from or by its own."""

    ocp_version: str = msgspec.field(default="", name="ocpVersion")
    rhcos_version: str = msgspec.field(default="", name="rhcosVersion")


class BootImageSkewEnforcementStatus(Wire, frozen=True):
    """Enforcement by which old boot images hold updates back: mode Automatic, Manual or None."""

    mode: str = ""
    automatic: BootImageVersion = BootImageVersion()
    manual: BootImageVersion = BootImageVersion()


class MachineConfigurationStatus(Wire, frozen=True):
    """`status` of MachineConfiguration."""

    managed_boot_images_status: ManagedBootImages = ManagedBootImages()
    boot_image_skew_enforcement_status: BootImageSkewEnforcementStatus = BootImageSkewEnforcementStatus()


class MachineConfiguration(Object, frozen=True):
    """The singleton `cluster`: the machine-config operator's own configuration."""

    status: MachineConfigurationStatus = MachineConfigurationStatus()


class KubeAPIServer(Object, frozen=True):
    """The singleton `cluster`: the API server's operator."""

    spec: OperatorSpec = OperatorSpec()


class KubeControllerManager(Object, frozen=True):
    """The singleton `cluster`: the controller manager's operator."""

    spec: OperatorSpec = OperatorSpec()


class KubeScheduler(Object, frozen=True):
    """The singleton `cluster`: the scheduler's operator."""

    spec: OperatorSpec = OperatorSpec()


class Authentication(Object, frozen=True):
    """The singleton `cluster`: the operator of the OAuth server."""

    spec: OperatorSpec = OperatorSpec()


class OpenShiftAPIServer(Object, frozen=True):
    """The singleton `cluster`: the operator of OpenShift's aggregated API server."""

    spec: OperatorSpec = OperatorSpec()


class OpenShiftControllerManager(Object, frozen=True):
    """The singleton `cluster`: the operator of OpenShift's controllers."""

    spec: OperatorSpec = OperatorSpec()


class EtcdBackupStatus(Wire, frozen=True):
    """`status` of an EtcdBackup."""

    conditions: tuple[Condition, ...] = ()


class EtcdBackup(Object, frozen=True):
    """A requested backup of etcd."""

    status: EtcdBackupStatus = EtcdBackupStatus()


class ImageRegistryStorage(Wire, frozen=True):
    """The storage of the registry's images; `empty_dir` is deleted with its pod."""

    empty_dir: dict[str, Any] | None = None


class ImageRegistrySpec(Wire, frozen=True):
    """`spec` of the registry's Config."""

    management_state: str = ""
    storage: ImageRegistryStorage = ImageRegistryStorage()


class ImageRegistryConfig(Object, frozen=True):
    """The singleton `cluster`: the cluster's own image registry."""

    spec: ImageRegistrySpec = ImageRegistrySpec()


class OVNInternalSubnets(Wire, frozen=True):
    """The IPv4 networks that OVN-Kubernetes uses for itself; an empty one is the default."""

    internal_join_subnet: str = ""
    internal_transit_switch_subnet: str = ""


class OVNKubernetesConfig(Wire, frozen=True):
    """The settings of OVN-Kubernetes; `v4_internal_subnet` is the older name of the join subnet."""

    v4_internal_subnet: str = ""
    ipv4: OVNInternalSubnets = OVNInternalSubnets()


class DefaultNetwork(Wire, frozen=True):
    """The network of pods."""

    ovn_kubernetes_config: OVNKubernetesConfig = OVNKubernetesConfig()


class OperatorNetworkSpec(Wire, frozen=True):
    """`spec` of the network operator's Network; `migration` is the change that an administrator requested."""

    migration: dict[str, Any] | None = None
    default_network: DefaultNetwork = DefaultNetwork()


class OperatorNetwork(Object, frozen=True):
    """The singleton `cluster`: the configuration of the network operator."""

    spec: OperatorNetworkSpec = OperatorNetworkSpec()


class PublishingStrategy(Wire, frozen=True):
    """The way an ingress controller is reached: HostNetwork, LoadBalancerService, NodePortService or Private."""

    type: str = ""


class NodePlacement(Wire, frozen=True):
    """The nodes on which routers run; those of pool worker unless it says more."""

    node_selector: LabelSelector | None = None
    tolerations: tuple[Any, ...] = ()


class IngressControllerSpec(Wire, frozen=True):
    """`spec` of an IngressController."""

    replicas: int | None = None
    endpoint_publishing_strategy: PublishingStrategy | None = None
    node_placement: NodePlacement = NodePlacement()


class IngressControllerStatus(Wire, frozen=True):
    """`status` of an IngressController; the strategy is the one in force."""

    endpoint_publishing_strategy: PublishingStrategy | None = None


class IngressController(Object, frozen=True, kw_only=True):
    """Routers of the cluster."""

    spec: IngressControllerSpec = IngressControllerSpec()
    status: IngressControllerStatus = IngressControllerStatus()
