"""Decides from a controller's Lease whether the objects of the controller are still maintained. Pure.

A controller that is gone, suspended or cut off renews nothing, while what it wrote says the same for ever. Times are
those that the API server noted: no clock of a controller counts (docs/decisions/0077).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kubekit.api.meta_v1 import Wire

# Shorter leases than this do not make what was written old sooner.
LEAST_PATIENCE = timedelta(seconds=120)
# A controller that was ended in order is usually replaced: its successor needs this long to be started and to list.
RELEASED_PATIENCE = timedelta(seconds=60)


class _ManagedFields(Wire, frozen=True):
    time: datetime | None = None
    fields_v1: dict[str, Any] = {}


class _Metadata(Wire, frozen=True):
    annotations: dict[str, str] = {}
    managed_fields: tuple[_ManagedFields, ...] = ()


class _Spec(Wire, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None


class LeaseRecord(Wire, frozen=True):
    """The part of a Lease that shows its age; unlike `Lease` it has the server's own times, in `managedFields`."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()

    @property
    def renewed_at(self) -> datetime | None:
        """The time when the Lease was renewed or released, by the server's clock if recorded; None if unknown."""
        times = [
            entry.time
            for entry in self.metadata.managed_fields
            if entry.time is not None and "f:renewTime" in (entry.fields_v1.get("f:spec") or {})
        ]
        return (max(times, default=None) or self.spec.renew_time) if self.spec.renew_time else None

    @property
    def patience(self) -> timedelta:
        """The time after its renewal for which its holder, or the next one, may still be expected."""
        promised = timedelta(seconds=self.spec.lease_duration_seconds)
        return max(promised, LEAST_PATIENCE) if self.spec.holder_identity else RELEASED_PATIENCE


def lapse(lease: LeaseRecord, now: datetime, place: str) -> str:
    """Returns a clause about the time since the Lease at `place` has expired, or an empty string.

    `now` must be the API server's time.
    """
    renewed_at = lease.renewed_at
    if renewed_at is None or now - renewed_at <= lease.patience:
        return ""
    moment = f"{renewed_at:%Y-%m-%dT%H:%M:%SZ}"
    if lease.spec.holder_identity:
        return f"its Lease {place} was last renewed at {moment}"
    return f"its Lease {place} was given back at {moment}, and nobody holds it"
