"""What one pass works with: the observed cluster, and what was read off it once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from runup.api.config_v1 import ClusterVersionStatus, Release, Update
from runup.domain.clusterversion import gates, request
from runup.domain.clusterversion.observed import Observed
from runup.domain.clusterversion.request import Request
from runup.domain.preflight import history as histories
from runup.domain.preflight.history import History
from runup.domain.updates.advise import Advised, advise


@dataclass(frozen=True, slots=True)
class View:
    """One pass. `current` is the release that the cluster runs or is being brought to; `now` is UTC."""

    observed: Observed
    now: datetime
    gates: frozenset[str]
    current: Release
    request: Request
    accepted: frozenset[str]
    advised: Advised
    history: History

    @property
    def status(self) -> ClusterVersionStatus:
        """The status as found."""
        return self.observed.cluster_version.status

    @property
    def accepts_risks(self) -> bool:
        """Whether risks can be accepted by name, and are published with their names."""
        return gates.ACCEPT_RISKS in self.gates


def look(observed: Observed, now: datetime) -> View:
    """Read off `observed` what every later decision needs."""
    spec, status = observed.cluster_version.spec, observed.cluster_version.status
    own = observed.facts.release
    open_gates = gates.open_gates(observed.feature_gate, own.version) | observed.facts.gates
    current = current_release(spec.desired_update, status, own)
    return View(
        observed=observed,
        now=now,
        gates=open_gates,
        current=current,
        request=request.read(spec.desired_update, open_gates, observed.feature_gate, own.version),
        accepted=request.accepted_names(spec.desired_update, open_gates),
        advised=advise(
            spec,
            status,
            observed.service,
            current=current,
            configured_url=observed.facts.update_service,
            architecture=observed.facts.architecture,
            now=now,
        ),
        history=histories.read(observed.history),
    )


def current_release(desired_update: Update | None, status: ClusterVersionStatus, own: Release) -> Release:
    """The release that advice starts from: the operator's own, or the one that an accepted update goes to.

    Clearing the request of an update that is under way leads back to the operator's own release.
    """
    found = status.desired
    if found.version == own.version:
        return _filled(found, own)
    newest = status.history[0] if status.history else None
    under_way = newest is not None and newest.state == "Partial" and newest.version == found.version
    asked = desired_update is not None and bool(desired_update.version or desired_update.image or desired_update.mode)
    return _filled(found, Release(architecture=own.architecture)) if under_way and asked else own


def _filled(release: Release, gaps: Release) -> Release:
    return Release(
        version=release.version or gaps.version,
        image=release.image or gaps.image,
        url=release.url or gaps.url,
        architecture=release.architecture or gaps.architecture,
        channels=release.channels or gaps.channels,
    )
