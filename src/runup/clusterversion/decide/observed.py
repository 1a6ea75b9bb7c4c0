"""Everything that one decision about ClusterVersion looks at, frozen. The shell fills it from caches and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import ConfigMap, Event, Pod
from kubekit.api.workloads_v1 import Deployment
from runup.advice.decide.promql import NOTHING, Known
from runup.advice.decide.service import ServiceState
from runup.api.config_v1 import ClusterOperator, ClusterVersion, FeatureGate, Release
from runup.applying.decide.progress import Loading, Progress
from runup.clusterversion.decide.refusal import Refused
from runup.clusterversion.decide.stuck import Failure
from runup.preflight.decide.accounts import Right
from runup.preflight.decide.outcome import ReportSeen
from runup.preflight.decide.steps import Trust
from runup.preflight.decide.workloads import Workplace
from runup.release.decide.inclusion import DEFAULT_PROFILE


@dataclass(frozen=True, slots=True)
class Facts:
    """What the operator knows of itself.

    `release.architecture` is `Multi` or empty, as the API has it; `architecture` is the node's, by its Go name.
    """

    release: Release
    place: Workplace
    version_hash: str = ""
    architecture: str = "amd64"
    update_service: str = ""
    # Open for this operator whatever the FeatureGate says, which others go on reading as it is.
    gates: frozenset[str] = frozenset()
    # Which manifests of a release are this cluster's, and which capabilities are on whatever it asks for.
    profile: str = DEFAULT_PROFILE
    exclude: str | None = None
    always_enabled: tuple[str, ...] = ()
    # Of this release's documentation, as its metadata has it.
    documentation_base: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """What is known of a release image: its signature, and the version that its metadata names (`""`: not read yet).

    `error` says why the signature is not trusted, `unreadable` why the metadata could not be read. `running` and `at`
    are of the verifying, `reading` and `read_at` of the reading. `rights` are what the release's checks declare to
    read, None while nobody asked; `asking` says that they are being looked up, `rights_until` how long to go by them
    where the image could not be read.
    """

    trust: Trust = Trust.PENDING
    running: bool = False
    error: str = ""
    version: str = ""
    unreadable: str = ""
    at: datetime | None = None
    reading: bool = False
    read_at: datetime | None = None
    rights: tuple[Right, ...] | None = None
    rights_until: datetime | None = None
    asking: bool = False
    # What the release's image-references name; None while nobody asked, as long as for `images_until`.
    images: Mapping[str, str] | None = None
    images_until: datetime | None = None
    listing: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at the cluster. `operators` is None, and `operators_error` says why, where they could not be listed.

    `unread_operators` are there and are not as their kind should be.

    `releases` is keyed by pull spec; `history` is ConfigMap `preflight-history`; `report_maps` are the names of the
    ConfigMaps that hold reports; `warnings` are the namespace's Warning events; `unusable` says which settings of
    preflights (`facts.place` has the others) cannot be used; `refused` is what the API server did not take of a status,
    `unwritten` which other object it did not take when that was last tried, and its words.
    `loads` are the payloads of other releases, by pull spec; `progress` is how far the worker is that applies them,
    None for an operator that only records what is accepted. `failure` is why passes fail again and again.
    """

    cluster_version: ClusterVersion
    facts: Facts
    feature_gate: FeatureGate | None = None
    operators: tuple[ClusterOperator, ...] | None = ()
    operators_error: str = ""
    unread_operators: tuple[Undecodable, ...] = ()
    deployment: Deployment | None = None
    # By a clock that does not jump; None where only the wall's is known.
    deployment_age_s: float | None = None
    pods: tuple[Pod, ...] = ()
    # Of the preflight's container checks.
    check_pods: tuple[Pod, ...] = ()
    warnings: tuple[Event, ...] = ()
    history: ConfigMap | None = None
    report: ReportSeen | None = None
    report_maps: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    service: ServiceState = field(default_factory=ServiceState)
    releases: Mapping[str, ReleaseCheck] = field(default_factory=dict)
    refused: Refused = field(default_factory=Refused)
    unwritten: str = ""
    loads: Mapping[str, Loading] = field(default_factory=dict)
    progress: Progress | None = None
    # ConfigMap `accepted-risks`: why, by whom and until when risks are accepted.
    acceptances: ConfigMap | None = None
    prometheus: Known = NOTHING
    # ConfigMaps `admin-gates` and `admin-acks`, and why they could not be read.
    admin_gates: ConfigMap | None = None
    admin_acks: ConfigMap | None = None
    admin_unreadable: str = ""
    failure: Failure | None = None
