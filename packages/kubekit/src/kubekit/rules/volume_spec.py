"""Claims, volumes, classes and drivers, as far as they decide where a pod may be; and quotas and owners of pods."""

from __future__ import annotations

from typing import Any

from kubekit.api.meta_v1 import LabelSelectorRequirement, Object, Wire
from kubekit.rules.pod_spec import Amounts, NodeSelector, ResourceRequirements


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


class VolumeSpec(Wire, frozen=True):
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


class StorageClass(Object, frozen=True):
    """A StorageClass."""

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
    """A ResourceQuota."""

    spec: QuotaSpec = QuotaSpec()


class ScaleSpec(Wire, frozen=True):
    """The desired number of pods of a ReplicaSet, StatefulSet or ReplicationController."""

    replicas: int = 1


class PodsOwner(Object, frozen=True):
    """A controller of pods: a ReplicaSet, StatefulSet or ReplicationController."""

    spec: ScaleSpec = ScaleSpec()
