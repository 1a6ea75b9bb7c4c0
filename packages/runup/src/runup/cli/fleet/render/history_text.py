"""Renders what came and went between two reports of a cluster, for a terminal and for a page. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runup.fleet.decide.trend import Change, ReportStep

# As many objects as are named of a risk.
_OBJECTS = 3


def names_with_counts(pairs: Sequence[tuple[str, int]]) -> str:
    """Returns risks with the number of their clusters, where that is not 1."""
    return ", ".join(name if number == 1 else f"{name} ({number} clusters)" for name, number in pairs)


def new_risks_text(step: ReportStep) -> str:
    """Returns what is new in a report, or why that is not known."""
    if not step.completed:
        return "could not be judged"
    return "first report" if step.first else _changes_text(step.came, "now also")


def gone_risks_text(step: ReportStep) -> str:
    """Returns what is gone in a report."""
    return _changes_text(step.went, "no longer")


def _changes_text(changes: Sequence[Change], verb: str) -> str:
    """Returns which risks came or went, and which objects they were about."""
    return "; ".join(
        f"{change.risk}{f' ({_objects_text(change.objects)})' if change.objects else ''}"
        if change.whole
        else f"{change.risk}: {verb} {_objects_text(change.objects)}"
        for change in changes
    )


def _objects_text(objects: Sequence[str]) -> str:
    omitted = len(objects) - _OBJECTS
    return ", ".join(objects[:_OBJECTS]) + (f" and {omitted} more" if omitted > 0 else "")
