"""Decides what keeps an update from finishing, also before it begins: the findings of the status that stall an update.

A forecast uses the same findings as `upgrade status`, so that both have the same headline.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import refused, stuck, waiting
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import report_of_status

if TYPE_CHECKING:
    from runup.updatestatus.decide.assess import AnySnapshot

# Findings that may or may not hold the update up: how long it takes is unknown with them.
_OPEN = frozenset(
    {
        stuck.CERTIFICATES,
        stuck.COMPONENT_STUCK,
        stuck.CONFIG_MISSING,
        stuck.DAEMON_STUCK,
        stuck.NODE_AWAY,
        stuck.NODE_LATE,
        stuck.NO_PROGRESS,
        stuck.OPERATOR_SILENT,
        stuck.PLATFORM_POD,
        stuck.POOL_BLOCKED,
        stuck.VOLUMES,
        refused.WRITE_REFUSED,
        terms.INCOMPLETE,
        terms.UNREADABLE,
        *waiting.OF_DRAINS,
    }
)


class Holdups(msgspec.Struct, frozen=True, kw_only=True):
    """Why an update does not finish without help, and why its time is unknown. `pools` are those that are held up."""

    needs_help: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    pools: frozenset[str] = frozenset()


def holdups(snapshot: AnySnapshot, now: datetime) -> Holdups:
    """Returns what holds an update up at `now`, the worst first."""
    report = report_of_status(assess(snapshot, None, now, max_bytes=None, watched=False, ahead=True))
    stalled = [
        row
        for row in report.health
        # A pool that is paused, a warning, stays as it is on purpose.
        if row.impact == terms.UPDATE_STALLED and row.level in (terms.ERROR, terms.CRITICAL)
    ]
    pools = {
        resource.name
        for row in stalled
        if row.check in (stuck.POOL_BLOCKED, stuck.POOL_DEGRADED)
        for resource in row.resources
        if resource.resource == "machineconfigpools"
    }
    return Holdups(
        needs_help=tuple(row.summary for row in stalled),
        unknown=tuple(row.summary for row in report.health if row not in stalled and row.check in _OPEN),
        pools=frozenset(pools),
    )
