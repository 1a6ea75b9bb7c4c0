"""Builds the report (`preflight-v1-json`) from the outcomes of checks.

The rules here make a report fit for ClusterVersion whatever the checks found: names are unique (findings of one name
are merged), there are at most 200 risks (the last one counts the rest), the size is at most 1 MiB, and the same
findings give the same bytes in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kubekit.lang.text import cut_position, printable
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.kubernetes_words import for_kubernetes
from runup.checks.decide.model import Applies, Finding
from runup.report import causes, documentation
from runup.report import report as preflight_v1
from runup.report.report import MAX_RISKS, OMITTED, SEVERITIES, Report, ReportedCheck, ReportedRisk, ReportedStep

# Highest first, so that `min` by this order finds the highest.
# Room for the words that say how many characters are cut off (`_text`).
_CUT_MARK_LENGTH = 36
# Characters of a text and resources of a risk, from generous to sparse; the first pair that fits is used.
TRIM_LEVELS = ((4000, 100), (1000, 20), (500, 0), (100, 0))


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a report that are echoed from the request. Times are UTC."""

    source_version: str
    target_version: str
    started_time: datetime
    preflight_id: str = ""
    target_image: str = ""
    engine_version: str = ""
    documentation_base: str = ""
    cluster_kind: preflight_v1.Kind = "OpenShift"
    steps: tuple[ReportedStep, ...] = ()


def running_report(header: Header, outcomes: Sequence[CheckOutcome], now: datetime, message: str) -> Report:
    """Returns the report while checks are still to come."""
    return _report(header, outcomes, now=now, status="running", message=message)


def progress_text(done: int, total: int, awaited: Sequence[str] = ()) -> str:
    """Returns how many checks are done, and the names of those that still wait for something."""
    return f"{done} of {total} checks done{', not yet ' if awaited else ''}{', '.join(awaited)}"


def completed_report(header: Header, outcomes: Sequence[CheckOutcome], now: datetime) -> Report:
    """Returns the report of a whole evaluation."""
    report = _report(header, outcomes, now=now, status="completed", message="")
    return replace(report, completion_time=now)


def failed(header: Header, outcomes: Sequence[CheckOutcome], now: datetime, message: str) -> Report:
    """Returns the report of an evaluation that could not be finished, with the findings so far."""
    report = _report(header, outcomes, now=now, status="failed", message=message)
    return replace(report, completion_time=now)


def risks(outcomes: Iterable[CheckOutcome], base: str = "") -> tuple[ReportedRisk, ...]:
    """Returns every risk of the outcomes, one for each name and ordered by name, at most `MAX_RISKS`.

    The pages of the risks are below the URL `base`.
    """
    by_name: dict[str, list[Finding]] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            by_name.setdefault(finding.name, []).append(finding)
    merged = [_merge_findings(name, findings, base) for name, findings in by_name.items()]
    capped = _most_severe(merged, base)
    cause_of = {risk.name: cause.name for cause in causes.group_by_cause(capped) for risk in cause.risks}
    # A risk with a separate cause names none.
    caused_risks = [
        replace(risk, cause="" if cause_of[risk.name] == risk.name else cause_of[risk.name]) for risk in capped
    ]
    return tuple(sorted(caused_risks, key=lambda risk: risk.name))


def count_omitted(outcomes: Iterable[CheckOutcome]) -> int:
    """Returns the number of risks for which `risks` has no room, and which its last risk, `OMITTED`, represents."""
    names = {finding.name for outcome in outcomes for finding in outcome.findings}
    # One place is taken by the risk that represents the others.
    return len(names) - (MAX_RISKS - 1) if len(names) > MAX_RISKS else 0


