"""`config.openshift.io/v1`: ClusterVersion and the cluster's own configuration, as far as runup reads them.

Types and limits follow openshift/api's types_cluster_version.go; `mode` is gated by ClusterUpdatePreflight,
`acceptRisks`, `riskNames` and `conditionalUpdateRisks` by ClusterUpdateAcceptRisks.
"""

from datetime import datetime
from typing import Literal

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire


class AcceptRisk(Wire, frozen=True):
    """A risk that the administrator accepts, by name, for every target."""

    name: str


class Update(Wire, frozen=True):
    """`spec.desiredUpdate`: what the administrator asks for. `mode` is empty (update) or `Preflight` (check only)."""

    architecture: str = ""
    version: str = ""
    image: str = ""
    force: bool = False
    accept_risks: tuple[AcceptRisk, ...] = ()
    mode: str = ""


class ComponentOverride(Wire, frozen=True):
    """A manifest that the operator is told to leave alone."""

    kind: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""
    unmanaged: bool = False


class CapabilitiesSpec(Wire, frozen=True):
    """Which optional parts of a release the cluster wants."""

    baseline_capability_set: str = ""
    additional_enabled_capabilities: tuple[str, ...] = ()


class NameReference(Wire, frozen=True):
    """A ConfigMap by name; in which namespace, whoever refers to it says."""

    name: str = ""


class SignatureStore(Wire, frozen=True):
    """Where signatures are looked up instead of the release's own stores.

    `ca` is a ConfigMap of `openshift-config` whose `ca.crt` has the only authorities that count for it.
    """

    url: str
    ca: NameReference = NameReference()


class ClusterVersionSpec(Wire, frozen=True):
    """`spec` of ClusterVersion. `signature_stores` is None when unset, which differs from an empty list."""

    cluster_id: str = msgspec.field(default="", name="clusterID")
    channel: str = ""
    upstream: str = ""
    desired_update: Update | None = None
    overrides: tuple[ComponentOverride, ...] = ()
    capabilities: CapabilitiesSpec | None = None
    signature_stores: tuple[SignatureStore, ...] | None = None


class Release(Wire, frozen=True):
    """A release as update advice names it."""

    version: str = ""
    image: str = ""
    url: str = ""
    architecture: str = ""
    channels: tuple[str, ...] = ()


class PromQL(Wire, frozen=True):
    """A query that yields one sample of value 0 or 1."""

    promql: str


class MatchingRule(Wire, frozen=True):
    """When a risk applies: `Always`, or as a query says."""

    type: str
    promql: PromQL | None = None


