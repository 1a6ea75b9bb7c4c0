"""Renders the findings of preflights as lines with source, time and completeness, and as data. Pure.

The findings of an ended preflight may have changed since: they are shown with their time and marked
(docs/decisions/0072 D24).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.error_types import InputError
from kubekit.lang.text import timestamp
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Accepted
from runup.advice.decide.preflight_reasons import OUTDATED
from runup.api.clusterversion_json import JSON, texts
from runup.api.config_v1 import ClusterVersion
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import Output, align_columns, out, shorten
from runup.preflight.decide import findings
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.findings import Findings
from runup.preflight.decide.stored_reports import History

_MAX_CHARACTERS = 100


class Result(msgspec.Struct, frozen=True):
    """The result for a target.

    `ended`: no preflight checks it any more; `state`: complete, partial, running or the failure.
    """

    findings: Findings
    state: str
    ended: bool


def preflight_lines(
    document: JSON, history: JSON | None, accepted: JSON | None, version: str, now: datetime | None
) -> tuple[list[Output], list[JSON]]:
    """Returns the lines about every target's preflight, or only about that of `version`, and their machine form."""
    try:
        cluster = codec.convert(ClusterVersion, document)
        stored = histories.read(codec.convert(ConfigMap, history)) if history else History()
    except codec.DecodeError as error:
        raise InputError(f"what preflights found cannot be read: {error}") from error
    accepted_names = acceptance.accepted(cluster, texts(accepted, "data"), now)
    results = [
        result
        for result in _preflight_results(cluster, stored, accepted_names)
        if version in ("", result.findings.target)
    ]
    return list(_table_lines(results, at_length=bool(version))), [
        {**rendered.as_data(result.findings), "state": result.state, "ended": result.ended} for result in results
    ]


def _preflight_results(cluster: ClusterVersion, past: History, accepted: Accepted) -> Iterator[Result]:
    """Yields the result of the preflight that is requested, and of each that has ended."""
    requested = findings.current_findings(cluster, past, accepted)
    if requested is not None:
        yield Result(requested, _state_text(requested), ended=False)
    for earlier in findings.ended_findings(cluster, past, accepted):
        report = findings.report_of(past, earlier.source, earlier.target, earlier.image)
        complete = report is not None and report.execution_status == "completed"
        yield Result(earlier, "complete" if complete else "partial", ended=True)


def _state_text(preflight_findings: Findings) -> str:
    """Returns the preflight's state in words."""
    if preflight_findings.failed:
        return f"could not run ({preflight_findings.failed.reason})"
    if preflight_findings.completed:
        return "complete"
    return "running" if preflight_findings.running and preflight_findings.running.status == "True" else "not started"


def _table_lines(results: list[Result], *, at_length: bool) -> Iterator[Output]:
    """Yields the table of preflights; with `at_length` each risk that applies follows on a line of its own."""
    if not results:
        return
    rows = [("  TARGET", "SOURCE", "OBSERVED", "STATE", "RISKS"), *map(_table_row, results)]
    yield out(f"\nPreflights:\n\n{align_columns(rows)}")
    if any(result.ended for result in results):
        yield out("\nWhat an ended preflight found may have changed since, and holds no update up.\n")
    if at_length:
        for result in results:
            risks = [risk for risk in result.findings.risks if risk.from_preflight and risk.applies != "False"]
            yield from (out(f"\n  {risk.name}: {shorten(risk.message, _MAX_CHARACTERS)}\n") for risk in risks)


def _table_row(result: Result) -> tuple[str, ...]:
    """Returns the table's row of one preflight."""
    findings_of_target = result.findings
    total = sum(1 for check in findings_of_target.checks if check.result != "Skipped")
    unknown = sum(1 for check in findings_of_target.checks if check.result == "Unknown")
    told = f" ({total - unknown} of {total} checks told)" if total else ""
    state = f"{result.state}{told}{', ended' if result.ended else ''}"
    risks = findings_of_target.risks
    if result.ended:
        names = [risk.name for risk in risks if risk.reason == OUTDATED]
    else:
        names = [risk.name for risk in risks if risk.applies != "False"]
    observed = timestamp(findings_of_target.observed) or "not yet"
    return (
        f"  {findings_of_target.target}",
        findings_of_target.source,
        observed,
        state,
        shorten(", ".join(names) or "none", _MAX_CHARACTERS),
    )
