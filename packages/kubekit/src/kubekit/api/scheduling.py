"""Pods, volumes, claims, quotas and owners of pods, as far as scheduler and drain read them."""

from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Condition, LabelSelector, LabelSelectorRequirement, Object, Wire

Amounts = dict[str, str | int | float]


class Toleration(Wire, frozen=True):
    """Taints that a pod tolerates: all of them without a key, of any value with operator Exists."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Wire, frozen=True):
    """Requirements on a node, by labels and by fields; it must meet all of them."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """The nodes that have what one of the terms demands."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Wire, frozen=True):
    """The nodes on which pods must be; what they would rather have is not read."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Wire, frozen=True):
    """Pods next to which, or away from which, a pod must be: in the same value of the nodes' label `topology_key`."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class PodAffinity(Wire, frozen=True):
    """The required terms of a pod's affinity or anti-affinity to other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(Wire, frozen=True):
    """The required part of `affinity`: to nodes, to pods, and away from pods."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class TopologySpreadConstraint(Wire, frozen=True, kw_only=True):
    """A limit on how unevenly pods may be spread over the values of a node label."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ResourceRequirements(Wire, frozen=True):
    """The requests of a container or a pod, as quantities."""

    requests: Amounts = {}


class HostPort(Wire, frozen=True):
    """A port of a container; `host_port` is its port on the node, or 0."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class SchedulingContainer(Wire, frozen=True):
    """A container's requests and ports; an init container that restarts always is a sidecar."""

    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[HostPort, ...] = ()
    restart_policy: str = ""


class ClaimSource(Wire, frozen=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""


class EmptyDir(Wire, frozen=True):
    """A folder that ends with its pod."""

    medium: str = ""


class HostFolder(Wire, frozen=True):
    """A folder of the node."""

    path: str = ""


class Ephemeral(Wire, frozen=True):
    """A claim that is made for the pod, and ends with it."""


class SchedulingVolume(Wire, frozen=True):
    """A volume of a pod, as far as it ties the pod to a node."""

    persistent_volume_claim: ClaimSource | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostFolder | None = None
    ephemeral: Ephemeral | None = None


class SchedulingGate(Wire, frozen=True):
    """A gate that has to be removed before the pod is scheduled."""

    name: str = ""


class SchedulingPodSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Pod, as far as scheduler and drain read it."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[SchedulingContainer, ...] = ()
    init_containers: tuple[SchedulingContainer, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Amounts = {}
    volumes: tuple[SchedulingVolume, ...] = ()
    priority: int = 0
    preemption_policy: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    host_network: bool = False
    termination_grace_period_seconds: int = 30


class RestartedContainer(Wire, frozen=True):
    """The number of restarts of a container."""

    restart_count: int = 0


class SchedulingPodStatus(Wire, frozen=True):
    """`status` of a Pod: its phase, and when it became what it is."""

    phase: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[RestartedContainer, ...] = ()


class SchedulingPod(Object, frozen=True, kw_only=True):
    """A Pod as scheduler and drain see it."""

    spec: SchedulingPodSpec = SchedulingPodSpec()
    status: SchedulingPodStatus = SchedulingPodStatus()


class ClaimSpec(Wire, frozen=True):
    """`spec` of a PersistentVolumeClaim."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaim(Object, frozen=True):
    """A claim of a volume."""

    spec: ClaimSpec = ClaimSpec()


class CsiSource(Wire, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class ClaimRef(Wire, frozen=True):
    """The claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""


class VolumeSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a PersistentVolume."""

    capacity: Amounts = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity = VolumeNodeAffinity()
    csi: CsiSource | None = None
    claim_ref: ClaimRef | None = None


class SchedulingVolumeObject(Object, frozen=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()


class LabelSelectorTopology(Wire, frozen=True):
    """A label of nodes and its possible values."""

    key: str = ""
    values: tuple[str, ...] = ()

    @property
    def requirement(self) -> LabelSelectorRequirement:
        """The same as a requirement on a node."""
        return LabelSelectorRequirement(key=self.key, operator="In", values=self.values)


class TopologyTerm(Wire, frozen=True):
    """Labels of nodes on which a class makes volumes."""

    match_label_expressions: tuple[LabelSelectorTopology, ...] = ()


class StorageClass(Object, frozen=True, kw_only=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class AttachLimit(Wire, frozen=True):
    """The number of volumes that a driver attaches to a node at most; None if it states no limit."""

    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: AttachLimit = AttachLimit()


class CsiNodeSpec(Wire, frozen=True):
    """`spec` of a CSINode."""

    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(Object, frozen=True):
    """A CSINode: the drivers on the node of that name."""

    spec: CsiNodeSpec = CsiNodeSpec()


class QuotaSpec(Wire, frozen=True):
    """`spec` of a ResourceQuota."""

    hard: Amounts = {}
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class ResourceQuota(Object, frozen=True):
    spec: QuotaSpec = QuotaSpec()


class ScaleSpec(Wire, frozen=True):
    """The desired number of pods of a ReplicaSet, StatefulSet or ReplicationController."""

    replicas: int = 1


class PodsOwner(Object, frozen=True):
    """A controller of pods: a ReplicaSet, StatefulSet or ReplicationController."""

    spec: ScaleSpec = ScaleSpec()
