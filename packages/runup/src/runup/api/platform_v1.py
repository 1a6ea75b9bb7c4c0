"""Volumes and their attachments, certificate requests, and other kinds, with the few fields that checks read."""

from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.meta_v1 import LooseCondition, Object, ObjectMeta, Wire

# The annotation in which `kubectl apply` keeps the manifest that it applied last.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class PersistentVolumeStatus(Wire, frozen=True):
    """`status` of a PersistentVolume: Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(Object, frozen=True, kw_only=True):
    """A volume; the key of `spec` names its plug-in, so that all of `spec` is a map."""

    spec: dict[str, Any] = {}
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeError(Wire, frozen=True):
    """An error of a volume, and its time."""

    time: datetime | None = None
    message: str = ""


class VolumeAttachmentSource(Wire, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Wire, frozen=True):
    """`spec` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Wire, frozen=True):
    """`status` of a VolumeAttachment."""

    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Object, frozen=True, kw_only=True):
    """The attachment of a volume to a node, or its detachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class IDRange(Wire, frozen=True):
    """A range of user or group IDs, both ends included."""

    min: int = 0
    max: int = 0


class GroupStrategy(Wire, frozen=True):
    """The groups that pods may have: RunAsAny, or MustRunAs with ranges; without ranges the namespace's own count."""

    type: str = "RunAsAny"
    ranges: tuple[IDRange, ...] = ()


class UserStrategy(Wire, frozen=True):
    """The users that containers may run as; without a range the namespace's own counts."""

    type: str = "RunAsAny"
    uid: int | None = None
    uid_range_min: int | None = None
    uid_range_max: int | None = None


