"""Reads how old the update status controller's report is, and says so in a sentence and as condition Current.

In: the controller's Lease, and UpdateStatus as JSON. Out: a `Freshness`, the sentence, and the object with conditions.
The age is by the API server's clock, so that neither this machine's nor, where the Lease tells it, the controller's
clock can make an old report look new. An unreadable Lease is not a current one: the age is not known, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.lang.text import sentence_case, timestamp
from runup.api.kinds import RESOURCES
from runup.updatestatus.decide.freshness import (
    CURRENT,
    LEASE,
    NAMESPACE,
    OLD,
    UNKNOWN,
    Freshness,
    LeaseRecord,
    freshness,
    no_lease,
)

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

JSON = dict[str, Any]

_LEASES = RESOURCES["kubekit.api.workloads_v1.Lease"]

_STATUS = {CURRENT: "True", OLD: "False", UNKNOWN: "Unknown"}
_REASON = {CURRENT: "AsExpected", OLD: "NotConfirmed", UNKNOWN: "CannotDetermine"}


def age_of(client: SyncClient, clock: Callable[[], datetime], refused: tuple[type[ApiError], ...]) -> Freshness:
    """Returns how old the report is; UNKNOWN if the Lease is refused with one of `refused` or cannot be decoded."""
    try:
        lease = codec.convert(LeaseRecord, client.send(calls.get_raw(_LEASES, LEASE, NAMESPACE)))
    except NotFound:
        return no_lease()
    except refused as error:
        return Freshness(UNKNOWN, None, f"Lease {NAMESPACE}/{LEASE} could not be read: {error.message}")
    except codec.DecodeError as error:
        return Freshness(UNKNOWN, None, f"Lease {NAMESPACE}/{LEASE} could not be read: {error}")
    return freshness(lease, clock())


def age_sentence(age: Freshness) -> str:
    """Returns a sentence about an old report or an unknown age, without a full stop; "" if the report is current.

    It names the time of the last confirmation instead of an age, so that it stays the same from reading to reading.
    """
    if age.state == CURRENT:
        return ""
    if age.state == UNKNOWN:
        return f"how old the update status controller's report is could not be told: {age.why}"
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
        conditions = [
            _not_confirmed(condition) if condition.get("type") == "Available" else condition for condition in conditions
        ]
    current = _current_condition(_STATUS[age.state], _REASON[age.state], _message(age, now), age.confirmed_at or now)
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


def _not_confirmed(condition: JSON) -> JSON:
    """Returns the condition as Unknown, with a message that points to condition Current."""
    return {**condition, "status": "Unknown", "reason": "NotConfirmed", "message": "See condition Current."}


def _message(age: Freshness, now: datetime) -> str:
    """Returns the message of condition Current."""
    if age.state == CURRENT and age.confirmed_at is not None:
        return f"Confirmed at {timestamp(age.confirmed_at)}, {_span(now - age.confirmed_at)} before it was read."
    return f"{sentence_case(with_ago(age_sentence(age), age, now))}."


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
