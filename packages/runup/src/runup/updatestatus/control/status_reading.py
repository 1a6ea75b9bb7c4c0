"""The status that a command shows: computes an UpdateStatus from a snapshot, and says how old one is."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.lang.gotext import datetime_of_ns, to_ns
from kubekit.lang.text import sentence_case, timestamp
from runup.api.update_v1alpha1 import NAME, UpdateStatus, UpdateStatusStatus
from runup.updatestatus.decide import read_status
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess, own_status
from runup.updatestatus.decide.control_plane import started_at
from runup.updatestatus.decide.freshness import CURRENT, OLD, UNKNOWN, Freshness
from runup.updatestatus.decide.memory import insights_of
from runup.updatestatus.decide.snapshot import Snapshot

if TYPE_CHECKING:
    from runup.updatestatus.decide.assess import AnySnapshot
    from runup.updatestatus.decide.kubernetes.snapshot import KubernetesSnapshot

JSON = dict[str, Any]


class StatusReading(msgspec.Struct, frozen=True, kw_only=True):
    """An UpdateStatus as JSON, the time at which it is read (ns since the epoch), and notes for stderr.

    `alerts_problem` is printed only while the cluster is updating: otherwise no alerts would be shown anyway.
    `worker_pools_before_master` is the position of the control plane's pool in the cluster's list of pools, which the
    object does not hold. `cluster` is the name on the HTML page. `read` is the decoded object, if it was needed before.
    `as_oc`: the objects are example files of oc, which are printed as oc prints them.
    `doubt` is a sentence without ages about a report that is old, or whose age is not known; "" if it is current.
    """

    obj: JSON
    now_ns: int
    notes: tuple[str, ...] = ()
    alerts_problem: str = ""
    worker_pools_before_master: int = 0
    cluster: str = ""
    read: read_status.Report | None = None
    doubt: str = ""
    as_oc: bool = False

    def report(self) -> read_status.Report:
        """Returns the Report of the object. Raises DecodeError."""
        return self.read or read_status.report(self.obj, worker_pools_before_master=self.worker_pools_before_master)


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
    return to_ns(seconds) + int((fraction or "").ljust(9, "0"))


# Status and reason of condition Current.
_CURRENT = {CURRENT: ("True", "AsExpected"), OLD: ("False", "NotConfirmed"), UNKNOWN: ("Unknown", "CannotDetermine")}


def age_sentence(age: Freshness) -> str:
    """Returns a sentence about an old report or an unknown age, without a full stop; "" if the report is current.

    It names the time of the last confirmation instead of an age, so that it stays the same from reading to reading.
    """
    if age.state == CURRENT:
        return ""
    if age.state == UNKNOWN:
        return f"the age of the update status controller's report is unknown: {age.why}"
    if age.confirmed_at is None:
        return f"the update status controller's report may be old: {age.why}"
    return f"the update status controller's report was last confirmed at {timestamp(age.confirmed_at)}: {age.why}"


def with_current_condition(obj: JSON, age: Freshness, now: datetime) -> JSON:
    """Returns the UpdateStatus `obj` with condition Current, which says whether the controller still confirms it.

    If it is old, condition Available becomes Unknown as well: the controller does not confirm that one either.
    """
    status = obj.get("status") or {}
    conditions = [condition for condition in status.get("conditions") or () if isinstance(condition, dict)]
    conditions = [condition for condition in conditions if condition.get("type") != "Current"]
    if age.state == OLD:
        unconfirmed = {"status": "Unknown", "reason": "NotConfirmed", "message": "See condition Current."}
        conditions = [{**each, **unconfirmed} if each.get("type") == "Available" else each for each in conditions]
    message = f"{sentence_case(with_ago(age_sentence(age), age, now))}."
    if age.state == CURRENT and age.confirmed_at is not None:
        before = _span(now - age.confirmed_at)
        message = f"Confirmed at {timestamp(age.confirmed_at)}, {before} before it was read."
    current = _current_condition(*_CURRENT[age.state], message, age.confirmed_at or now)
    return {**obj, "status": {**status, "conditions": [*conditions, current]}}


def read_instead(obj: JSON, doubt: str, age: Freshness, now: datetime) -> JSON:
    """Returns `obj`, computed just now in place of the controller's report, with condition Current that says so.

    `doubt` is the `age_sentence` on why the report was not used.
    """
    current = _current_condition("True", "ReadFromCluster", f"{sentence_case(with_ago(doubt, age, now))}.", now)
    return {**obj, "status": {**obj["status"], "conditions": [*obj["status"]["conditions"], current]}}


def _current_condition(status: str, reason: str, message: str, since: datetime) -> JSON:
    """Returns the condition Current as JSON: whether the report is kept up to date."""
    return {
        "type": "Current",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(since),
    }


def with_ago(doubt: str, age: Freshness, now: datetime) -> str:
    """Returns the sentence `doubt`, with how long ago it was after the time of the last confirmation."""
    if age.confirmed_at is None:
        return doubt
    at = timestamp(age.confirmed_at)
    return doubt.replace(at, f"{at} ({_span(now - age.confirmed_at)} ago)", 1)


def _span(span: timedelta) -> str:
    """Returns a length of time in seconds, minutes, or hours and minutes; a negative one as 0 s."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


NO_OPERATORS = "no cluster operator information available - you must be connected to an OpenShift version 4 server"
NO_PROGRESSING = "no current Progressing info, see `oc describe clusterversion` for more details.\n"


def complete_status(
    snapshot: Snapshot | KubernetesSnapshot,
    now_ns: int,
    *,
    node_now: datetime | None = None,
    stored_status: JSON | None = None,
) -> JSON:
    """Returns the complete UpdateStatus object for `snapshot`; raises InputError where `oc` ends with an error.

    `stored_status` is an earlier object of the controller. The times at which states and findings began are taken from
    it, unless it is about another update, in which nodes were drained before.
    """
    previous = own_status(stored_status.get("status") or {}) if stored_status else None
    cluster = None
    if isinstance(snapshot, Snapshot):
        refuse_unreadable(snapshot)
        cluster = snapshot.cluster_version
    if previous is not None and cluster is not None and not isinstance(cluster, Unreadable):
        begun = [insight.cluster_version.started_at for insight in insights_of(previous) if insight.cluster_version]
        previous = previous if begun == [started_at(cluster)] else None
    resource = resource_of(UpdateStatus)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": NAME},
        "spec": {},
        "status": status_json(snapshot, now_ns, previous=previous, node_now=node_now),
    }


def status_json(
    snapshot: AnySnapshot,
    now_ns: int,
    *,
    previous: UpdateStatusStatus | None = None,
    node_now: datetime | None = None,
) -> JSON:
    """Returns the complete status that one look at a snapshot gives."""
    status = assess(snapshot, previous, datetime_of_ns(now_ns), node_now=node_now, max_bytes=None, watched=False)
    document: JSON = codec.to_dict(status)
    return document


def refuse_unreadable(snapshot: Snapshot) -> None:
    """Raises InputError if the snapshot holds too little for any report."""
    cluster = snapshot.cluster_version
    if isinstance(cluster, Unreadable):
        # Imported here because it brings a client, which reading files does not need.
        from runup.process.clusterversion_client import NO_CLUSTER_VERSION

        raise InputError(NO_CLUSTER_VERSION.format(no="no", server="version 4 "))
    if snapshot.cluster_operators == ():
        raise InputError(NO_OPERATORS)
    if find(cluster.status.conditions, "Progressing") is None:
        raise InputError(NO_PROGRESSING)
