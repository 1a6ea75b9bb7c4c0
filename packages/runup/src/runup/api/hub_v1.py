"""The API of a hub of Open Cluster Management: clusters, cluster sets, and the ManifestWorks for each cluster."""

from typing import Any

from kubekit.api.meta_v1 import LabelSelector, LooseCondition, Object, Wire

CLUSTER_SET_LABEL = "cluster.open-cluster-management.io/clusterset"
ADDON_LABEL = "open-cluster-management.io/addon-name"
"""Label of a ManifestWork that an add-on made, with the add-on's name."""


class ManagedClusterSpec(Wire, frozen=True):
    """`spec` of a ManagedCluster: whether the hub's administrator has let it in."""

    hub_accepts_client: bool = False


class ClusterClaim(Wire, frozen=True):
    """A property of a cluster that it reports in a ClusterClaim, such as its ID."""

    name: str = ""
    value: str = ""


class ManagedClusterStatus(Wire, frozen=True):
    """`status` of a ManagedCluster; its condition of availability is Unknown once its agent is silent."""

    conditions: tuple[LooseCondition, ...] = ()
    cluster_claims: tuple[ClusterClaim, ...] = ()


class ManagedCluster(Object, frozen=True, kw_only=True):
    """A cluster of the hub; its name is also that of its namespace there."""

    spec: ManagedClusterSpec = ManagedClusterSpec()
    status: ManagedClusterStatus = ManagedClusterStatus()


class ClusterSelector(Wire, frozen=True):
    """The rule by which a set chooses its clusters: the label with the set's name, or a selector."""

    selector_type: str = "ExclusiveClusterSetLabel"
    label_selector: LabelSelector = LabelSelector()


class ManagedClusterSetSpec(Wire, frozen=True):
    """`spec` of a ManagedClusterSet."""

    cluster_selector: ClusterSelector = ClusterSelector()


class ManagedClusterSet(Object, frozen=True):
    """A set of the hub's clusters."""

    spec: ManagedClusterSetSpec = ManagedClusterSetSpec()


class Workload(Wire, frozen=True):
    """The manifests of a ManifestWork, as whole objects."""

    manifests: tuple[dict[str, Any], ...] = ()


class ManifestWorkSpec(Wire, frozen=True):
    """`spec` of a ManifestWork."""

    workload: Workload = Workload()


class ResourceMeta(Wire, frozen=True):
    """The object of the cluster that a part of the status is about."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class FieldValue(Wire, frozen=True):
    """A value out of the cluster; `string` is empty, and `boolean` false, for one of another type."""

    type: str = ""
    string: str = ""
    boolean: bool = False


class FeedbackValue(Wire, frozen=True):
    """A value that the agent has read out of an object, by the name of its rule."""

    name: str = ""
    field_value: FieldValue = FieldValue()


class StatusFeedback(Wire, frozen=True):
    """The values that the agent has read from an object, by the feedback rules."""

    values: tuple[FeedbackValue, ...] = ()


class ManifestStatus(Wire, frozen=True):
    """The status of one object of a ManifestWork."""

    resource_meta: ResourceMeta = ResourceMeta()
    status_feedback: StatusFeedback = StatusFeedback()
    conditions: tuple[LooseCondition, ...] = ()


class ResourceStatus(Wire, frozen=True):
    """The status of each object of a ManifestWork."""

    manifests: tuple[ManifestStatus, ...] = ()


class WorkCondition(LooseCondition, frozen=True, kw_only=True):
    """A condition of a ManifestWork, and the generation of the work that it is about."""

    observed_generation: int = 0


class ManifestWorkStatus(Wire, frozen=True):
    """`status` of a ManifestWork, which the agent in the cluster writes."""

    conditions: tuple[WorkCondition, ...] = ()
    resource_status: ResourceStatus = ResourceStatus()


class ManifestWork(Object, frozen=True, kw_only=True):
    """Objects that the hub wants in one cluster, that of its namespace."""

    spec: ManifestWorkSpec = ManifestWorkSpec()
    status: ManifestWorkStatus = ManifestWorkStatus()
