"""`update.openshift.io/v1alpha1`: UpdateStatus, the singleton `cluster` with the progress of the update.

Fields and limits follow the last singleton draft of the API (openshift/api#2012) with the union next to the `uid`, as
the enhancement has it; docs/decisions/0021 names the additions. Enumerations are plain text here, because a client must
be able to read the values of a newer controller: only the CRD restricts them. A field without a default is required.
"""

from datetime import datetime

from kubekit.api.meta_v1 import Condition, Object, Wire

NAME = "cluster"
NO_VERSION = "<none>"
"""What `versions.previous` holds for an installation."""


class ResourceRef(Wire, frozen=True, kw_only=True):
    """An object by its resource (the plural); `group` is empty for core, `namespace` for cluster-scoped ones.

    `cluster` is the side of a hosted cluster on which the object is: Management or Hosted; empty for other clusters.
    """

    group: str = ""
    resource: str
    name: str
    namespace: str = ""
    cluster: str = ""


class VersionMetadata(Wire, frozen=True):
    """A property of a version: `Installation`, `Partial` or `Architecture`; an empty value means that it is set."""

    key: str
    value: str = ""


class Version(Wire, frozen=True):
    """A version of the cluster, or `<none>` before an installation."""

    version: str
    metadata: tuple[VersionMetadata, ...] = ()


class Versions(Wire, frozen=True):
    """The versions from which and to which the control plane is updated."""

    previous: Version
    target: Version


class AwaitedOperator(Wire, frozen=True):
    """An operator that the update waits for; `since` is the operator's time, else that of the first observation."""

    name: str
    since: datetime | None = None
    reason: str = ""
    message: str = ""


