"""The observed state that gates are evaluated on: a cluster in which every gate is open, and changes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition
from runup.api.update_policy_v1alpha1 import UpdateCalendar
from runup.preflight.decide.findings import Findings, Risk
from runup.rehearse.decide.update_forecast import Forecast, Range
from runup.rollout.decide import calendar
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.gates.observed import Approval, Approvals, Health, Holds, Observed, Offer, Wanted

# A Tuesday evening in the window of `NIGHTS`, 23:00 in Berlin.
NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
DIGEST = "sha256:" + "5" * 64
IMAGE = f"example.com/release@{DIGEST}"
OTHER_IMAGE = "example.com/release@sha256:" + "6" * 64
DONE = tuple(
    Condition(type=type_, status=status)
    for type_, status in (("PreflightCompleted", "True"), ("PreflightFailed", "False"), ("PreflightRunning", "True"))
)


def parsed_calendar(*windows: dict[str, str], zone: str = "Europe/Berlin", **spec: Any) -> Calendar:
    """A calendar with these windows."""
    document = {"metadata": {"name": "nights"}, "spec": {"timeZone": zone, "windows": list(windows), **spec}}
    return calendar.read(codec.convert(UpdateCalendar, document))


NIGHTS = parsed_calendar({"opens": "0 22 * * TUE,THU", "for": "6h"})


def risk(name: str = "A", applies: str = "True", severity: str = "warning", **changes: Any) -> Risk:
    """A risk of the preflight."""
    fields = {"accepted": False, "message": "m", "url": "", "severity": severity, "from_preflight": True}
    return Risk(**{"name": name, "applies": applies, **fields, **changes})


def findings(*risks: Risk, **changes: Any) -> Findings:
    """The findings of a complete preflight, a minute old."""
    fields: dict[str, Any] = {
        "source": "5.0.3",
        "target": "5.1.0",
        "image": IMAGE,
        "conditions": DONE,
        "risks": risks,
        "observed": NOW - timedelta(minutes=1),
        "ran": True,
    }
    return Findings(**fields | changes)


def approval(by: str = "jane", **changes: Any) -> Approval:
    """An approval of the release, an hour old."""
    fields: dict[str, Any] = {"gate": "cab", "approved_by": by, "created": NOW - timedelta(hours=1)}
    return Approval(**fields | {"image_digests": (DIGEST,)} | changes)


def observed(**changes: Any) -> Observed:
    """A cluster in which every gate is open at `NOW`, with changes."""
    fields: dict[str, Any] = {
        "wanted": Wanted(version="5.1.0", image=IMAGE, source="5.0.3"),
        "offer": Offer(image=IMAGE),
        "findings": findings(),
        "report_image": IMAGE,
        "health": Health(healthy_since=NOW - timedelta(hours=1)),
        "alerts": (),
        "forecast": Forecast(total=Range(3600, 7200), parts=()),
        "approvals": Approvals(requested_by="system:serviceaccount:runup-update:update-controller"),
        "holds": Holds(),
        "calendar_names": ("nights",),
        "calendars": (NIGHTS,),
    }
    return Observed(**fields | changes)
