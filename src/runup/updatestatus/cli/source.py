"""Where the report of `runup upgrade status` comes from, and what every source gives: an UpdateStatus and a time.

There is one path from there on: whatever was read becomes an UpdateStatus object, and the object is what is printed. So
files, a live cluster and the controller's own object cannot show different things.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.lang.gotext import nanoseconds
from kubekit.lang.pattern import Pattern
from runup.cli.errors import CommandError

if TYPE_CHECKING:
    from runup.updatestatus.decide.report import Report

JSON = dict[str, Any]

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Found(msgspec.Struct, frozen=True):
    """An UpdateStatus as JSON, the time at which it is looked at (ns since the epoch), and what to say on stderr.

    `alerts_problem` is said only with a report: where nothing is updating nobody misses alerts. `pools_before_master`
    is the control plane's place in the list of pools, which the object does not tell. `cluster`: what a page calls it.
    `read`: what the object says, where that had to be known already.
    """

    obj: JSON
    now_ns: int
    notes: tuple[str, ...] = ()
    alerts_problem: str = ""
    pools_before_master: int = 0
    cluster: str = ""
    read: Report | None = None


def moment(now_ns: int) -> datetime:
    """The datetime of `now_ns`, to the microsecond."""
    return EPOCH + timedelta(microseconds=now_ns // 1000)


def alerts_note(why: str) -> str:
    """What `oc` says where alerts cannot be had."""
    return f"Unable to fetch alerts, ignoring alerts in 'Update Health':  {why}\n"


_RFC3339 = Pattern(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})")


def parse_moment(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time; raises CommandError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise CommandError(f'--mock-now must be a time such as 2026-01-02T03:04:05Z, not "{text}"')
    whole, fraction, zone = match.groups()
    try:
        seconds = datetime.fromisoformat(whole.upper() + ("+00:00" if zone in "Zz" else zone))
    except ValueError as error:
        raise CommandError(f"--mock-now {text}: {error}") from error
    return nanoseconds(seconds - EPOCH) + int((fraction or "").ljust(9, "0"))
