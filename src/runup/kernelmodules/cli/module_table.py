"""Renders the readiness of Modules as a table or as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, draw_table
from runup.kernelmodules.decide.verdict import Readiness, Status

JSON = dict[str, Any]
NO_MODULES = "No Modules load a kernel module here.\n"
_STYLES = {"True": "green", "False": "red", "Unknown": "yellow"}


def table(found: Sequence[Readiness], screen: Screen = PIPE, *, wide: bool = False) -> str:
    """Returns a table with a row for each Module and kernel, the reason in full; `wide` adds the image."""
    if not found:
        return NO_MODULES
    columns = [Column("MODULE", folds=True), Column("KERNEL", folds=True), Column("STAGE")]
    columns += [Column("VERIFIED", styles=_STYLES), *([Column("IMAGE", folds=True)] if wide else [])]
    rows = [Row(_cells(each, wide)) for each in found]
    return draw_table(Table((*columns, Column("REASON", flows=True)), rows), screen) + summary(found)


def summary(found: Sequence[Readiness]) -> str:
    """Returns a summary in one line: how many are verified, will not load, are not known."""
    counts = {status: sum(each.status is status for each in found) for status in Status}
    parts = [f"{counts[Status.TRUE]} of {len(found)} verified"]
    if counts[Status.FALSE]:
        parts.append(f"{counts[Status.FALSE]} will not load")
    if counts[Status.UNKNOWN]:
        parts.append(f"{counts[Status.UNKNOWN]} not known")
    return f"\n{', '.join(parts)}.\n"


def as_data(found: Sequence[Readiness], notes: Sequence[str]) -> JSON:
    """Returns the result as JSON data, with the field names of a PreflightValidation's status."""
    return {
        "modules": [
            {
                "namespace": each.namespace,
                "name": each.name,
                "kernelVersion": each.kernel,
                "architecture": each.architecture,
                "image": each.image,
                "verificationStage": each.stage,
                "verificationStatus": each.status.value,
                "statusReason": each.reason,
            }
            for each in found
        ],
        "notes": list(notes),
    }


def _cells(each: Readiness, wide: bool) -> tuple[str, ...]:
    name = f"{each.namespace}/{each.name}" if each.namespace else each.name
    kernel = each.kernel or f"unknown ({each.architecture})"
    return (name, kernel, each.stage, each.status.value, *((each.image,) if wide else ()), each.reason)
