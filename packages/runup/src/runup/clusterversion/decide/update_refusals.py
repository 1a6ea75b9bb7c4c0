"""Evaluates during a preflight why the operator itself would refuse an update to the target, by the update's guards.

A preflight without a finding says that the update would be accepted, so each guard whose answer is known without
updating is asked by the very function that the update asks: preconditions, signature, and whether the release is
offered. Their refusals are risks of the target that acceptance does not lift (docs/decisions/0075).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import join_within
from kubekit.lang.version import parse
from runup.advice.decide import acceptance, preflight_reasons, update_paths, upgradeable
from runup.advice.decide.acceptance import Growth
from runup.advice.decide.candidates import JudgedRisk
from runup.advice.decide.promql import APPLIES
from runup.advice.decide.risks.risk_source import SourceRisk
from runup.api.config_v1 import ClusterVersion, Release
from runup.clusterversion.decide import preconditions
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.view import View
from runup.preflight.decide import published_risks
from runup.preflight.decide.deployment_steps import Trust
from runup.preflight.decide.published_risks import CheckedTarget
from runup.report.report import Report

# Bytes of a condition's message that grown risks may take.
_MAX_GROWN = 2048
_FORCE = "Accepting it does not lift that; only --force does."


def upgradeable_condition(observed: Observed, source_risks: Sequence[SourceRisk]) -> Condition | None:
    """Returns Upgradeable as of this pass.

    Deletions are unknown if this operator applies nothing, admin acks without ConfigMaps.
    """
    not_known: tuple[str, ...] = ("ResourceDeletion",) if observed.progress is None else ()
    not_known += ("AdminAck",) if observed.admin_gates is None and observed.admin_acks is None else ()
    stored = find(observed.cluster_version.status.conditions, upgradeable.UPGRADEABLE)
    return upgradeable.upgradeable(source_risks, stored, not_known=not_known)


def judged_version(view: View, source_risks: Sequence[SourceRisk]) -> ClusterVersion:
    """Returns the ClusterVersion that preconditions judge: as stored, with Upgradeable as of this pass.

    Risks of the cluster block an update by this condition alone, so it must not be a pass older than they are.
    """
    version = view.observed.cluster_version
    current = upgradeable_condition(view.observed, source_risks)
    other_conditions = tuple(c for c in version.status.conditions if c.type != upgradeable.UPGRADEABLE)
    conditions = (*other_conditions, current) if current is not None else other_conditions
    return replace(version, status=replace(version.status, conditions=conditions))


def refusals(view: View, target: CheckedTarget, source_risks: Sequence[SourceRisk]) -> tuple[JudgedRisk, ...]:
    """Returns a risk for each guard that would refuse an update to `target` now."""
    # The fourth precondition, whether the update is recommended, only warns, and follows from the risks themselves.
    objections = preconditions.objections(
        judged_version(view, source_risks), target.release, available=True, recommended=None
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


def path_not_offered(view: View, release: Release, target: CheckedTarget) -> JudgedRisk:
    """Returns the risk of a target that the update service does not offer, with the way to it if there is one."""
    # After a restart of the operator, what the status says counts until the service answers anew.
    answered = view.advised.settled or any(
        risk.name == preflight_reasons.NOT_OFFERED and status_of(risk.conditions, APPLIES) == "True"
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
    return f"It is reached by way of {', '.join(between[:-1])}{ending}."


def grown_acceptances(view: View, report: Report | None) -> tuple[tuple[str, Growth], ...]:
    """Returns the accepted risks of `report`, a stored one, that cover more than when they were accepted."""
    risks = report.risks if report is not None else ()
    accepted = ((risk, view.acceptances.get(risk.name)) for risk in risks if risk.name in view.accepted)
    growths = (
        (risk.name, acceptance.growth(record, {item.text: item.since for item in risk.resources}))
        for risk, record in accepted
    )
    return tuple((name, growth) for name, growth in growths if growth is not None)


def grown_text(view: View, report: Report | None) -> str:
    """Returns these risks in one clause; "" if there are none."""
    return join_within(
        [f"{name} was {growth.text}" for name, growth in grown_acceptances(view, report)], "; ", _MAX_GROWN
    )


def _waived_signature_risk(view: View, target: CheckedTarget) -> JudgedRisk | None:
    """Returns the risk of a target that runs although its signature was waived, unless it has verified since."""
    check = view.observed.releases.get(target.release.image)
    trust = check.trust if check is not None else Trust.PENDING
    is_own_image = is_same_image(target.release.image, view.observed.facts.release.image)
    if not target.waived or is_own_image or trust is Trust.VERIFIED:
        return None
    start = f"The signature of {target.release.image} was waived for its preflight"
    if check is None or trust is Trust.PENDING:
        text = f"{start}, and whether an update could verify it is not known yet."
        return published_risks.guard_refuses(
            preflight_reasons.SIGNATURE, text, verdict_text=text, target=target.release.version, status="Unknown"
        )
    message = f"{start}, and an update without --force is refused, since it cannot be verified: {check.error}"
    refusal_text = f"The update would be refused: {check.error}. {_FORCE}"
    return published_risks.guard_refuses(preflight_reasons.SIGNATURE, message, refusal_text, target.release.version)
