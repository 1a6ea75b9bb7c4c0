"""What a dump lacks, and how to add it: outcomes of checks in, kinds and a line for the shell out. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from kubekit.api.scheme import Resource
from runup.checks.catalogue.shared.presence import listed_or_none
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Snapshot, Unreadable

# The layouts that read a list at their top, called by what it lists (docs/sandbox.md, "Importing a dump").
_OPEN = ("inspect", "folder")


def kinds(outcomes: Iterable[CheckOutcome], snapshot: Snapshot) -> tuple[str, ...]:
    """The kinds, as `PLURAL.GROUP`, whose lists would tell more, in the order of their names.

    They are what a check reads that could not tell for want of one of them, and neither held in full nor proved to be
    absent.
    """
    reads: set[Resource] = set()
    for each in outcomes:
        untold = any(found.applies is Applies.UNKNOWN for found in each.findings)
        if untold and not all(_whole(snapshot, asked) for asked in each.asked):
            reads.update(each.check.reads)
    return tuple(sorted({read.name for read in reads if not _whole(snapshot, read)}))


def _whole(snapshot: Snapshot, resource: Resource) -> bool:
    try:
        listed_or_none(snapshot, resource)
    except Unreadable:
        return False
    return resource not in snapshot.incomplete


def command(dump: Path, style: str, lacking: Sequence[str]) -> str:
    """The line that adds lists of the kinds to the folder `dump`; empty where none are lacking or it takes no more."""
    if not lacking or style not in _OPEN or not dump.is_dir():
        return ""
    into = f'{shlex.quote(str(dump))}/"$kind".yaml'
    return f'for kind in {" ".join(lacking)}; do oc get --all-namespaces -o yaml "$kind" > {into}; done'