class ConditionalUpdateRisk(Wire, frozen=True):
    """A risk of an update. `conditions` holds exactly one `Applies` where the API carries it."""

    name: str
    message: str
    url: str
    matching_rules: tuple[MatchingRule, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ConditionalUpdate(Wire, frozen=True):
    """A release whose update carries risks; its condition `Recommended` says what they come to for this cluster."""

    release: Release
    risks: tuple[ConditionalUpdateRisk, ...] = ()
    risk_names: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


class UpdateHistory(Wire, frozen=True):
    """One entry of the cluster's past, newest first; `completion_time` is null for the newest while it is Partial."""

    state: Literal["Completed", "Partial"]
    started_time: datetime
    version: str = ""
    image: str = ""
    completion_time: datetime | None = None
    verified: bool = False
    accepted_risks: str = ""


class CapabilitiesStatus(Wire, frozen=True):
    """Which capabilities are on, and which this release knows; both sorted."""

    enabled_capabilities: tuple[str, ...] = ()
    known_capabilities: tuple[str, ...] = ()


class ClusterVersionStatus(Wire, frozen=True):
    """`status` of ClusterVersion. `available_updates` is None where the API says null: not known yet."""

    desired: Release = Release()
    history: tuple[UpdateHistory, ...] = ()
    observed_generation: int = 0
    version_hash: str = ""
    capabilities: CapabilitiesStatus = CapabilitiesStatus()
    conditions: tuple[Condition, ...] = ()
    available_updates: tuple[Release, ...] | None = None
    conditional_updates: tuple[ConditionalUpdate, ...] = ()
    conditional_update_risks: tuple[ConditionalUpdateRisk, ...] = ()


class ClusterVersion(Object, frozen=True):
    """The singleton `version`: which release the cluster runs, and which it should."""

    spec: ClusterVersionSpec = ClusterVersionSpec()
    status: ClusterVersionStatus = ClusterVersionStatus()


class OperandVersion(Wire, frozen=True):
    """A version that a ClusterOperator reports; the name `operator` is its own."""

    name: str = ""
    version: str = ""


class ObjectReference(Wire, frozen=True):
    """An object that a ClusterOperator concerns itself with."""

    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class ClusterOperatorStatus(Wire, frozen=True):
    """`status` of a ClusterOperator."""

    conditions: tuple[Condition, ...] = ()
    versions: tuple[OperandVersion, ...] = ()
    related_objects: tuple[ObjectReference, ...] = ()


class ClusterOperator(Object, frozen=True):
    """A component's health: Available, Progressing, Degraded, Upgradeable."""

    status: ClusterOperatorStatus = ClusterOperatorStatus()


class FeatureGateAttributes(Wire, frozen=True):
    """A gate by name."""

    name: str = ""


class FeatureGateDetails(Wire, frozen=True):
    """Which gates a version of the cluster has on and off."""

    version: str = ""
    enabled: tuple[FeatureGateAttributes, ...] = ()
    disabled: tuple[FeatureGateAttributes, ...] = ()


class CustomFeatureGates(Wire, frozen=True):
    """The gates that an administrator chose for the set CustomNoUpgrade."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class FeatureGateSpec(Wire, frozen=True):
    """`spec` of FeatureGate; the empty feature set is the default one."""

    feature_set: str = ""
    custom_no_upgrade: CustomFeatureGates | None = None


class FeatureGateStatus(Wire, frozen=True):
    """`status` of FeatureGate, one entry a version."""

    feature_gates: tuple[FeatureGateDetails, ...] = ()


class FeatureGate(Object, frozen=True):
    """The singleton `cluster`: feature set and gates."""

    spec: FeatureGateSpec = FeatureGateSpec()
    status: FeatureGateStatus = FeatureGateStatus()


class ClusterNetworkEntry(Wire, frozen=True):
    """A range of pod addresses."""

    cidr: str = ""


class NetworkSpec(Wire, frozen=True):
    """`spec` of Network."""

    network_type: str = ""
    cluster_network: tuple[ClusterNetworkEntry, ...] = ()
    service_network: tuple[str, ...] = ()


class NetworkStatus(Wire, frozen=True):
    """`status` of Network: what is in force."""

    network_type: str = ""
    cluster_network: tuple[ClusterNetworkEntry, ...] = ()
    service_network: tuple[str, ...] = ()


class Network(Object, frozen=True):
    """The singleton `cluster`: pod and service networks."""

    spec: NetworkSpec = NetworkSpec()
    status: NetworkStatus = NetworkStatus()


class InfrastructureStatus(Wire, frozen=True):
    """`status` of Infrastructure."""

    infrastructure_name: str = ""
    api_server_url: str = msgspec.field(default="", name="apiServerURL")
    control_plane_topology: str = ""
    infrastructure_topology: str = ""


class Infrastructure(Object, frozen=True):
    """The singleton `cluster`: where the cluster runs and how redundant it is."""

    status: InfrastructureStatus = InfrastructureStatus()


class ConfigNodeSpec(Wire, frozen=True):
    """`spec` of the configuration of nodes; `cgroup_mode` is v1, v2 or empty for the release's own choice."""

    cgroup_mode: str = ""


class ConfigNode(Object, frozen=True):
    """The singleton `cluster`: what holds for every node."""

    spec: ConfigNodeSpec = ConfigNodeSpec()


class ConfigMapReference(Wire, frozen=True):
    """A ConfigMap of openshift-config by name."""

    name: str = ""


class ProxySpec(Wire, frozen=True):
    """`spec` of Proxy."""

    http_proxy: str = ""
    https_proxy: str = ""
    trusted_ca: ConfigMapReference = msgspec.field(default=ConfigMapReference(), name="trustedCA")


class Proxy(Object, frozen=True):
    """The singleton `cluster`: how the cluster reaches the world."""

    spec: ProxySpec = ProxySpec()
