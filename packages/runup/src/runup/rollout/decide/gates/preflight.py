"""The gate of the preflight: a complete, current report of the same release, without risks that close it."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import count, timestamp
from runup.preflight.decide.findings import Findings, Result, Risk
from runup.preflight.decide.preflight_conditions import WATCHING
from runup.preflight.decide.preflight_state import Phase
from runup.report.report import severity_rank
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, OPEN, UNKNOWN, Gate, State
from runup.rollout.decide.gates.observed import CLOCK_TOLERANCE, Observed
from runup.rollout.decide.pools import risk_of

NAME = "preflight"
_MAX_NAMED = 5


def evaluate(observed: Observed, now: datetime) -> Gate:
    """Returns the gate. It is open only if a current report of the wanted image has nothing open."""
    findings, settings = observed.findings, observed.gates.preflight
    if findings is None or findings.observed is None:
        why = _failure(findings)
        return _gate(UNKNOWN, "PreflightMissing", f"No preflight of {observed.wanted.version} has a result{why}.")
    if not is_same_image(observed.report_image, observed.wanted.image):
        return _gate(
            CLOSED,
            "PreflightOtherRelease",
            f"The preflight is about {observed.report_image or 'an unknown image'}, not about {observed.wanted.image}.",
        )
    if findings.source != observed.wanted.source:
        return _gate(
            UNKNOWN,
            "PreflightOld",
            f"The preflight was made on {findings.source or 'an unknown release'}; the cluster runs "
            f"{observed.wanted.source}.",
        )
    expires = findings.observed + parse(settings.max_age, "spec.gates.preflight.maxAge")
    if findings.observed > now + CLOCK_TOLERANCE:
        text = f"The report is dated {timestamp(findings.observed)}, which is in the future."
        return _gate(UNKNOWN, "PreflightOld", text)
    if (unseen := _unseen_pauses(findings, observed)) is not None:
        return unseen
    if _is_watched(findings):
        return _of_findings(findings, observed, None)
    if now > expires:
        text = f"The report is of {timestamp(findings.observed)}, older than {settings.max_age}."
        return _gate(UNKNOWN, "PreflightOld", text)
    return _of_findings(findings, observed, expires)


def _is_watched(findings: Findings) -> bool:
    """Reports whether an operator keeps the findings up to date: it stores a report again only when it has changed."""
    running = findings.running
    watching = running is not None and running.status == "True" and running.reason == WATCHING
    return findings.phase is Phase.LIVE and watching and not findings.lapse


def _of_findings(findings: Findings, observed: Observed, expires: datetime | None) -> Gate:
    """Returns the gate from the findings of a report that counts until `expires`."""
    evidence = {"reportImage": observed.report_image, "observed": timestamp(findings.observed)}
    if findings.waived:
        text = f"The signature of {observed.wanted.version} was not verified."
        return _gate(CLOSED, "PreflightRisks", text, evidence)
    if findings.partial or findings.result in (Result.COULD_NOT_RUN, Result.NO_RESULT):
        text = f"The preflight is not complete{_failure(findings)}."
        return _gate(UNKNOWN, "PreflightMissing", text, evidence)
    if findings.ended or findings.result is Result.UNCONFIRMED:
        return _gate(UNKNOWN, "PreflightOld", f"The preflight is {findings.result.text}.", evidence)
    blocking = [risk for risk in findings.risks if _closes(risk, observed)]
    refusals = [risk for risk in findings.refusals if risk not in blocking]
    ended = [risk for risk in blocking if risk.name in observed.ended_acceptances]
    if ended and len(ended) == len(blocking) and not refusals:
        why = "The acceptance has ended, or was made for an earlier release"
        text = f"{why}, and {_risks_text(ended, 'apply', 'applies')}"
        return _gate(CLOSED, "AcceptanceEnded", text, evidence)
    if blocking or refusals:
        return _gate(CLOSED, "PreflightRisks", _risks_text([*blocking, *refusals], "apply", "applies"), evidence)
    grown = [risk for risk in findings.risks if risk.accepted and risk.grown and risk.applies != "False"]
    if grown:
        text = "; ".join(risk.grown_text for risk in grown[:_MAX_NAMED])
        return _gate(CLOSED, "RiskGrew", f"{text}.", evidence)
    own = set(map(risk_of, observed.own_pauses))
    unknown = [risk for risk in findings.risks if risk.open and risk.applies == "Unknown" and risk.name not in own]
    if unknown:
        text = _risks_text(unknown, "are unknown", "is unknown")
        return _gate(UNKNOWN, "PreflightUnknown", text, evidence)
    text = f"The preflight of {timestamp(findings.observed)} has no open risk of severity "
    severity = observed.gates.preflight.fail_on
    gate = _gate(OPEN, "Clear", f"{text}{severity} or higher.", evidence)
    # A report that becomes too old, or an acceptance that ends, closes the gate without any other change.
    needed = [risk.name for risk in findings.risks if risk.accepted and risk.applies != "False"]
    ends = [observed.acceptance_ends[name] for name in needed if name in observed.acceptance_ends]
    return replace(gate, until=min([*ends, *([expires] if expires else [])], default=None))


def _closes(risk: Risk, observed: Observed) -> bool:
    """Reports whether an open risk that applies has at least the severity at which the gate closes."""
    at_least = severity_rank(risk.severity) <= severity_rank(observed.gates.preflight.fail_on)
    return risk.open and risk.applies == "True" and at_least and risk.name not in set(map(risk_of, observed.own_pauses))


def _unseen_pauses(findings: Findings, observed: Observed) -> Gate | None:
    """Returns the gate if the report was made before the run paused its pools, else None.

    A report that names a pause was made after it.
    """
    named = {risk.name for risk in findings.risks}
    unseen = [
        name
        for name, since in observed.own_pauses.items()
        if risk_of(name) not in named and (findings.observed is None or findings.observed <= since)
    ]
    if not unseen:
        return None
    text = f"The report of {timestamp(findings.observed)} was made before pool {min(unseen)} was paused."
    return _gate(UNKNOWN, "PreflightOld", text)


def _risks_text(risks: list[Risk], plural: str, singular: str) -> str:
    names = ", ".join(f"{risk.name} ({risk.severity})" if risk.severity else risk.name for risk in risks[:_MAX_NAMED])
    more = f" and {len(risks) - _MAX_NAMED} more" if len(risks) > _MAX_NAMED else ""
    return f"{count(len(risks), 'risk')} {singular if len(risks) == 1 else plural}: {names}{more}."


def _failure(findings: Findings | None) -> str:
    condition = findings.failed if findings is not None else None
    return f": {condition.message or condition.reason}" if condition is not None else ""


def _gate(state: State, reason: str, message: str, evidence: dict[str, str] | None = None) -> Gate:
    return Gate(name=NAME, state=state, reason=reason, message=message, evidence=evidence or {})
