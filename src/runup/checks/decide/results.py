"""Outcomes of checks -> the report, `preflight-v1-json`.

Here are the rules that make a report fit for ClusterVersion whatever the checks found: names are unique (findings of
one name are merged), at most 200 risks (the rest is counted in one more), at most 1 MiB, and the same findings give
the same bytes, in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from kubekit.lang.printable import boundary, printable
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Finding
from runup.preflight.decide.report import (
    FORMAT,
    MAX_BYTES,
    MAX_CHECKS,
    MAX_RISKS,
    OMITTED,
    ExecutionStatus,
    Report,
    ReportedCheck,
    ReportedResource,
    ReportedRisk,
    Severity,
    encode,
)
from runup.release.decide import documentation

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
# Characters of a text and resources of a risk, from generous to sparse: the first pair that makes the report fit.
_MARK = 36
FITS = ((4000, 100), (1000, 20), (500, 0), (100, 0))


@dataclass(frozen=True, slots=True)
class Header:
    """What a report says of itself, echoed from whoever asked for it. Times are UTC."""

    source_version: str
    target_version: str
    started_time: datetime
    preflight_id: str = ""
    target_image: str = ""
    engine_version: str = ""
    documentation_base: str = ""


def running(header: Header, outcomes: Sequence[CheckOutcome], total: int, now: datetime, message: str = "") -> Report:
    """The report while checks are still to come; by default it says how many are done."""
    message = message or f"{len(outcomes)} of {total} checks done"
    return _report(header, outcomes, now, "running", message)


def completed(header: Header, outcomes: Sequence[CheckOutcome], now: datetime) -> Report:
    """The report of a whole evaluation."""
    report = _report(header, outcomes, now, "completed", "")
    return replace(report, completion_time=now)


def failed(header: Header, outcomes: Sequence[CheckOutcome], now: datetime, message: str) -> Report:
    """The report of an evaluation that could not be brought to its end, with what was found until then."""
    report = _report(header, outcomes, now, "failed", message)
    return replace(report, completion_time=now)


def risks(outcomes: Iterable[CheckOutcome], base: str = "") -> tuple[ReportedRisk, ...]:
    """Every risk of the outcomes, one a name, ordered by name, at most `MAX_RISKS`; pages are below `base`."""
    by_name: dict[str, list[Finding]] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            by_name.setdefault(finding.name, []).append(finding)
    merged = [_merged(name, findings, base) for name, findings in by_name.items()]
    return tuple(sorted(_capped(merged, base), key=lambda risk: risk.name))


def omitted(outcomes: Iterable[CheckOutcome]) -> int:
    """How many risks `risks` has no room for; one of those that it has stands for them."""
    names = {finding.name for outcome in outcomes for finding in outcome.findings}
    return len(names) - (MAX_RISKS - 1) if len(names) > MAX_RISKS else 0


def _report(
    header: Header, outcomes: Sequence[CheckOutcome], now: datetime, status: ExecutionStatus, message: str
) -> Report:
    return _fitted(
        Report(
            format=FORMAT,
            preflight_id=header.preflight_id,
            source_version=header.source_version,
            target_version=header.target_version,
            target_image=header.target_image,
            engine_version=header.engine_version,
            documentation_base=header.documentation_base,
            execution_status=status,
            started_time=header.started_time,
            observed_time=now,
            message=message,
            checks=tuple(_reported(outcome) for outcome in outcomes),
            risks=risks(outcomes, header.documentation_base),
            risks_omitted=omitted(outcomes),
        )
    )


def _reported(outcome: CheckOutcome) -> ReportedCheck:
    return ReportedCheck(
        name=outcome.check.name,
        component=outcome.check.component,
        result=outcome.result,
        message=outcome.message,
        duration_seconds=round(outcome.duration_seconds, 3),
    )


def _merged(name: str, findings: Sequence[Finding], base: str) -> ReportedRisk:
    """One risk of all the findings of a name: it applies if any does, is as severe as the worst, says all they say."""
    # What applies comes first, whatever the order in which the checks ran; the rest in the order of its words.
    ordered = sorted(
        findings, key=lambda finding: (finding.applies is not Applies.YES, finding.message, finding.remediation)
    )
    return ReportedRisk(
        name=name,
        message=" ".join(_distinct(finding.message for finding in ordered)),
        url=next((finding.url for finding in ordered if finding.url), documentation.page(name, base)),
        applies="True" if ordered[0].applies is Applies.YES else "Unknown",
        reason=next((finding.reason for finding in ordered if finding.reason), ""),
        severity=min((finding.severity for finding in findings), key=SEVERITIES.index),
        resources=_resources(resource for finding in ordered for resource in finding.resources),
        remediation=" ".join(_distinct(finding.remediation for finding in ordered)),
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


def _resources(resources: Iterable[ReportedResource]) -> tuple[ReportedResource, ...]:
    """Each once, in the order of the findings: a check names first what matters most, and the rest may be cut off."""
    return tuple(dict.fromkeys(resources))


def _capped(found: list[ReportedRisk], base: str) -> list[ReportedRisk]:
    """At most `MAX_RISKS`: the gravest stay, one risk says how many more there are and which."""
    if len(found) <= MAX_RISKS:
        return found
    # A release's own risk of that name would make the report unreadable: names are unique.
    ordered = sorted(
        found,
        key=lambda risk: (risk.name == OMITTED, risk.applies != "True", SEVERITIES.index(risk.severity), risk.name),
    )
    kept, others = ordered[: MAX_RISKS - 1], ordered[MAX_RISKS - 1 :]
    names = sorted(risk.name for risk in others)
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    rest = ReportedRisk(
        name=OMITTED,
        message=f"{len(names)} more risks were found than an update can carry: {shown}.",
        url=documentation.page(OMITTED, base),
        applies="True" if any(risk.applies == "True" for risk in others) else "Unknown",
        reason="TooManyRisks",
        severity=min((risk.severity for risk in others), key=SEVERITIES.index),
        remediation="Fix what is listed first; accepting this risk accepts everything that it stands for.",
    )
    return [*kept, rest]


def _fitted(report: Report) -> Report:
    for characters, resources in FITS:
        trimmed = replace(
            report,
            message=_text(report.message, characters),
            checks=tuple(
                replace(check, message=_text(check.message, characters)) for check in report.checks[:MAX_CHECKS]
            ),
            risks=tuple(_trimmed(risk, characters, resources) for risk in report.risks),
        )
        if len(encode(trimmed)) <= MAX_BYTES:
            break
    return trimmed


def _trimmed(risk: ReportedRisk, characters: int, resources: int) -> ReportedRisk:
    return replace(
        risk,
        message=_text(risk.message, characters),
        remediation=_text(risk.remediation, characters),
        reason=_text(risk.reason, characters),
        resources=risk.resources[:resources],
    )


def _text(text: str, characters: int) -> str:
    """A check's words end up in an API object and on a terminal; what is cut off is counted."""
    clean = printable(text)
    if len(clean) <= characters:
        return clean
    end = boundary(clean, characters - _MARK)
    return f"{clean[:end]} ... and {len(clean) - end} more characters"