def _report(
    header: Header, outcomes: Sequence[CheckOutcome], now: datetime, status: preflight_v1.ExecutionStatus, message: str
) -> Report:
    """Returns the report of these outcomes, cut to the limits of its format."""
    if header.cluster_kind == "Kubernetes":
        outcomes = [_for_kubernetes(outcome) for outcome in outcomes]
    report = Report(
        format=preflight_v1.FORMAT,
        preflight_id=header.preflight_id,
        source_version=header.source_version,
        target_version=header.target_version,
        target_image=header.target_image,
        engine_version=header.engine_version,
        documentation_base=header.documentation_base,
        cluster_kind=header.cluster_kind,
        steps=header.steps,
        execution_status=status,
        started_time=header.started_time,
        observed_time=now,
        message=message,
        checks=tuple(
            ReportedCheck(
                name=outcome.check.name,
                component=outcome.check.component,
                result=outcome.result,
                message=outcome.message,
                duration_seconds=round(outcome.duration_seconds, 3),
            )
            for outcome in outcomes
        ),
        risks=risks(outcomes, header.documentation_base),
        risks_omitted=count_omitted(outcomes),
    )
    for characters, resources in TRIM_LEVELS:
        trimmed = replace(
            report,
            message=_text(report.message, characters),
            checks=tuple(
                replace(check, message=_text(check.message, characters))
                for check in report.checks[: preflight_v1.MAX_CHECKS]
            ),
            risks=tuple(
                replace(
                    risk,
                    message=_text(risk.message, characters),
                    remediation=_text(risk.remediation, characters),
                    reason=_text(risk.reason, characters),
                    resources=risk.resources[:resources],
                    resources_omitted=max(len(risk.resources) - resources, 0),
                )
                for risk in report.risks
            ),
        )
        if len(preflight_v1.encode(trimmed)) <= preflight_v1.MAX_BYTES:
            break
    return trimmed


def _for_kubernetes(outcome: CheckOutcome) -> CheckOutcome:
    """Returns the outcome with its texts in the words of a cluster without `oc`."""
    findings = tuple(
        replace(finding, message=for_kubernetes(finding.message), remediation=for_kubernetes(finding.remediation))
        for finding in outcome.findings
    )
    return replace(outcome, findings=findings, message=for_kubernetes(outcome.message))


def _merge_findings(name: str, findings: Sequence[Finding], base: str) -> ReportedRisk:
    """Returns one risk for all findings of a name.

    It applies if any of them does, has the highest severity among them, and joins their messages.
    """
    # What applies comes first, then in alphabetical order: the order in which the checks ran must not matter.
    ordered = sorted(
        findings, key=lambda finding: (finding.applies is not Applies.YES, finding.message, finding.remediation)
    )
    return ReportedRisk(
        name=name,
        message=" ".join(_distinct_texts(finding.message for finding in ordered)),
        url=next((finding.url for finding in ordered if finding.url), documentation.page(name, base)),
        applies="True" if ordered[0].applies is Applies.YES else "Unknown",
        reason=next((finding.reason for finding in ordered if finding.reason), ""),
        severity=min((finding.severity for finding in findings), key=SEVERITIES.index),
        # A check names the most important resources first, because the rest may be cut off.
        resources=tuple(dict.fromkeys(resource for finding in ordered for resource in finding.resources)),
        remediation=" ".join(_distinct_texts(finding.remediation for finding in ordered)),
        lacking=tuple(sorted({kind for finding in ordered for kind in finding.lacking})),
    )


def _distinct_texts(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


def _most_severe(reported_risks: list[ReportedRisk], base: str) -> list[ReportedRisk]:
    """Returns at most `MAX_RISKS` risks: the most severe, and one that counts and names the others."""
    if len(reported_risks) <= MAX_RISKS:
        return reported_risks
    # If a release has a risk named OMITTED of its own, it is omitted first: two risks of one name would make the report
    # invalid.
    ordered = sorted(
        reported_risks,
        key=lambda risk: (risk.name == OMITTED, risk.applies != "True", SEVERITIES.index(risk.severity), risk.name),
    )
    kept_risks, omitted_risks = ordered[: MAX_RISKS - 1], ordered[MAX_RISKS - 1 :]
    names = sorted(risk.name for risk in omitted_risks)
    shown_names = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    summary_risk = ReportedRisk(
        name=OMITTED,
        message=f"{len(names)} more risks were found than an update can carry: {shown_names}.",
        url=documentation.page(OMITTED, base),
        applies="True" if any(risk.applies == "True" for risk in omitted_risks) else "Unknown",
        reason="TooManyRisks",
        severity=min((risk.severity for risk in omitted_risks), key=SEVERITIES.index),
        remediation="Fix what is listed first; accepting this risk accepts everything that it represents.",
    )
    return [*kept_risks, summary_risk]


def _text(text: str, characters: int) -> str:
    """Returns `text` made printable and cut to `characters`; the end says how many are cut off.

    A check's text ends up in an API object and on a terminal.
    """
    clean = printable(text)
    if len(clean) <= characters:
        return clean
    end = cut_position(clean, characters - _CUT_MARK_LENGTH)
    return f"{clean[:end]} ... and {len(clean) - end} more characters"
