"""Decides which acceptances of risks count for a run: the cluster's, and those of the run itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.lang import version
from kubekit.lang.oc_pull_spec import is_same_image
from runup.advice.decide.acceptance import Accepted
from runup.api.update_policy_v1alpha1 import Candidate, OfferedRelease, RunAcceptance, UpdateRun
from runup.preflight.decide.findings import Findings
from runup.rollout.decide.gates.cluster import is_blocked


def known_since(
    run: UpdateRun, release: Candidate, runs: Sequence[UpdateRun], offered: Sequence[OfferedRelease]
) -> datetime | None:
    """Returns since when acceptances count for a run to `release`; None if all do.

    That is when the release, or one of its minor version, was first offered here or first wanted by a run.
    """
    inherit = run.spec.gates.preflight.accepted.inherit
    if inherit == "Name":
        return None
    known = [(each.version, each.image, each.first_seen) for each in offered]
    for other in (run, *runs):
        if other.metadata.creation_timestamp is not None:
            target = other.spec.target
            known.append((target.version, target.image, other.metadata.creation_timestamp))
            known += [(hop.version, hop.image, other.metadata.creation_timestamp) for hop in other.status.hops]

    def is_of_release(name: str, image: str) -> bool:
        if inherit == "Target":
            return is_same_image(image, release.image)
        this, that = version.parse(name), version.parse(release.version)
        return this is not None and that is not None and (this.major, this.minor) == (that.major, that.minor)

    return min((at for name, image, at in known if is_of_release(name, image)), default=None)


def inherited(accepted: Accepted, since: datetime | None) -> Accepted:
    """Returns the acceptances that were made at or after `since`. One without a time may be older."""
    if since is None:
        return accepted
    return {name: each for name, each in accepted.items() if each.at is not None and each.at >= since}


def own_acceptances(run: UpdateRun, release: Candidate, now: datetime) -> tuple[RunAcceptance, ...]:
    """Returns the acceptances of a run that count now for this release."""
    return tuple(
        each
        for each in run.spec.accept_risks
        if (each.until is None or now < each.until)
        and (not each.versions or is_blocked(release.version, each.versions))
    )


def accept(findings: Findings, acceptances: Iterable[RunAcceptance]) -> Findings:
    """Returns the findings with these risks accepted, except those that acceptance does not lift."""
    reasons = {each.name: each.reason for each in acceptances}
    risks = tuple(risk.accept(reasons[risk.name]) if risk.name in reasons else risk for risk in findings.risks)
    return replace(findings, risks=risks)
