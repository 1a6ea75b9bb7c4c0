"""Converts a preflight's report into the risks of one update, as ClusterVersion carries them.

This module alone writes the prefix `Preflight=<version>: `. Nothing parses it: the candidate that carries a risk
decides for which target the risk counts.

An update within the minor version may repair a cluster that an unfinished or failing update has left broken, and the
operator accepts one without a preflight. So risks that describe such a failure only inform (docs/decisions/0076). Risks
about the target, users' workloads or single nodes are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.advice.decide import preflight_reasons as reasons
from runup.advice.decide import promql
from runup.advice.decide.candidates import ALWAYS, EvaluatedRisk
from runup.advice.decide.promql import APPLIES
from runup.api.config_v1 import ConditionalUpdateRisk, Release
from runup.preflight.decide.preflight_conditions import waits_text
from runup.report import documentation
from runup.report.report import OMITTED, Report, ReportedRisk

# The risks that replace those for which an update has no room: a preflight's, or only the update service's.
OTHERS_OMITTED = "UpdateRisksOmitted"
OMISSIONS = (OMITTED, OTHERS_OMITTED)


class CheckedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target that a preflight has checked.

    `running`, `stale` and `failed` say why the findings may be incomplete. `ended`: the preflight is over, so that
    its findings only inform. `waits`: an update waits for a running or stale preflight, because its time limit is
    not over, at most `until`. `waived`: the signature of its image was waived when it was started. `passed`: the
    cluster has come to this release, or past it.
    """

    release: Release
    source_version: str
    report: Report | None = None
    running: str = ""
    failed: str = ""
    stale: str = ""
    ended: bool = False
    waits: bool = True
    until: datetime | None = None
    waived: bool = False
    passed: bool = False


def evaluated_risks(checked: CheckedTarget) -> tuple[EvaluatedRisk, ...]:
    """Returns the risks of updating to the checked release, by name. The limit on their number is applied elsewhere."""
    report, version = checked.report, checked.release.version
    risks = []
    for risk in report.risks if report else ():
        url = risk.url or documentation.page(risk.name, report.documentation_base if report else "")
        evaluated = EvaluatedRisk(
            risk=_published_entry(risk.name, risk.message, version, url),
            applies=_applies_of_reported_risk(risk, checked),
            from_preflight=True,
            # Findings of an ended preflight only inform, and so do stale ones after the time limit
            # (docs/decisions/0072 D24).
            holds_up=not checked.ended and (checked.waits or not checked.stale),
            stands_for=report.risks_omitted if report and risk.name == OMITTED else 1,
        )
        risks.append(evaluated)
    if (state := _unknown_state(checked)) is not None:
        name, reason, text, holds_up = state
        entry = _published_entry(name, text, version, "")
        verdict = _applies_condition("Unknown", reason, f"{text}{waits_text(checked.until) if holds_up else ''}")
        risks.append(
            EvaluatedRisk(risk=entry, applies=verdict, from_preflight=True, holds_up=holds_up, until=checked.until)
        )
    return tuple(sorted(risks, key=lambda risk: risk.name))


def _unknown_state(checked: CheckedTarget) -> tuple[str, str, str, bool] | None:
    """Returns the risk for an unknown result: name, reason, text, whether it blocks."""
    if checked.stale:
        return reasons.INCOMPLETE, reasons.STALE, checked.stale, checked.waits
    if checked.failed:
        # openshift/enhancements#1930: failures do not prevent updates (docs/decisions/0072 D21).
        return reasons.INCOMPLETE, reasons.FAILED, checked.failed, False
    if checked.running:
        return reasons.IN_PROGRESS, reasons.RUNNING, checked.running, checked.waits
    report = checked.report
    unknown = [check.name for check in report.checks if check.result == "Unknown"] if report else []
    # If a risk is Unknown already, it blocks the update by itself.
    if not report or not unknown or any(risk.applies != "True" for risk in report.risks):
        return None
    text = f"Unknown: {', '.join(unknown)}."
    return reasons.INCOMPLETE, reasons.OUTDATED if checked.ended else reasons.PARTIAL, text, not checked.ended


def as_information_only(risks: Iterable[EvaluatedRisk], failure: str) -> tuple[EvaluatedRisk, ...]:
    """Returns `risks`, in which those that describe `failure` only inform: the update may repair that failure.

    Source: docs/decisions/0076.
    """
    note = f"It describes the cluster as {failure}, which this update may repair: it only informs."
    informing = []
    for risk in risks:
        if risk.from_preflight and risk.holds_up and describes_failure(risk.name):
            verdict = _applies_condition(risk.applies.status, reasons.REPAIRED, f"{risk.applies.message} {note}")
            risk = replace(risk, applies=verdict, holds_up=False)
        informing.append(risk)
    return tuple(informing)


def as_reported(risk: EvaluatedRisk, target: str) -> ReportedRisk:
    """Returns a risk of an update to `target` as a stored report has it."""
    return ReportedRisk(
        name=risk.name,
        message=line_for(risk.risk.message, target),
        url=risk.risk.url,
        applies="True" if risk.applies.status == "True" else "Unknown",
        reason=risk.applies.reason,
        severity="warning" if risk.acceptable else "critical",
    )


