"""Where the report of `runup upgrade status` comes from, and what every source gives: an UpdateStatus and a time.

There is one path from there on: whatever was read becomes an UpdateStatus object, and the object is what is printed. So
files, a live cluster and the controller's own object cannot show different things.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from runup.api import codec
from runup.api.config_v1 import ClusterVersion
from runup.api.scheme import resource_of
from runup.api.update_v1alpha1 import NAME, UpdateStatus
from runup.cli.errors import CommandError
from runup.domain.conditions import find
from runup.domain.updatestatus.assess import assess
from runup.domain.updatestatus.snapshot import Snapshot, Unreadable
from runup.lang.gotext import nanoseconds
from runup.lang.pattern import Pattern

JSON = dict[str, Any]

NO_OPERATORS = "no cluster operator information available - you must be connected to an OpenShift version 4 server"
NO_PROGRESSING = "no current Progressing info, see `oc describe clusterversion` for more details.\n"
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Found(msgspec.Struct, frozen=True):
    """An UpdateStatus as JSON, the time at which it is looked at (ns since the epoch), and what to say on stderr.

    `alerts_problem` is said only with a report: where nothing is updating nobody misses alerts. `pools_before_master`
    is the control plane's place in the list of pools, which the object does not tell. `cluster`: what a page calls it.
    """

    obj: JSON
    now_ns: int
    notes: tuple[str, ...] = ()
    alerts_problem: str = ""
    pools_before_master: int = 0
    cluster: str = ""


def moment(now_ns: int) -> datetime:
    """The datetime of `now_ns`, to the microsecond."""
    return EPOCH + timedelta(microseconds=now_ns // 1000)


def assessed(snapshot: Snapshot, now_ns: int, *, node_now: datetime | None = None) -> JSON:
    """The UpdateStatus that `snapshot` comes to, whole; raises CommandError where `oc` ends with an error."""
    refuse(snapshot)
    status = assess(snapshot, None, moment(now_ns), node_now=node_now, max_bytes=None)
    resource = resource_of(UpdateStatus)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": NAME},
        "spec": {},
        "status": codec.to_dict(status),
    }


def refuse(snapshot: Snapshot) -> None:
    """Raise CommandError where there is too little for any report."""
    cluster = snapshot.cluster_version
    if isinstance(cluster, Unreadable):
        # A client, which files do not need.
        from runup.cli.cluster import NO_CLUSTER_VERSION

        raise CommandError(NO_CLUSTER_VERSION.format(no="no", server="version 4 "))
    if snapshot.cluster_operators == ():
        raise CommandError(NO_OPERATORS)
    _needs_progressing(cluster)


def _needs_progressing(cluster: ClusterVersion) -> None:
    if find(cluster.status.conditions, "Progressing") is None:
        raise CommandError(NO_PROGRESSING)


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
