"""Parses the durations of policies and calendars, such as `15m`, `7d` or `1h30m`, and times that people typed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kubekit.error_types import InputError

PATTERN = r"^([0-9]{1,4}d)?([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?$"
_DURATION = re.compile(PATTERN)
_UNITS_S = (86400, 3600, 60, 1)


def parse(text: str, field: str) -> timedelta:
    """Returns the duration that `field` holds. Raises InputError if `text` is not one."""
    match = _DURATION.fullmatch(text) if text.isascii() else None
    if match is None or not text:
        raise InputError(f"{field} {text!r} must be a duration such as 15m, 6h, 1h30m or 7d")
    seconds = sum(int(part[:-1]) * unit_s for part, unit_s in zip(match.groups(), _UNITS_S, strict=True) if part)
    return timedelta(seconds=seconds)


def parse_moment(text: str, field: str = "--at") -> datetime:
    """Returns the time that was typed for `field`. Raises InputError unless it is a date and time with an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(f"{field} {text!r} must be a time with an offset, such as 2026-12-24T22:00:00Z")
    return moment.astimezone(UTC)