def path_not_offered(
    release: Release, source_version: str, *, way: str = "", holds_up: bool = True, answered: bool = True
) -> EvaluatedRisk:
    """Returns the risk of an update that the update service does not offer; `way` says how the release is reached.

    Neither the preflight's findings nor an acceptance make it one that is offered. Until the service has `answered`,
    whether it offers the update is not known.
    """
    step = f"an update from {source_version} to {release.version or release.image}"
    if answered:
        text = f"The update service does not offer {step}."
        verdict = _applies_condition("True", reasons.VALIDATION, f"{text} Accepting it does not offer it.")
        text = f"{text} {way}"
    else:
        text = f"Whether the update service offers {step} is not known: it has not answered yet."
        verdict = _applies_condition("Unknown", reasons.PARTIAL, text)
    risk = _published_entry(reasons.NOT_OFFERED, text, release.version, "")
    return EvaluatedRisk(risk=risk, applies=verdict, from_preflight=True, holds_up=holds_up, acceptable=False)


def guard_refuses(
    name: str, message: str, verdict_text: str, target: str, status: ConditionStatus = "True"
) -> EvaluatedRisk:
    """Returns the risk that represents a guard that refuses an update to `target`; `verdict_text` is its message.

    The guard refuses the update by itself, whatever is accepted.
    """
    verdict = _applies_condition(status, reasons.PRECONDITION, verdict_text)
    return EvaluatedRisk(
        risk=_published_entry(name, message, target, ""), applies=verdict, from_preflight=True, acceptable=False
    )


def with_links(risks: Iterable[EvaluatedRisk], bases: Iterable[str], to: str) -> tuple[EvaluatedRisk, ...]:
    """Returns `risks` with links below one of `bases` moved to the same page below `to`; unchanged if `to` is empty."""
    among, moved = tuple(bases), []
    for risk in risks:
        url = documentation.move_below(risk.risk.url, among, to) if to else risk.risk.url
        moved.append(risk if url == risk.risk.url else replace(risk, risk=replace(risk.risk, url=url)))
    return tuple(moved)


def omitted_risks(target: str, text: str, status: ConditionStatus, *, from_preflight: bool) -> EvaluatedRisk:
    """Returns the risk that represents all risks for which an update has no room; `text` says how many they are."""
    verdict = _applies_condition(status, reasons.VALIDATION if status == "True" else reasons.PARTIAL, text)
    if from_preflight:
        return EvaluatedRisk(risk=_published_entry(OMITTED, text, target, ""), applies=verdict, from_preflight=True)
    risk = ConditionalUpdateRisk(
        name=OTHERS_OMITTED, message=text, url=documentation.page(OTHERS_OMITTED), matching_rules=ALWAYS
    )
    return EvaluatedRisk(
        risk=risk, applies=promql.match(text) if status == "True" else promql.unevaluated_condition(risk, text)
    )


def _applies_of_reported_risk(risk: ReportedRisk, checked: CheckedTarget) -> Condition:
    """Returns the condition Applies of a reported risk: Unknown once its preflight has ended or is stale."""
    target, source = checked.release.version, checked.source_version
    at = checked.report.observed_time if checked.report else None
    when = f"at {at:%Y-%m-%dT%H:%M:%SZ}" if at else "at an unknown time"
    if checked.ended:
        text = f"Found by the preflight for {target} from {source} {when}, which has ended"
        if checked.passed:
            return _applies_condition("Unknown", reasons.OUTDATED, f"{text}. It is kept for reference.")
        again = f"Check again: runup upgrade --mode=preflight --to={target}"
        return _applies_condition("Unknown", reasons.OUTDATED, f"{text}: whether it applies now is not known. {again}")
    if checked.stale:
        return _applies_condition(
            "Unknown", reasons.STALE, f"Found {when}; since then: {checked.stale}{waits_text(checked.until)}"
        )
    if risk.applies == "True":
        text = f"Risk identified during preflight check for {target} from {source}."
        return _applies_condition("True", reasons.VALIDATION, text)
    text = f"The preflight check for {target} from {source} could not determine whether {risk.name} applies"
    return _applies_condition("Unknown", reasons.PARTIAL, f"{text}: {risk.message}")


def _applies_condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=APPLIES, status=status, reason=reason, message=message)


def _published_entry(name: str, message: str, target: str, url: str) -> ConditionalUpdateRisk:
    """Returns the entry for ClusterVersion, with `url` if the API would accept it, else our page about the risk."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.netloc) and " " not in url
    except ValueError:
        usable = False
    # One line: an entry that several targets share has one line for each.
    line = f"Preflight={target}: {' '.join(message.split())}"
    # The API server would reject the whole status because of one invalid url.
    page = url if usable else documentation.page(name)
    return ConditionalUpdateRisk(name=name, message=line, url=page, matching_rules=ALWAYS)


def line_for(message: str, target: str) -> str:
    """Returns the part of `message` that concerns `target`: a risk that several targets share has one line for each."""
    prefix = f"Preflight={target}: "
    # `published_risks` writes this prefix, so that one entry can serve several targets.
    lines = [line.removeprefix(prefix) for line in message.splitlines() if line.startswith(prefix)]
    return "\n".join(lines) or message


FAMILIES = frozenset(
    {
        "APIServiceUnavailable",
        "CRDNotInForce",
        "ClusterOperatorDegraded",
        "ClusterOperatorHealth",
        "ClusterOperatorNotAvailable",
        "ClusterVersionFailing",
        "ClusterVersionHealth",
        "ClusterVersionPartialUpdate",
        "ClusterVersionUpdating",
        "MachineConfigPoolDegraded",
        "MachineConfigPoolHealth",
        "MachineConfigPoolUpdating",
        "NodeReleasesMixed",
        "SystemPodsFailing",
    }
)
# The risk of a check without a result has the check's name with this ending (docs/reference/checks/README.md).
_UNKNOWN = "Unknown"


def describes_failure(name: str) -> bool:
    """Returns whether the risk `name` describes a failure of the cluster's own parts; families add `-<object>`."""
    return name.partition("-")[0].removesuffix(_UNKNOWN) in FAMILIES
