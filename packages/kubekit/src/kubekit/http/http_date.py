"""Reads the time in an HTTP header such as `Date` or `Retry-After`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import parsedate_tz

_LONGEST = 64


def parse_http_date(text: str) -> datetime:
    """Returns the time in `text`, in any of the three forms of RFC 9110. Raises ValueError if it is not a date."""
    if len(text) > _LONGEST:
        raise ValueError("too long for a date")
    try:
        parts = parsedate_tz(text)
        if parts is None:
            raise ValueError("not a date")
        year, month, day, hour, minute, second = parts[:6]
        zone = timezone(timedelta(seconds=parts[9] or 0))
        # A leap second (60) is read as second 59.
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
    except (OverflowError, IndexError, TypeError) as error:  # numbers of any size, and gaps between them
        raise ValueError("not a date") from error
