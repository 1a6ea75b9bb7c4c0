"""Determines which risks a report says nothing about, because their check could not tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from runup.report.report import Report, ReportedCheck

_SUFFIX = "Unknown"


def may_be_untold(report: Report, risk: str) -> bool:
    """Returns whether a risk that is not in the report may be there all the same, because its check could not tell.

    A risk is named after its check, with what it is about after a dash; that a check could not tell is the risk
    `<check>Unknown`. Of a report that is not complete every risk may be missing.
    """
    if report.execution_status != "completed":
        return True
    return is_untold(risk, (risk.name for risk in report.risks), report.checks)


def is_untold(risk: str, names: Iterable[str], checks: Iterable[ReportedCheck]) -> bool:
    """Returns whether the check of `risk` could not tell, by the names of the risks found and the checks' results."""
    check = risk.partition("-")[0]
    return f"{check}{_SUFFIX}" in names or any(
        reported_check.name == check and reported_check.result == "Unknown" for reported_check in checks
    )
