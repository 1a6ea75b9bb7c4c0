"""`config.openshift.io/v1`: ClusterVersion, ClusterOperator and Infrastructure, as far as runup reads them.

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


class Update(Wire, frozen=True, kw_only=True):
    """`spec.desiredUpdate`: the requested update. `mode` is empty (update) or `Preflight` (check only)."""

    architecture: str = ""
    version: str = ""
    image: str = ""
    force: bool = False
    accept_risks: tuple[AcceptRisk, ...] = ()
    mode: str = ""

    @property
    def accepted_names(self) -> tuple[str, ...]:
        """The names in `acceptRisks`, in their order."""
        return tuple(risk.name for risk in self.accept_risks)


class ComponentOverride(Wire, frozen=True, kw_only=True):
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


class ClusterVersionSpec(Wire, frozen=True, kw_only=True):
    """`spec` of ClusterVersion. `signature_stores` is None when unset, which differs from an empty list."""

    cluster_id: str = msgspec.field(default="", name="clusterID")
    channel: str = ""
    upstream: str = ""
    desired_update: Update | None = None
    overrides: tuple[ComponentOverride, ...] = ()
    capabilities: CapabilitiesSpec | None = None
    signature_stores: tuple[SignatureStore, ...] | None = None


class Release(Wire, frozen=True, kw_only=True):
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


class ConditionalUpdateRisk(Wire, frozen=True, kw_only=True):
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


class UpdateHistory(Wire, frozen=True, kw_only=True):
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


class ClusterVersionStatus(Wire, frozen=True, kw_only=True):
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

    def listed_updates(self) -> tuple[Release, ...]:
        """Returns the releases that are listed as updates, the conditional ones last."""
        return (*(self.available_updates or ()), *(update.release for update in self.conditional_updates))


class ClusterVersion(Object, frozen=True, kw_only=True):
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


class InfrastructureStatus(Wire, frozen=True):
    """`status` of Infrastructure."""

    infrastructure_name: str = ""
    api_server_url: str = msgspec.field(default="", name="apiServerURL")
    control_plane_topology: str = ""
    infrastructure_topology: str = ""


class Infrastructure(Object, frozen=True):
    """The singleton `cluster`: the platform of the cluster and its topology."""

    status: InfrastructureStatus = InfrastructureStatus()
