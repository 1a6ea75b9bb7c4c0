"""The input of a pass: the observed cluster, and values derived from it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from runup.advice.decide import acceptance, current_advice
from runup.api.config_v1 import ClusterVersionStatus, Release
from runup.clusterversion.decide import gates, targets
from runup.clusterversion.decide import update_request as request
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.update_request import Request
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.stored_reports import History


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The input of a pass. `current` is the release that the cluster runs or is being brought to; `now` is UTC."""

    observed: Observed
    now: datetime
    gates: frozenset[str]
    current: Release
    request: Request
    accepted: frozenset[str]
    # Records of accepted risks by name, including those that no longer count.
    acceptances: Mapping[str, acceptance.Acceptance]
    advised: current_advice.CurrentAdvice
    history: History

    @property
    def status(self) -> ClusterVersionStatus:
        """The status as observed."""
        return self.observed.cluster_version.status

    @property
    def updating(self) -> bool:
        """Returns whether an accepted update is under way."""
        return targets.is_update_under_way(self.status, self.observed.facts.release)

    @property
    def generation(self) -> int:
        """The generation of the spec that is decided on."""
        return self.observed.cluster_version.metadata.generation

    @property
    def accepts_risks(self) -> bool:
        """Returns whether risks can be accepted by name, and are published with their names."""
        return gates.ACCEPT_RISKS in self.gates


def look(observed: Observed, now: datetime) -> View:
    """Derives from `observed` the values that every later decision needs."""
    spec, status = observed.cluster_version.spec, observed.cluster_version.status
    own_release = observed.facts.release
    # Gates belong to a version: those of the running operator's release apply.
    open_gates = gates.open_gates(observed.feature_gate, own_release.version) | observed.facts.gates
    update_request = request.read(spec.desired_update, open_gates, observed.feature_gate, own_release.version)
    history = histories.read(observed.history)
    if history.attempt is not None and history.attempt.refused and not isinstance(update_request, request.Refused):
        history = histories.with_attempt(history, None)
    names = request.accepted_names(spec.desired_update, open_gates)
    records = acceptance.read(observed.acceptances.data) if observed.acceptances else {}
    # Empty while this operator applies none yet; None if it never applies releases.
    applied = observed.progress.wanted.image if observed.progress and observed.progress.wanted else ""
    applied_image = applied if observed.progress is not None else None
    current = targets.goal(update_request, status, own_release, applied=applied_image)
    return View(
        observed=observed,
        now=now,
        gates=open_gates,
        current=current,
        request=update_request,
        accepted=acceptance.names_that_count(names, records, now),
        acceptances={name: record for name in names if (record := acceptance.record_of(name, records)) is not None},
        advised=current_advice.advise(
            spec,
            status,
            observed.service,
            current=current,
            configured_url=observed.facts.update_service,
            architecture=observed.facts.architecture,
            now=now,
            prometheus=observed.prometheus,
            spec_changed=status.observed_generation != observed.cluster_version.metadata.generation,
        ),
        history=history,
    )
