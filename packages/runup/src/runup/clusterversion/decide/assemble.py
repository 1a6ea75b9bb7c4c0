"""Assembles the candidates of a pass: the update service's offers and checked targets, with in-cluster risks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.conditions import status_of
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import leaves_minor, parse, same_minor
from runup.advice.decide import preflight_reasons
from runup.advice.decide.candidates import Candidate, JudgedRisk, add_risks, by_name, newest_first
from runup.advice.decide.risks import alert_risks, risks_in_cluster
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk
from runup.api.config_v1 import ClusterVersionStatus, Release
from runup.clusterversion.decide import size_limits, update_refusals
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.view import View
from runup.preflight.decide import published_risks
from runup.preflight.decide.outcome import Tally
from runup.preflight.decide.published_risks import CheckedTarget
from runup.report import documentation


def candidates(
    view: View, checked: Sequence[CheckedTarget], risks: Sequence[SourceRisk]
) -> tuple[tuple[Candidate, ...], int]:
    """Returns the candidates, newest first, that fit the API's limits, and the number of updates left out.

    If there are more risks than the API allows, the oldest checked targets are dropped first.
    """
    assembled = _assemble(view, checked, risks)
    # The first of `checked` is the requested target, if there is one: it always stays.
    while len(checked) > 1 and len(by_name(assembled)) > size_limits.MAX_RISKS:
        checked = checked[:-1]
        assembled = _assemble(view, checked, risks)
    fitting = _fit_into_api(view, assembled)
    return fitting, len(assembled) - len(fitting)


def find_cluster_risks(facts: Observed, now: datetime) -> tuple[SourceRisk, ...]:
    """Returns the risks that come from the cluster's own state and alerts, whatever the update service says."""
    state_risks = risks_in_cluster(
        Cluster(
            version=facts.cluster_version,
            operators=facts.operators,
            unreadable=facts.operators_error,
            unread=facts.unread_operators,
            deleting=facts.progress.deleting if facts.progress is not None else (),
            admin_gates=facts.admin_gates,
            admin_acks=facts.admin_acks,
            admin_unreadable=facts.admin_unreadable,
        )
    )
    return tuple(sorted((*state_risks, *alert_risks.risks(facts.prometheus.alerting, now)), key=lambda risk: risk.name))


def tally(applicable: Sequence[JudgedRisk], accepted: Collection[str]) -> Tally:
    """Counts the risks of an update that `applicable_risks` returns. These are the numbers that users are shown.

    The risk that stands for a preflight still in progress is not counted.
    """
    unaccepted = [risk for risk in applicable if not risk.accepted(accepted)]
    still_open = [risk.applies.status for risk in unaccepted if risk.applies.reason != preflight_reasons.REPAIRED]
    return Tally(
        still_open.count("True"),
        still_open.count("Unknown"),
        len(applicable) - len(unaccepted),
        len(unaccepted) - len(still_open),
    )


def applicable_risks(view: View, target: CheckedTarget) -> tuple[JudgedRisk, ...]:
    """Returns the risks of an update to `target`, from every source, that apply or are unknown."""
    cluster_risks = find_cluster_risks(view.observed, view.now)
    fitting = _fit_into_api(view, _assemble(view, [target], cluster_risks))
    risks = next((c.risks for c in fitting if is_same_image(c.release.image, target.release.image)), ())
    return tuple(risk for risk in risks if risk.applies.status != "False")


def _assemble(view: View, checked: Sequence[CheckedTarget], risks: Sequence[SourceRisk]) -> tuple[Candidate, ...]:
    """Returns all candidates, advised and checked, each with the risks that were found."""
    assembled = list(view.advised.candidates)
    for target in checked:
        index = next((i for i, c in enumerate(assembled) if is_same_image(c.release.image, target.release.image)), None)
        if index is None:
            # The service does not offer the target from here, which is itself a risk.
            known = (*view.advised.reachable, *view.advised.nodes)
            in_graph = next((r for r in known if is_same_image(r.image, target.release.image)), None)
            release = replace(in_graph, image=target.release.image) if in_graph else target.release
            unlisted = update_refusals.path_not_offered(view, release, target)
            assembled.append(add_risks(Candidate(release, offered=False), [unlisted]))
            index = len(assembled) - 1
        found = published_risks.judged_risks(target)
        if repaired := failure(view.status, view.current, target.release):
            found = published_risks.as_information_only(found, repaired)
        # Links lead to the target's own documentation, or to the administrator's copy of it.
        bases = (target.report.documentation_base,) if target.report else ()
        linked = published_risks.with_links(found, bases, view.observed.facts.place.documentation_base)
        assembled[index] = add_risks(assembled[index], linked)
        # Without a live preflight a target is shown as the update service offers it: its guards decide when asked.
        if not target.ended:
            assembled[index] = add_risks(assembled[index], update_refusals.refusals(view, target, risks))
    # Without the gate nobody could accept these risks by name.
    if view.accepts_risks:
        everywhere = [risk.judged() for risk in risks if risk.everywhere]
        of_minor = [*everywhere, *(risk.judged() for risk in risks if not risk.everywhere)]
        current_version = view.current.version
        assembled = [
            add_risks(c, of_minor if leaves_minor(current_version, c.release.version) else everywhere)
            for c in assembled
        ]
    return tuple(_link_documentation(view, candidate) for candidate in newest_first(assembled))


def _fit_into_api(view: View, unfit_candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Returns the candidates that fit the API. Risks added for what does not fit get documentation links, too."""
    return tuple(_link_documentation(view, candidate) for candidate in size_limits.candidates(unfit_candidates))


def _link_documentation(view: View, candidate: Candidate) -> Candidate:
    """Replaces the built-in documentation base, a placeholder, by the administrator's or this release's own."""
    facts = view.observed.facts
    base = facts.place.documentation_base or facts.documentation_base
    linked = published_risks.with_links(candidate.risks, (documentation.BUILT_IN,), base)
    return candidate if linked == candidate.risks else replace(candidate, risks=linked)


def failure(status: ClusterVersionStatus, current: Release, target: Release) -> str:
    """Returns in words the failure that an update from `current` to `target` may repair, empty if there is none."""
    current_version, target_version = parse(current.version), parse(target.version)
    if current_version is None or target_version is None or not same_minor(current_version, target_version):
        return ""
    newest = status.history[0] if status.history else None
    # The first entry of all is the installation, which no update can repair.
    if newest is not None and newest.state == "Partial" and len(status.history) > 1:
        return f"the unfinished update to {newest.version or newest.image} has it"
    if status_of(status.conditions, "Failing") == "True":
        return f"the failing {current.version} has it"
    return ""
