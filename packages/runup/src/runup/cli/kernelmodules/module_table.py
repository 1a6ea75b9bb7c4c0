"""Renders the readiness of Modules as a table or as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, draw_table
from runup.kernelmodules.decide.readiness import Readiness, Status

JSON = dict[str, Any]
NO_MODULES = "No Modules load a kernel module here.\n"
_STYLES = {"True": "green", "False": "red", "Unknown": "yellow"}


def table(readinesses: Sequence[Readiness], screen: Screen = PIPE, *, wide: bool = False) -> str:
    """Returns a table with a row for each Module and kernel, the reason in full; `wide` adds the image."""
    if not readinesses:
        return NO_MODULES
    columns = [Column("MODULE", folds=True), Column("KERNEL", folds=True), Column("STAGE")]
    columns += [Column("VERIFIED", styles=_STYLES), *([Column("IMAGE", folds=True)] if wide else [])]
    rows = [Row(_cells(readiness, wide)) for readiness in readinesses]
    return draw_table(Table((*columns, Column("REASON", flows=True)), rows), screen) + summary(readinesses)


def summary(readinesses: Sequence[Readiness]) -> str:
    """Returns a summary in one line: how many are verified, will not load, are not known."""
    counts = {status: sum(readiness.status is status for readiness in readinesses) for status in Status}
    parts = [f"{counts[Status.TRUE]} of {len(readinesses)} verified"]
    if counts[Status.FALSE]:
        parts.append(f"{counts[Status.FALSE]} will not load")
    if counts[Status.UNKNOWN]:
        parts.append(f"{counts[Status.UNKNOWN]} not known")
    return f"\n{', '.join(parts)}.\n"


def as_data(readinesses: Sequence[Readiness], notes: Sequence[str]) -> JSON:
    """Returns the result as JSON data, with the field names of a PreflightValidation's status."""
    return {
        "modules": [
            {
                "namespace": readiness.namespace,
                "name": readiness.name,
                "kernelVersion": readiness.kernel,
                "architecture": readiness.architecture,
                "image": readiness.image,
                "verificationStage": readiness.stage,
                "verificationStatus": readiness.status.value,
                "statusReason": readiness.reason,
            }
            for readiness in readinesses
        ],
        "notes": list(notes),
    }


def _cells(readiness: Readiness, wide: bool) -> tuple[str, ...]:
    """Returns one row of the table; `wide` adds the image."""
    name = f"{readiness.namespace}/{readiness.name}" if readiness.namespace else readiness.name
    kernel = readiness.kernel or f"unknown ({readiness.architecture})"
    return (
        name,
        kernel,
        readiness.stage,
        readiness.status.value,
        *((readiness.image,) if wide else ()),
        readiness.reason,
    )
