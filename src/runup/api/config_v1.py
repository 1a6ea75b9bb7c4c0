"""`config.openshift.io/v1`: ClusterVersion and the cluster's own configuration, as far as runup reads them.

Types and limits follow openshift/api's types_cluster_version.go; `mode` is gated by ClusterUpdatePreflight,
`acceptRisks`, `riskNames` and `conditionalUpdateRisks` by ClusterUpdateAcceptRisks.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from kubekit.api.meta_v1 import Condition, LooseCondition, Object, Wire


class AcceptRisk(Wire, frozen=True):
    """A risk that the administrator accepts, by name, for every target."""

    name: str


class Update(Wire, frozen=True):
    """`spec.desiredUpdate`: the requested update. `mode` is empty (update) or `Preflight` (check only)."""

    architecture: str = ""
    version: str = ""
    image: str = ""
    force: bool = False
    accept_risks: tuple[AcceptRisk, ...] = ()
    mode: str = ""


class ComponentOverride(Wire, frozen=True):
    """A manifest that the operator is configured not to manage."""

    kind: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""
    unmanaged: bool = False


class CapabilitiesSpec(Wire, frozen=True):
    """The optional parts of a release that the cluster requests."""

    baseline_capability_set: str = ""
    additional_enabled_capabilities: tuple[str, ...] = ()


class NameReference(Wire, frozen=True):
    """A ConfigMap by name; its namespace depends on the field that refers to it."""

    name: str = ""


class SignatureStore(Wire, frozen=True):
    """A store in which signatures are looked up instead of the release's own stores.

    `ca` is a ConfigMap of `openshift-config` whose `ca.crt` has the only certificate authorities that are trusted for
    it.
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
    """A rule that decides whether a risk applies: `Always`, or the result of a query."""

    type: str
    promql: PromQL | None = None


class ConditionalUpdateRisk(Wire, frozen=True):
    """A risk of an update. `conditions` holds exactly one `Applies` if the API has that field."""

    name: str
    message: str
    url: str
    matching_rules: tuple[MatchingRule, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ConditionalUpdate(Wire, frozen=True):
    """A release whose update carries risks; its condition `Recommended` is their combined verdict for this cluster."""

    release: Release
    risks: tuple[ConditionalUpdateRisk, ...] = ()
    risk_names: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


class UpdateHistory(Wire, frozen=True):
    """An entry of the update history, newest first; `completion_time` is null for the newest while it is Partial."""

    state: Literal["Completed", "Partial"]
    started_time: datetime
    version: str = ""
    image: str = ""
    completion_time: datetime | None = None
    verified: bool = False
    accepted_risks: str = ""


class CapabilitiesStatus(Wire, frozen=True):
    """The enabled capabilities, and those that this release knows; both sorted."""

    enabled_capabilities: tuple[str, ...] = ()
    known_capabilities: tuple[str, ...] = ()


class ClusterVersionStatus(Wire, frozen=True):
    """`status` of ClusterVersion. `available_updates` is None if the API has null: not known yet."""

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
    """The singleton `version`: the release that the cluster runs, and the one that it should run."""

    spec: ClusterVersionSpec = ClusterVersionSpec()
    status: ClusterVersionStatus = ClusterVersionStatus()


class OperandVersion(Wire, frozen=True):
    """A version that a ClusterOperator reports; the name `operator` is that of the operator itself."""

    name: str = ""
    version: str = ""


class ObjectReference(Wire, frozen=True):
    """An object that a ClusterOperator manages or uses."""

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
    """A feature gate by name."""

    name: str = ""


class FeatureGateDetails(Wire, frozen=True):
    """The feature gates that a version of the cluster has enabled and disabled."""

    version: str = ""
    enabled: tuple[FeatureGateAttributes, ...] = ()
    disabled: tuple[FeatureGateAttributes, ...] = ()


class CustomFeatureGates(Wire, frozen=True):
    """The feature gates that an administrator chose for the set CustomNoUpgrade."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class FeatureGateSpec(Wire, frozen=True):
    """`spec` of FeatureGate; the empty feature set is the default one."""

    feature_set: str = ""
    custom_no_upgrade: CustomFeatureGates | None = None


class FeatureGateStatus(Wire, frozen=True):
    """`status` of FeatureGate, with one entry per version."""

    feature_gates: tuple[FeatureGateDetails, ...] = ()


class FeatureGate(Object, frozen=True):
    """The singleton `cluster`: feature set and feature gates."""

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
    """`status` of Network: the configuration in force."""

    network_type: str = ""
    cluster_network: tuple[ClusterNetworkEntry, ...] = ()
    service_network: tuple[str, ...] = ()
    # What is to be changed, while that is under way.
    migration: dict[str, Any] | None = None
    conditions: tuple[LooseCondition, ...] = ()


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
    """The singleton `cluster`: the platform of the cluster and its topology."""

    status: InfrastructureStatus = InfrastructureStatus()


class ConfigNodeSpec(Wire, frozen=True):
    """`spec` of the configuration of nodes; `cgroup_mode` is v1, v2 or empty for the release's own choice."""

    cgroup_mode: str = ""


class ConfigNode(Object, frozen=True):
    """The singleton `cluster`: the configuration of every node."""

    spec: ConfigNodeSpec = ConfigNodeSpec()


class RegistrySources(Wire, frozen=True):
    """Registries that nodes may pull from; where `allowed` names some, all others are refused."""

    allowed_registries: tuple[str, ...] = ()
    blocked_registries: tuple[str, ...] = ()


class ImageSpec(Wire, frozen=True):
    """`spec` of Image."""

    registry_sources: RegistrySources = RegistrySources()


class Image(Object, frozen=True):
    """The singleton `cluster`: how the cluster's nodes and builds treat images and registries."""

    spec: ImageSpec = ImageSpec()


class ImageMirrors(Wire, frozen=True):
    """The mirrors of one source; `mirror_source_policy` says whether the source itself may be asked."""

    source: str = ""
    mirrors: tuple[str, ...] = ()
    mirror_source_policy: str = ""


class ImageDigestMirrorSetSpec(Wire, frozen=True):
    """`spec` of an ImageDigestMirrorSet."""

    image_digest_mirrors: tuple[ImageMirrors, ...] = ()


class ImageDigestMirrorSet(Object, frozen=True):
    """Mirrors for images that are named by digest, as those of a release are."""

    spec: ImageDigestMirrorSetSpec = ImageDigestMirrorSetSpec()


class ConfigMapReference(Wire, frozen=True):
    """A ConfigMap of openshift-config by name."""

    name: str = ""


class ProxySpec(Wire, frozen=True):
    """`spec` of Proxy."""

    http_proxy: str = ""
    https_proxy: str = ""
    trusted_ca: ConfigMapReference = msgspec.field(default=ConfigMapReference(), name="trustedCA")


class Proxy(Object, frozen=True):
    """The singleton `cluster`: the proxy for connections from the cluster to the outside."""

    spec: ProxySpec = ProxySpec()
