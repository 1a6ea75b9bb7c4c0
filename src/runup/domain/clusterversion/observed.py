"""Everything that one decision about ClusterVersion looks at, frozen. The shell fills it from caches and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from runup.api.config_v1 import ClusterOperator, ClusterVersion, FeatureGate, Release
from runup.api.core_v1 import ConfigMap, Pod
from runup.api.workloads_v1 import Deployment
from runup.domain.clusterversion.refusal import Refused
from runup.domain.preflight.outcome import ReportSeen
from runup.domain.preflight.steps import Trust
from runup.domain.preflight.workloads import Workplace
from runup.domain.updates.service import ServiceState


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


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """What is known of a release image: its signature, and the version that its metadata names (`""`: not read yet).

    `error` says why the signature is not trusted, `unreadable` why the metadata could not be read. `running` and `at`
    are of the verifying, `reading` and `read_at` of the reading.
    """

    trust: Trust = Trust.PENDING
    running: bool = False
    error: str = ""
    version: str = ""
    unreadable: str = ""
    at: datetime | None = None
    reading: bool = False
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at the cluster. `operators` is None, and `operators_error` says why, where they could not be listed.

    `releases` is keyed by pull spec; `history` is ConfigMap `preflight-history`; `report_maps` are the names of the
    ConfigMaps that hold reports; `refused` is what the API server did not take of a status.
    """

    cluster_version: ClusterVersion
    facts: Facts
    feature_gate: FeatureGate | None = None
    operators: tuple[ClusterOperator, ...] | None = ()
    operators_error: str = ""
    deployment: Deployment | None = None
    pods: tuple[Pod, ...] = ()
    history: ConfigMap | None = None
    report: ReportSeen | None = None
    report_maps: tuple[str, ...] = ()
    service: ServiceState = field(default_factory=ServiceState)
    releases: Mapping[str, ReleaseCheck] = field(default_factory=dict)
    refused: Refused = field(default_factory=Refused)
