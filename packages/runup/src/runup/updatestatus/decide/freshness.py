"""Decides how old an UpdateStatus is, from the Lease of the controller that keeps it. Pure.

An object that does not change is not written, so its own times say nothing. The controller notes on its Lease, with
each renewal, when it last confirmed that the object is what the cluster is; that costs no write of its own. A
controller that is gone, stopped or cut off renews nothing; one that renews but cannot write confirms nothing. Rule:
docs/decisions/0077.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from runup.process.lease_age import LEAST_PATIENCE, LeaseRecord

NAMESPACE = "openshift-update-status-controller"
LEASE = "update-status-controller"
CONFIRMED_AT = "update.openshift.io/confirmed-at"
"""The Lease's annotation with the time of the last confirmation, by the controller's clock."""

# A confirmation follows at least every 30 s and is noted with the next renewal (every 26 s, on one node every 60 s).
# A controller that works has confirmed the report at most half a minute before it renews its Lease.
CONFIRMED_WITHIN = timedelta(seconds=60)

CURRENT, OLD, UNKNOWN = "Current", "Old", "Unknown"


class Freshness(msgspec.Struct, frozen=True):
    """The age of a report: `state` is CURRENT, OLD or UNKNOWN; `why` is a clause, empty for CURRENT.

    `confirmed_at` is by the API server's clock where the Lease tells it; None if it is not known.
    """

    state: str
    confirmed_at: datetime | None = None
    why: str = ""


def confirmation(confirmed_at: datetime | None) -> dict[str, str]:
    """Returns the Lease's annotations for a report that was last confirmed at `confirmed_at`."""
    return (
        {} if confirmed_at is None else {CONFIRMED_AT: confirmed_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    )


def freshness(lease: LeaseRecord, now: datetime) -> Freshness:
    """Returns how old the report is at `now`, which must be the API server's time."""
    renewed = lease.spec.renew_time
    if renewed is None:
        return Freshness(UNKNOWN, None, f"Lease {NAMESPACE}/{LEASE} says no renewTime")
    confirmed = _confirmed_at(lease) or renewed
    # The server's clock and the controller's may differ; what lies between two times of one clock does not.
    renewed_at = lease.renewed_at or renewed
    confirmed_at = renewed_at - max(renewed - confirmed, timedelta(0))
    patience = lease.patience
    if renewed_at - now > patience:
        why = f"Lease {NAMESPACE}/{LEASE} was renewed at {_time_text(renewed_at)}, which is still to come"
        return Freshness(UNKNOWN, None, why)
    if now - confirmed_at <= patience:
        return Freshness(CURRENT, confirmed_at)
    if not lease.spec.holder_identity:
        why = f"its Lease {NAMESPACE}/{LEASE} was given back at {_time_text(renewed_at)}, and nobody holds it"
    elif renewed - confirmed <= CONFIRMED_WITHIN:
        why = f"its Lease {NAMESPACE}/{LEASE} was last renewed at {_time_text(renewed_at)}"
    elif lease.spec.acquire_time and renewed - lease.spec.acquire_time <= LEAST_PATIENCE:
        why = f"the controller that took its Lease {NAMESPACE}/{LEASE} after that has not confirmed it yet"
    else:
        why = f"it renews its Lease {NAMESPACE}/{LEASE}, but has not confirmed the report since"
    return Freshness(OLD, confirmed_at, why)


def no_lease() -> Freshness:
    """Returns the answer where the Lease does not exist: nobody is known to keep the report."""
    return Freshness(OLD, None, f"there is no Lease {NAMESPACE}/{LEASE}, so no controller is known to keep it")


def _confirmed_at(lease: LeaseRecord) -> datetime | None:
    """Returns when the leader last confirmed the report, None if the annotation does not say it."""
    text = lease.metadata.annotations.get(CONFIRMED_AT, "")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _time_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
