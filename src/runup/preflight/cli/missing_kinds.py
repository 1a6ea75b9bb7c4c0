"""Finds what a dump lacks and how to add it: outcomes of checks in, kinds and a shell command out. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from kubekit.api.scheme import Resource
from runup.checks.catalogue.shared.presence import listed_or_none
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Snapshot, Unreadable

# The layouts that read a list file at their top level, named after its kind (docs/sandbox.md, "Importing a dump").
_OPEN = ("inspect", "folder")


def kinds(outcomes: Iterable[CheckOutcome], snapshot: Snapshot) -> tuple[str, ...]:
    """Returns the kinds, as `PLURAL.GROUP`, whose lists would make Unknown checks decidable, sorted by name.

    A kind is included if an Unknown check reads it, and the dump neither holds it in full nor proves that it is absent.
    """
    reads: set[Resource] = set()
    for each in outcomes:
        unknown = any(finding.applies is Applies.UNKNOWN for finding in each.findings)
        if unknown and not all(_whole(snapshot, asked) for asked in each.asked):
            reads.update(each.check.reads)
    return tuple(sorted({read.name for read in reads if not _whole(snapshot, read)}))


def _whole(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether the snapshot has all objects of the kind, or proof that there are none."""
    try:
        listed_or_none(snapshot, resource)
    except Unreadable:
        return False
    return resource not in snapshot.incomplete


def command(dump: Path, style: str, lacking: Sequence[str]) -> str:
    """Returns the shell command that adds lists of the kinds to the folder `dump`.

    Returns an empty string if no kinds are lacking, or if the dump's layout takes no additional lists.
    """
    if not lacking or style not in _OPEN or not dump.is_dir():
        return ""
    into = f'{shlex.quote(str(dump))}/"$kind".yaml'
    return f'for kind in {" ".join(lacking)}; do oc get --all-namespaces -o yaml "$kind" > {into}; done'
