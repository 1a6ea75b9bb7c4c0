"""Finds what a dump lacks and how to add it: a report in, kinds and a command out. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from runup.report.report import Report

_ENDINGS = (".tar.gz", ".tgz", ".tar", ".yaml", ".yml", ".json")
_HERE = "runup dump collect collected"


def kinds(report: Report, absent: Collection[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Returns the kinds, as `PLURAL.GROUP`, whose lists would make Unknown checks decidable, sorted by name.

    Kinds that are known to be `absent`, as (group, plural), cannot be collected.
    """
    lacking = {kind for risk in report.risks for kind in risk.lacking}
    return tuple(sorted(lacking - {f"{plural}.{group}".rstrip(".") for group, plural in absent}))


def command(dump: Path, lacking: Sequence[str]) -> str:
    """Returns the command that collects a dump with all kinds that checks read, beside `dump`; empty if none lacks."""
    if not lacking:
        return ""
    name = next((dump.name.removesuffix(end) for end in _ENDINGS if dump.name.endswith(end)), dump.name)
    return f"runup dump collect {shlex.quote(str(dump.parent / f'{name}-collected'))}" if name else _HERE