class SELinuxOptions(Wire, frozen=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SELinuxStrategy(Wire, frozen=True):
    """The SELinux labels that pods may have; without a level the namespace's own counts."""

    type: str = "RunAsAny"
    options: SELinuxOptions = msgspec.field(default=SELinuxOptions(), name="seLinuxOptions")


class FlexVolumeDriver(Wire, frozen=True):
    """A driver of FlexVolumes that pods may use."""

    driver: str = ""


class SecurityContextConstraints(Object, frozen=True, kw_only=True):
    """The settings that pods of certain users and groups may have on OpenShift. A field that is absent permits."""

    priority: int | None = None
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    allow_privileged_container: bool = False
    allow_privilege_escalation: bool | None = None
    allow_host_network: bool = False
    allow_host_ports: bool = False
    allow_host_pid: bool = msgspec.field(default=False, name="allowHostPID")
    allow_host_ipc: bool = msgspec.field(default=False, name="allowHostIPC")
    read_only_root_filesystem: bool = False
    default_add_capabilities: tuple[str, ...] | None = None
    required_drop_capabilities: tuple[str, ...] | None = None
    allowed_capabilities: tuple[str, ...] | None = None
    volumes: tuple[str, ...] | None = None
    allowed_flex_volumes: tuple[FlexVolumeDriver, ...] | None = None
    run_as_user: UserStrategy = UserStrategy()
    se_linux_context: SELinuxStrategy = SELinuxStrategy()
    fs_group: GroupStrategy = GroupStrategy()
    supplemental_groups: GroupStrategy = GroupStrategy()
    seccomp_profiles: tuple[str, ...] | None = None
    allowed_unsafe_sysctls: tuple[str, ...] | None = None
    forbidden_sysctls: tuple[str, ...] | None = None
    user_namespace_level: str = ""


class Named(Wire, frozen=True):
    """A role or a subject of a binding: its kind and name."""

    kind: str = ""
    name: str = ""


class Subject(Named, frozen=True):
    """The user, group or ServiceAccount to whom a binding gives a role."""

    namespace: str = ""


class ClusterRoleBinding(Object, frozen=True, kw_only=True):
    """The subjects that have a ClusterRole in all namespaces."""

    role_ref: Named = Named()
    subjects: tuple[Subject, ...] = ()


class NodeMaintenanceSpec(Wire, frozen=True):
    """`spec` of a NodeMaintenance."""

    node_name: str = ""


class NodeMaintenance(Object, frozen=True):
    """A request of the node maintenance operator to keep a node cordoned and drained."""

    spec: NodeMaintenanceSpec = NodeMaintenanceSpec()


class CSINodeDriver(Wire, frozen=True):
    """A driver that is registered with a kubelet."""

    name: str = ""


class CSINodeSpec(Wire, frozen=True):
    """`spec` of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True):
    """The storage drivers of the node of that name."""

    spec: CSINodeSpec = CSINodeSpec()


class ConditionsStatus(Wire, frozen=True):
    """A status with only its conditions."""

    conditions: tuple[LooseCondition, ...] = ()


class StorageVersionMigration(Object, frozen=True):
    """A migration of stored objects to another version."""

    status: ConditionsStatus = ConditionsStatus()


class CSRSpec(Wire, frozen=True):
    """`spec` of a CertificateSigningRequest; the request itself is not read."""

    signer_name: str = ""
    username: str = ""


class CertificateSigningRequest(Object, frozen=True, kw_only=True):
    """A request for a certificate; without a condition it is pending."""

    spec: CSRSpec = CSRSpec()
    status: ConditionsStatus = ConditionsStatus()


class ServicePort(Wire, frozen=True):
    """A port of a Service."""

    port: int = 0


class ServiceSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Service; a Service of type ExternalName or without a selector selects no pods."""

    type: str = ""
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    external_ips: tuple[str, ...] = msgspec.field(name="externalIPs", default=())


class Service(Object, frozen=True):
    """A stable name and address for a set of pods."""

    spec: ServiceSpec = ServiceSpec()


class _OwnedMetadata(Wire, frozen=True):
    """The annotations that a manager owns."""

    annotations: dict[str, Any] = msgspec.field(name="f:annotations", default={})


class OwnedFields(Wire, frozen=True):
    """The part of `fieldsV1` that runup reads."""

    metadata: _OwnedMetadata = msgspec.field(name="f:metadata", default=_OwnedMetadata())


class ManagedFieldsEntry(Wire, frozen=True, kw_only=True):
    """The manager of some fields, with the version of the API that it used and the time of its last write."""

    manager: str = ""
    api_version: str = ""
    operation: str = ""
    time: datetime | None = None
    fields_v1: OwnedFields | None = None


class ManagedMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata with its managers; of the fields that they own only annotations are read."""

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class Managed(Object, frozen=True):
    """An object of any kind, reduced to its managers."""

    metadata: ManagedMeta = ManagedMeta()


class MachineStatus(Wire, frozen=True):
    """`status` of a Machine; `phase` is Running while the machine is healthy."""

    phase: str = ""
    error_reason: str = ""
    error_message: str = ""


class Machine(Object, frozen=True):
    """A machine of the machine API."""

    status: MachineStatus = MachineStatus()


class ProviderSpec(Wire, frozen=True):
    """A machine's settings, in the words of its cloud."""

    value: dict[str, Any] = {}


class MachineTemplateSpec(Wire, frozen=True):
    """`spec` of the machines that a MachineSet makes."""

    provider_spec: ProviderSpec = ProviderSpec()


class MachineTemplate(Wire, frozen=True):
    """The machines that a MachineSet makes."""

    spec: MachineTemplateSpec = MachineTemplateSpec()


class MachineSetSpec(Wire, frozen=True):
    """`spec` of a MachineSet."""

    template: MachineTemplate = MachineTemplate()


class MachineSet(Object, frozen=True):
    """Keeps a number of machines that are alike."""

    spec: MachineSetSpec = MachineSetSpec()


class CertificateStatus(Wire, frozen=True):
    """`status` of a Certificate; it is renewed at `renewal_time`."""

    not_after: datetime | None = None
    renewal_time: datetime | None = None
    conditions: tuple[LooseCondition, ...] = ()


class CertManagerCertificate(Object, frozen=True):
    """A certificate in a Secret, which cert-manager keeps."""

    status: CertificateStatus = CertificateStatus()


class VMISpec(Wire, frozen=True):
    """`spec` of a VirtualMachineInstance."""

    eviction_strategy: str = ""


class VMIStatus(Wire, frozen=True):
    """`status` of a VirtualMachineInstance."""

    phase: str = ""
    node_name: str = ""
    conditions: tuple[LooseCondition, ...] = ()


class VirtualMachineInstance(Object, frozen=True, kw_only=True):
    """A virtual machine that runs in a pod."""

    spec: VMISpec = VMISpec()
    status: VMIStatus = VMIStatus()


class KubeVirtConfiguration(Wire, frozen=True):
    """Settings for all virtual machines; `eviction_strategy` is that of machines which name none."""

    eviction_strategy: str = ""


class KubeVirtSpec(Wire, frozen=True):
    """`spec` of a KubeVirt."""

    configuration: KubeVirtConfiguration = KubeVirtConfiguration()


class KubeVirt(Object, frozen=True):
    """An installation of KubeVirt."""

    spec: KubeVirtSpec = KubeVirtSpec()


class KMMSpec(Wire, frozen=True):
    """`spec` of a PreflightValidation or PreflightValidationOCP."""

    kernel_version: str = ""
    release_image: str = ""


class KMMStatusEntry(Wire, frozen=True, kw_only=True):
    """The validation result of a module; `verification_status` is True/False, Success/Failure or InProgress."""

    name: str = ""
    namespace: str = ""
    verification_status: str = ""
    verification_stage: str = ""
    status_reason: str = ""


class KMMStatus(Wire, frozen=True):
    """The status of a validation in both shapes: a map (v1beta1) and a list (v1beta2)."""

    cr_statuses: dict[str, KMMStatusEntry] = msgspec.field(default={}, name="crStatuses")
    modules: tuple[KMMStatusEntry, ...] = ()


class PreflightValidation(Object, frozen=True, kw_only=True):
    """A validation that kernel modules exist for a kernel."""

    spec: KMMSpec = KMMSpec()
    status: KMMStatus = KMMStatus()


class PreflightValidationOCP(Object, frozen=True, kw_only=True):
    """A validation that kernel modules exist for the kernel of a release."""

    spec: KMMSpec = KMMSpec()
    status: KMMStatus = KMMStatus()


class UnhealthyCondition(Wire, frozen=True):
    """A node's condition that makes its machine unhealthy after `timeout`."""

    type: str = ""
    status: str = ""
    timeout: str = ""


class MachineHealthCheckSpec(Wire, frozen=True):
    """`spec` of a MachineHealthCheck; more unhealthy machines than `max_unhealthy` are left alone."""

    unhealthy_conditions: tuple[UnhealthyCondition, ...] = ()
    max_unhealthy: int | str | None = None


class MachineHealthCheckStatus(Wire, frozen=True):
    """`status` of a MachineHealthCheck."""

    expected_machines: int | None = None


class MachineHealthCheck(Object, frozen=True, kw_only=True):
    """Replaces or reboots machines whose nodes are unhealthy for long."""

    spec: MachineHealthCheckSpec = MachineHealthCheckSpec()
    status: MachineHealthCheckStatus = MachineHealthCheckStatus()


class CephHealthMessage(Wire, frozen=True):
    """A finding of Ceph about itself."""

    message: str = ""
    severity: str = ""


class CephHealth(Wire, frozen=True):
    """Ceph's word about itself: HEALTH_OK, HEALTH_WARN or HEALTH_ERR, and why, by name."""

    health: str = ""
    details: dict[str, CephHealthMessage] = {}


class ImageSelector(Wire, frozen=True):
    """One of the terms by which an EC2NodeClass selects images."""

    alias: str = ""


class EC2NodeClassSpec(Wire, frozen=True):
    """`spec` of an EC2NodeClass; Karpenter before 1.0 has the family of its images alone."""

    ami_family: str = ""
    ami_selector_terms: tuple[ImageSelector, ...] = ()


class EC2NodeClass(Object, frozen=True):
    """A class of nodes on AWS with the images that Karpenter uses (karpenter.k8s.aws/v1)."""

    spec: EC2NodeClassSpec = EC2NodeClassSpec()


class CephClusterStatus(Wire, frozen=True):
    """`status` of a CephCluster."""

    phase: str = ""
    ceph: CephHealth | None = None


class CephCluster(Object, frozen=True):
    """A Ceph cluster that Rook runs, as OpenShift Data Foundation does."""

    status: CephClusterStatus = CephClusterStatus()
