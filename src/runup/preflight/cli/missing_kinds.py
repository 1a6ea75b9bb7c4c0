"""Finds what a dump lacks and how to add it: outcomes of checks in, kinds and a command out. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kubekit.api.scheme import Resource
from runup.checks.catalogue.shared.presence import listed_or_none
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Snapshot, Unreadable

_ENDINGS = (".tar.gz", ".tgz", ".tar", ".yaml", ".yml", ".json")
_HERE = "runup dump collect collected"


def kinds(
    outcomes: Iterable[CheckOutcome], snapshot: Snapshot, absent: Collection[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Returns the kinds, as `PLURAL.GROUP`, whose lists would make Unknown checks decidable, sorted by name.

    A kind is included if an Unknown check reads it, and the dump neither holds it in full nor proves that it is absent.
    Kinds that are known to be `absent`, as (group, plural), cannot be collected.
    """
    reads: set[Resource] = set()
    for each in outcomes:
        unknown = any(finding.applies is Applies.UNKNOWN for finding in each.findings)
        if unknown and not all(_whole(snapshot, asked) for asked in each.asked):
            reads.update(each.check.reads)
    lacking = {read for read in reads if (read.group, read.plural) not in absent and not _whole(snapshot, read)}
    return tuple(sorted({read.name for read in lacking}))


def _whole(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether the snapshot has all objects of the kind, or proof that there are none."""
    try:
        listed_or_none(snapshot, resource)
    except Unreadable:
        return False
    return resource not in snapshot.incomplete


def command(dump: Path, lacking: Sequence[str]) -> str:
    """Returns the command that collects a dump with all kinds that checks read, beside `dump`; empty if none lacks."""
    if not lacking:
        return ""
    name = next((dump.name.removesuffix(end) for end in _ENDINGS if dump.name.endswith(end)), dump.name)
    return f"runup dump collect {shlex.quote(str(dump.parent / f'{name}-collected'))}" if name else _HERE