class ClusterVersionInsight(Wire, frozen=True, kw_only=True):
    """The control plane's update as a whole.

    `assessment` is for people: Unknown, Progressing, `Progressing - Slow`, Stalled, Completed. `completion` is in
    percent of the operators. `versions` is absent while the cluster has no history.
    """

    resource: ResourceRef
    assessment: str
    completion: int
    versions: Versions | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    estimated_completed_at: datetime | None = None
    last_observed_progress: datetime | None = None
    waiting_for: tuple[AwaitedOperator, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ApiServerVersion(Wire, frozen=True):
    """A kube-apiserver, by the node that it runs on (`kube-apiserver` if that is not known), and its version."""

    name: str
    version: str


class KubernetesVersionInsight(ClusterVersionInsight, frozen=True, kw_only=True):
    """The update of a cluster without a ClusterVersion as a whole: its API servers, and what its nodes are updated by.

    `resource` is the namespace kube-system, whose uid identifies the cluster. `completion` is in percent of the API
    servers. `estimated_completed_at` is for the nodes, too.
    """

    distribution: str = ""
    api_servers: tuple[ApiServerVersion, ...] = ()


class HostedClusterInsight(ClusterVersionInsight, frozen=True, kw_only=True):
    """The update of a hosted cluster's control plane, like that of a ClusterVersion.

    `completion` is in percent of the ControlPlaneComponents, or of the operators where those are not known.
    `conditions` are Updating, and Healthy (conditions Available and Degraded of the HostedCluster).
    """


class OperatorProgress(Wire, frozen=True):
    """An operator's own Progressing condition, verbatim."""

    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ClusterOperatorInsight(Wire, frozen=True):
    """An operator: conditions `Updating` (Updated, Progressing, Pending, CannotDetermine) and `Healthy`."""

    name: str
    resource: ResourceRef
    progressing: OperatorProgress | None = None
    conditions: tuple[Condition, ...] = ()


class PoolSummary(Wire, frozen=True):
    """A number of nodes of a pool by state: Total, Available, Progressing, Outdated, Draining, Excluded, Degraded."""

    type: str
    count: int


class MachineConfigPoolInsight(Wire, frozen=True, kw_only=True):
    """A pool of nodes; `completion` is in percent of its nodes, 100 only when every node is done."""

    name: str
    resource: ResourceRef
    scope_type: str
    assessment: str
    completion: int
    summaries: tuple[PoolSummary, ...] = ()
    conditions: tuple[Condition, ...] = ()


class NodePoolInsight(MachineConfigPoolInsight, frozen=True, kw_only=True):
    """A pool of nodes of a hosted cluster, which may be at another version than the control plane.

    `upgrade_type` is Replace or InPlace. `assessment` is Excluded if nobody has asked the pool to update.
    """

    upgrade_type: str = ""
    versions: Versions | None = None


class NodeInsight(Wire, frozen=True, kw_only=True):
    """A node. `est_to_complete` is a duration such as `10m0s`: absent if unknown, `0s` if nothing remains."""

    name: str
    resource: ResourceRef
    pool_resource: ResourceRef
    scope_type: str
    version: str = ""
    est_to_complete: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()


class MachineInsight(NodeInsight, frozen=True, kw_only=True):
    """A machine of a hosted cluster's pool; `node_resource` is its Node on the hosted side, if it exists."""

    node_resource: ResourceRef | None = None


class HealthScope(Wire, frozen=True):
    """The scope of a health insight: `type` is ControlPlane, WorkerPool or Cluster."""

    type: str
    resources: tuple[ResourceRef, ...] = ()


class HealthImpact(Wire, frozen=True):
    """The impact: its `level` (Unknown, Info, Warning, Error, Critical), its `type`, a summary and a description."""

    level: str
    type: str
    summary: str
    description: str = ""


class HealthRemediation(Wire, frozen=True):
    """A reference to further information; absent for an alert without a runbook."""

    reference: str = ""
    estimated_finish: datetime | None = None


class HealthInsight(Wire, frozen=True, kw_only=True):
    """A problem that needs attention. `started_at` is absent if unknown; `first_observed_at` is always set.

    `check` names the rule that found it, in CamelCase, and never changes with the text.
    """

    scope: HealthScope
    impact: HealthImpact
    remediation: HealthRemediation = HealthRemediation()
    check: str = ""
    started_at: datetime | None = None
    first_observed_at: datetime | None = None


class Insight(Wire, frozen=True, kw_only=True):
    """A union: `type` names the member that is present."""

    uid: str
    acquired_at: datetime
    type: str
    cluster_version: ClusterVersionInsight | None = None
    kubernetes_version: KubernetesVersionInsight | None = None
    cluster_operator: ClusterOperatorInsight | None = None
    machine_config_pool: MachineConfigPoolInsight | None = None
    node: NodeInsight | None = None
    health: HealthInsight | None = None
    hosted_cluster: HostedClusterInsight | None = None
    node_pool: NodePoolInsight | None = None
    machine: MachineInsight | None = None

    @property
    def of_version(self) -> ClusterVersionInsight | None:
        """The insight of the control plane's version, of OpenShift, of Kubernetes or of a hosted cluster."""
        return self.cluster_version or self.kubernetes_version or self.hosted_cluster

    @property
    def of_pool(self) -> MachineConfigPoolInsight | None:
        """The insight of a pool of nodes."""
        return self.machine_config_pool or self.node_pool

    @property
    def of_node(self) -> NodeInsight | None:
        """The insight of a node, or of the machine that becomes one."""
        return self.node or self.machine


class Informer(Wire, frozen=True):
    """A reporter, and its insights."""

    name: str
    insights: tuple[Insight, ...] = ()


class Omitted(Wire, frozen=True):
    """The number of insights that were left out to keep the object small."""

    nodes: int = 0
    health: int = 0


class ControlPlane(Wire, frozen=True, kw_only=True):
    """The control plane: condition `Updating` says whether ClusterVersion is progressing."""

    resource: ResourceRef | None = None
    pool_resource: ResourceRef | None = None
    informers: tuple[Informer, ...] = ()
    omitted: Omitted = Omitted()
    conditions: tuple[Condition, ...] = ()


class WorkerPool(Wire, frozen=True, kw_only=True):
    """A pool of worker nodes: condition `Updating` says whether it is being updated to the target."""

    name: str
    resource: ResourceRef
    informers: tuple[Informer, ...] = ()
    omitted: Omitted = Omitted()
    conditions: tuple[Condition, ...] = ()


class UpdateStatusStatus(Wire, frozen=True):
    """`status` of UpdateStatus. `conditions` (Available, AlertsReachable, Complete) are about the report itself."""

    control_plane: ControlPlane | None = None
    worker_pools: tuple[WorkerPool, ...] = ()
    omitted_worker_pools: int = 0
    conditions: tuple[Condition, ...] = ()


class UpdateStatusSpec(Wire, frozen=True):
    """`spec` of UpdateStatus: empty for now, and required."""


class HostedClusterUpdateStatus(Object, frozen=True, kw_only=True):
    """The status of the update of the HostedCluster of the same name and namespace."""

    spec: UpdateStatusSpec = UpdateStatusSpec()
    status: UpdateStatusStatus | None = None


class UpdateStatus(Object, frozen=True, kw_only=True):
    """The singleton `cluster`. `status` is None until the controller has written it once."""

    spec: UpdateStatusSpec = UpdateStatusSpec()
    status: UpdateStatusStatus | None = None
