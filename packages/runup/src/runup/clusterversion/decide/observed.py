"""The immutable input of one decision about ClusterVersion. The controller fills it from caches and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import ConfigMap, Event, Pod
from kubekit.api.workloads_v1 import Deployment
from runup.advice.decide.promql import NOTHING, PrometheusState
from runup.advice.decide.service import ServiceState
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Release
from runup.api.preflight_reads_v1 import Right
from runup.applying.decide.progress import Loading, Progress
from runup.clusterversion.decide.sync_failure import Failure, RejectedFields
from runup.preflight.decide.deployment_steps import Trust
from runup.preflight.decide.outcome import ReportSeen
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.release.decide.inclusion import DEFAULT_PROFILE


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """The operator's knowledge about itself.

    `release.architecture` is `Multi` or empty, as in the API; `architecture` is the node's, in Go's naming.
    """

    release: Release
    place: PodSettings
    version_hash: str = ""
    architecture: str = "amd64"
    update_service: str = ""
    # Gates open for this operator alone, whatever the FeatureGate object says.
    gates: frozenset[str] = frozenset()
    # These select a release's manifests for this cluster, and the capabilities enabled whatever the spec asks for.
    profile: str = DEFAULT_PROFILE
    exclude: str | None = None
    always_enabled: tuple[str, ...] = ()
    # Base URL of this release's documentation, from its metadata.
    documentation_base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCheck:
    """The state of a release image's verification and reading. `version` is from its metadata, `""` if not read yet.

    `error` says why the signature is not trusted, `unreadable` why the metadata could not be read. `running` and `at`
    belong to the verification, `reading` and `read_at` to the reading. `rights` are the rights that the release's
    checks declare, None if never looked up; `asking` says that they are being looked up, `rights_until` how long they
    are valid if the image could not be read.
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
    # Images that the release's image-references name; None if never looked up. Valid until `images_until`.
    images: Mapping[str, str] | None = None
    images_until: datetime | None = None
    listing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A snapshot of the cluster. `operators` is None, and `operators_error` says why, if they could not be listed.

    `unread_operators` exist but could not be decoded.

    `releases` is keyed by pull spec; `history` is ConfigMap `preflight-history`; `report_maps` are the names of the
    ConfigMaps that hold reports; `warnings` are the namespace's Warning events; `unusable` names the settings of
    preflights that cannot be used (`facts.place` has the others); `refused` holds the parts of a status that the API
    server rejected; `unwritten` names another object that it rejected at the last attempt, with its message.
    `loads` are the payloads of other releases, by pull spec; `progress` is that of the worker that applies releases,
    None for an operator that only records what is accepted. `failure` is why passes fail repeatedly.
    """

    cluster_version: ClusterVersion
    facts: OperatorFacts
    feature_gate: FeatureGate | None = None
    # Why FeatureGate `cluster` could not be read; empty if it was read or does not exist.
    feature_gate_error: str = ""
    operators: tuple[ClusterOperator, ...] | None = ()
    operators_error: str = ""
    unread_operators: tuple[Undecodable, ...] = ()
    deployment: Deployment | None = None
    # Seconds by a monotonic clock; None if only the wall clock's time is known.
    deployment_age_s: float | None = None
    pods: tuple[Pod, ...] = ()
    # Pods of the preflight's container checks.
    check_pods: tuple[Pod, ...] = ()
    warnings: tuple[Event, ...] = ()
    history: ConfigMap | None = None
    report: ReportSeen | None = None
    report_maps: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    service: ServiceState = field(default_factory=ServiceState)
    releases: Mapping[str, ReleaseCheck] = field(default_factory=dict)
    refused: RejectedFields = field(default_factory=RejectedFields)
    unwritten: str = ""
    loads: Mapping[str, Loading] = field(default_factory=dict)
    progress: Progress | None = None
    # The time with which times in `progress` are compared: nobody can set that clock. None: it is `now`.
    steady_now: datetime | None = None
    # ConfigMap `accepted-risks`: why, by whom and until when risks are accepted.
    acceptances: ConfigMap | None = None
    prometheus: PrometheusState = NOTHING
    # ConfigMaps `admin-gates` and `admin-acks`, and why they could not be read.
    admin_gates: ConfigMap | None = None
    admin_acks: ConfigMap | None = None
    admin_unreadable: str = ""
    failure: Failure | None = None
