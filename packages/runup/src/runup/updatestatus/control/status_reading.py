"""The result that every source of `runup upgrade status` returns: an UpdateStatus object and a time.

Every source builds an UpdateStatus object, and only the object is printed, so that files, a live cluster and the
controller's own object cannot be shown differently.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.error_types import InputError
from kubekit.lang.gotext import nanoseconds

if TYPE_CHECKING:
    from runup.updatestatus.decide.report_rows import Report

JSON = dict[str, Any]

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class StatusReading(msgspec.Struct, frozen=True):
    """An UpdateStatus as JSON, the time at which it is read (ns since the epoch), and notes for stderr.

    `alerts_problem` is printed only while the cluster is updating: otherwise no alerts would be shown anyway.
    `worker_pools_before_master` is the position of the control plane's pool in the cluster's list of pools, which the
    object does not hold. `cluster` is the name on the HTML page. `read` is the decoded object, if it was needed before.
    `doubt` is a sentence without ages about a report that is old, or whose age is not known; "" if it is current.
    """

    obj: JSON
    now_ns: int
    notes: tuple[str, ...] = ()
    alerts_problem: str = ""
    worker_pools_before_master: int = 0
    cluster: str = ""
    read: Report | None = None
    doubt: str = ""


def datetime_of_ns(now_ns: int) -> datetime:
    """Returns the datetime of `now_ns`, to the microsecond."""
    return EPOCH + timedelta(microseconds=now_ns // 1000)


def alerts_note(why: str) -> str:
    """Returns the message that `oc` prints if alerts cannot be fetched."""
    return f"Unable to fetch alerts, ignoring alerts in 'Update Health':  {why}\n"


_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})")


def parse_moment(text: str) -> int:
    """Returns an RFC 3339 time in nanoseconds since the epoch; raises InputError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InputError(f'--mock-now must be a time such as 2026-01-02T03:04:05Z, not "{text}"')
    date_and_time, fraction, zone = match.groups()
    try:
        seconds = datetime.fromisoformat(date_and_time.upper() + ("+00:00" if zone in "Zz" else zone))
    except ValueError as error:
        raise InputError(f"--mock-now {text}: {error}") from error
    return nanoseconds(seconds - EPOCH) + int((fraction or "").ljust(9, "0"))
