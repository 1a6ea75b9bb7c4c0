"""Assembles the candidates of a pass: the update service's offers and checked targets, with in-cluster risks.

A preflight without a finding says that the update would be accepted, so each guard whose answer is known without
updating is asked by the very function that the update asks: preconditions, signature, and whether the release is
offered. Their refusals are risks of the target that acceptance does not lift (docs/decisions/0075).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import join_within
from kubekit.lang.version import leaves_minor, parse, same_minor
from runup.advice.decide import acceptance, preflight_reasons, promql, update_paths, upgradeable
from runup.advice.decide.candidates import Candidate, EvaluatedRisk, add_risks, by_name, newest_first
from runup.advice.decide.risks import alert_risks, risks_in_cluster
from runup.advice.decide.risks.cluster_state import Cluster, SourceRisk
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus, Release
from runup.clusterversion.decide import preconditions, size_limits
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.view import View
from runup.preflight.decide import deployment_steps, outcome, published_risks
from runup.report import documentation
from runup.report.report import Report


def candidates(
    view: View, checked: Sequence[published_risks.CheckedTarget], risks: Sequence[SourceRisk]
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
    return (*state_risks, *alert_risks.risks(facts.prometheus.alerting, now))


def tally(applicable: Sequence[EvaluatedRisk], accepted: Collection[str]) -> outcome.Tally:
    """Counts the risks of an update that `applicable_risks` returns. These are the numbers that users are shown.

    The risk that represents a preflight still in progress is not counted.
    """
    unaccepted = [risk for risk in applicable if not risk.accepted(accepted)]
    still_open = [risk.applies.status for risk in unaccepted if risk.applies.reason != preflight_reasons.REPAIRED]
    return outcome.Tally(
        still_open.count("True"),
        still_open.count("Unknown"),
        len(applicable) - len(unaccepted),
        len(unaccepted) - len(still_open),
    )


def applicable_risks(view: View, target: published_risks.CheckedTarget) -> tuple[EvaluatedRisk, ...]:
    """Returns the risks of an update to `target`, from every source, that apply or are unknown."""
    cluster_risks = find_cluster_risks(view.observed, view.now)
    fitting = _fit_into_api(view, _assemble(view, [target], cluster_risks))
    risks = next((c.risks for c in fitting if is_same_image(c.release.image, target.release.image)), ())
    return tuple(risk for risk in risks if risk.applies.status != "False")


def _assemble(
    view: View, checked: Sequence[published_risks.CheckedTarget], risks: Sequence[SourceRisk]
) -> tuple[Candidate, ...]:
    """Returns all candidates, advised and checked, each with the risks that were found."""
    assembled = list(view.advised.candidates)
    for target in checked:
        index = next((i for i, c in enumerate(assembled) if is_same_image(c.release.image, target.release.image)), None)
        if index is None:
            # The service does not offer the target from here, which is itself a risk.
            known = (*view.advised.reachable, *view.advised.nodes)
            in_graph = next((r for r in known if is_same_image(r.image, target.release.image)), None)
            release = replace(in_graph, image=target.release.image) if in_graph else target.release
            unlisted = path_not_offered(view, release, target)
            assembled.append(add_risks(Candidate(release, offered=False), [unlisted]))
            index = len(assembled) - 1
        found = published_risks.evaluated_risks(target)
        if repaired := failure(view.status, view.current, target.release):
            found = published_risks.as_information_only(found, repaired)
        # Links lead to the target's own documentation, or to the administrator's copy of it.
        bases = (target.report.documentation_base,) if target.report else ()
        linked = published_risks.with_links(found, bases, view.observed.facts.place.documentation_base)
        assembled[index] = add_risks(assembled[index], linked)
        # Without a live preflight a target is shown as the update service offers it: its guards decide when asked.
        if not target.ended:
            assembled[index] = add_risks(assembled[index], refusals(view, target, risks))
    # Without the gate nobody could accept these risks by name.
    if view.accepts_risks:
        everywhere = [risk.evaluated() for risk in risks if risk.everywhere]
        of_minor = [*everywhere, *(risk.evaluated() for risk in risks if not risk.everywhere)]
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
    """Returns in words the failure that an update from `current` to `target` may repair, empty if it does not exist."""
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


# Bytes of a condition's message that grown risks may take.
_MAX_GROWN = 2048
_FORCE = "Accepting it does not lift that; only --force does."


def upgradeable_condition(observed: Observed, source_risks: Sequence[SourceRisk]) -> Condition | None:
    """Returns Upgradeable as of this pass. An operator that applies nothing does not know about deletions."""
    not_known = ("ResourceDeletion",) if observed.progress is None else ()
    stored = find(observed.cluster_version.status.conditions, upgradeable.UPGRADEABLE)
    return upgradeable.upgradeable(source_risks, stored, not_known=not_known)


def evaluated_version(view: View, source_risks: Sequence[SourceRisk]) -> ClusterVersion:
    """Returns the ClusterVersion that preconditions evaluate: as stored, with Upgradeable as of this pass.

    Risks of the cluster block an update by this condition alone, so it must not be a pass older than they are.
    """
    version = view.observed.cluster_version
    current = upgradeable_condition(view.observed, source_risks)
    other_conditions = tuple(c for c in version.status.conditions if c.type != upgradeable.UPGRADEABLE)
    conditions = (*other_conditions, current) if current is not None else other_conditions
    return replace(version, status=replace(version.status, conditions=conditions))


def refusals(
    view: View, target: published_risks.CheckedTarget, source_risks: Sequence[SourceRisk]
) -> tuple[EvaluatedRisk, ...]:
    """Returns a risk for each guard that would refuse an update to `target` now."""
    # The fourth precondition, whether the update is recommended, only warns, and follows from the risks themselves.
    objections = preconditions.objections(
        evaluated_version(view, source_risks), target.release, available=True, recommended=None
    )
    risks = []
    for objection in objections:
        if not objection.blocking:
            continue
        message = objection.message
        if objection.name == preflight_reasons.GIANT_HOP:
            message = f"{message} {way_to_release_text(view, target.release)}"
        elif objection.name == preflight_reasons.UPGRADEABLE:
            message = f"Updates that leave the minor version are refused while Upgradeable is False: {message}"
        text = f"The update would be refused: {objection.text} {_FORCE}"
        risks.append(published_risks.guard_refuses(objection.name, message, text, target.release.version))
    signature = _waived_signature_risk(view, target)
    return (*risks, *([signature] if signature is not None else []))


def path_not_offered(view: View, release: Release, target: published_risks.CheckedTarget) -> EvaluatedRisk:
    """Returns the risk of a target that the update service does not offer, with the way to it if there is one."""
    # After a restart of the operator, what the status says counts until the service answers again.
    answered = view.advised.settled or any(
        risk.name == preflight_reasons.NOT_OFFERED and status_of(risk.conditions, promql.APPLIES) == "True"
        for update in view.status.conditional_updates
        if is_same_image(update.release.image, release.image)
        for risk in update.risks
    )
    return published_risks.path_not_offered(
        release,
        view.current.version,
        way=way_to_release_text(view, release),
        holds_up=not target.ended,
        answered=answered,
    )


def way_to_release_text(view: View, release: Release) -> str:
    """Returns a sentence that names the intermediate releases through which `release` can be reached."""
    graph = view.advised.graph
    if graph is None:
        return "Whether there is a way by other releases is not known: the update service's graph could not be read."
    way = update_paths.shortest_way(
        graph.step_map, view.current.version, release.version, allows=preconditions.allows_step
    )
    if not way:
        return "The update service knows no way to it in steps that are supported."
    if len(way) == 1:
        return ""
    between = sorted((step.to for step in way[:-1]), key=lambda version: (parse(version) is None, parse(version)))
    ending = f" and {between[-1]}" if len(between) > 1 else between[-1]
    return f"{preflight_reasons.BY_WAY} {', '.join(between[:-1])}{ending}."


def grown_acceptances(view: View, report: Report | None) -> tuple[tuple[str, acceptance.Growth], ...]:
    """Returns the accepted risks of `report`, a stored one, that cover more than when they were accepted."""
    risks = report.risks if report is not None else ()
    accepted = ((risk, view.acceptances.get(risk.name)) for risk in risks if risk.name in view.accepted)
    growths = (
        (risk.name, acceptance.growth(record, {item.text: item.since for item in risk.resources}))
        for risk, record in accepted
    )
    return tuple((name, growth) for name, growth in growths if growth is not None)


def grown_text(view: View, report: Report | None) -> str:
    """Returns these risks in one clause; "" if they do not exist."""
    return join_within(
        [f"{name} was {growth.text}" for name, growth in grown_acceptances(view, report)], "; ", _MAX_GROWN
    )


def _waived_signature_risk(view: View, target: published_risks.CheckedTarget) -> EvaluatedRisk | None:
    """Returns the risk of a target that runs although its signature was waived, unless it has verified since."""
    check = view.observed.releases.get(target.release.image)
    trust = check.trust if check is not None else deployment_steps.Trust.PENDING
    is_own_image = is_same_image(target.release.image, view.observed.facts.release.image)
    if not target.waived or is_own_image or trust is deployment_steps.Trust.VERIFIED:
        return None
    start = f"The signature of {target.release.image} was waived for its preflight"
    if check is None or trust is deployment_steps.Trust.PENDING:
        text = f"{start}, and whether an update could verify it is not known yet."
        return published_risks.guard_refuses(
            preflight_reasons.SIGNATURE, text, verdict_text=text, target=target.release.version, status="Unknown"
        )
    message = f"{start}, and an update without --force is refused, since it cannot be verified: {check.error}"
    refusal_text = f"The update would be refused: {check.error}. {_FORCE}"
    return published_risks.guard_refuses(preflight_reasons.SIGNATURE, message, refusal_text, target.release.version)
