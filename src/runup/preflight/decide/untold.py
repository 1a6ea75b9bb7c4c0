"""Knows which risks a report says nothing about: those whose check could not tell. Pure."""

from __future__ import annotations

from runup.preflight.decide.report import Report

_SUFFIX = "Unknown"


def untold(report: Report, risk: str) -> bool:
    """Returns whether a risk that is not in the report may be there all the same, because its check could not tell.

    A risk is named after its check, with what it is about after a dash; that a check could not tell is the risk
    `<check>Unknown`. Of a report that is not complete every risk may be missing.
    """
    if report.execution_status != "completed":
        return True
    check = risk.partition("-")[0]
    named = {each.name.removesuffix(_SUFFIX) for each in report.risks if each.name.endswith(_SUFFIX)}
    return check in named or any(each.name == check and each.result == "Unknown" for each in report.checks)
