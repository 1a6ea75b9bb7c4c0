"""All candidates of this pass: the service's, the checked targets', with the cluster's own risks on top."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from runup.advice.decide.candidates import Candidate, JudgedRisk, add_risks, by_name, leaves_minor, ordered
from runup.advice.decide.risks import alerts, in_cluster
from runup.advice.decide.risks.source import Cluster, SourceRisk
from runup.api.config_v1 import Release
from runup.clusterversion.decide import fit
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.view import View
from runup.preflight.decide import results
from runup.preflight.decide.attempt import digest_of
from runup.preflight.decide.outcome import Tally
from runup.preflight.decide.results import Checked
from runup.release.decide import documentation


def candidates(
    view: View, checked: Sequence[Checked], risks: Sequence[SourceRisk]
) -> tuple[tuple[Candidate, ...], int]:
    """Newest first, as the API takes them, and how many updates are left out.

    Where there are too many risks for the API, the oldest checked target goes first.
    """
    found = _assemble(view, checked, risks)
    while len(checked) > 1 and len(by_name(found)) > fit.MAX_RISKS:
        checked = checked[:-1]
        found = _assemble(view, checked, risks)
    fitting = _fitting(view, found)
    return fitting, len(found) - len(fitting)


def in_the_cluster(facts: Observed, now: datetime) -> tuple[SourceRisk, ...]:
    """What speaks against updates whatever the update service says: the cluster's own state, and its alerts."""
    found = in_cluster(
        Cluster(
            facts.cluster_version,
            facts.operators,
            facts.operators_error,
            facts.unread_operators,
            facts.progress.deleting if facts.progress is not None else (),
            facts.admin_gates,
            facts.admin_acks,
            facts.admin_unreadable,
        )
    )
    return tuple(sorted((*found, *alerts.risks(facts.prometheus.alerting, now)), key=lambda risk: risk.name))


def tally(view: View, target: Checked) -> Tally:
    """How many risks an update to `target` has, whoever says so: the number that everybody is shown.

    What stands for a preflight that is still going on is none of them.
    """
    found = in_the_cluster(view.observed, view.now)
    digest = digest_of(target.release.image)
    fitting = _fitting(view, _assemble(view, [target], found))
    risks = next((c.risks for c in fitting if digest_of(c.release.image) == digest), ())
    there = [risk for risk in risks if risk.applies.status != "False"]
    still_open = [risk.applies.status for risk in there if risk.name not in view.accepted]
    return Tally(still_open.count("True"), still_open.count("Unknown"), len(there) - len(still_open))


def _assemble(view: View, checked: Sequence[Checked], risks: Sequence[SourceRisk]) -> tuple[Candidate, ...]:
    found = list(view.advised.candidates)
    for target in checked:
        index = _index(found, target.release)
        if index is None:
            found.append(_unlisted(view, target))
            index = len(found) - 1
        found[index] = add_risks(found[index], _found_by(view, target))
    if view.accepts_risks:
        everywhere = [risk.judged() for risk in risks if risk.everywhere]
        of_minor = [*everywhere, *(risk.judged() for risk in risks if not risk.everywhere)]
        found = [add_risks(c, of_minor if leaves_minor(c, view.current.version) else everywhere) for c in found]
    return tuple(_linked(view, candidate) for candidate in ordered(found))


def _fitting(view: View, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """What the API can carry; whatever was put in for what it cannot has a page, too."""
    return tuple(_linked(view, candidate) for candidate in fit.candidates(found))


def _found_by(view: View, target: Checked) -> tuple[JudgedRisk, ...]:
    """A target's links lead to its own documentation, or to the administrator's copy of it."""
    bases = (target.report.documentation_base,) if target.report else ()
    return results.with_links(results.judged_risks(target), bases, view.observed.facts.place.documentation_base)


def _linked(view: View, candidate: Candidate) -> Candidate:
    """The built-in base is nobody's address: the administrator's or this release's own takes its place."""
    facts = view.observed.facts
    base = facts.place.documentation_base or facts.documentation_base
    linked = results.with_links(candidate.risks, (documentation.BUILT_IN,), base)
    return candidate if linked == candidate.risks else replace(candidate, risks=linked)


def _index(found: Sequence[Candidate], release: Release) -> int | None:
    digest = digest_of(release.image)
    return next((i for i, c in enumerate(found) if digest_of(c.release.image) == digest), None)


def _unlisted(view: View, target: Checked) -> Candidate:
    """A target that the service does not offer from here: whatever its preflight finds, that is a risk too."""
    digest = digest_of(target.release.image)
    known = next((r for r in (*view.advised.reachable, *view.advised.nodes) if digest_of(r.image) == digest), None)
    release = replace(known, image=target.release.image) if known else target.release
    risk = results.path_not_offered(release, target.source_version, holds_up=not target.ended)
    return add_risks(Candidate(release, offered=False), [risk])
