"""Reads the time in an HTTP header, in the one form that a server may send (RFC 9110 5.6.7, IMF-fixdate).

`Sun, 06 Nov 1994 08:49:37 GMT`. `email.utils` reads that too, but its import takes an eighth of a bare interpreter; it
is used only for the two obsolete forms.
"""

from __future__ import annotations

from datetime import UTC, datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST = 64


def parse_http_date(text: str) -> datetime:
    """Returns the time in `text`. Raises ValueError if it is not a date."""
    if len(text) > _LONGEST:
        raise ValueError("too long for a date")
    try:
        return _parse_date(text)
    except (OverflowError, IndexError, TypeError) as error:  # numbers of any size, and gaps between them
        raise ValueError("not a date") from error


def _parse_date(text: str) -> datetime:
    """Returns the time in an HTTP date (RFC 9110, section 5.6.7), in UTC. Raises ValueError."""
    match text.split():
        case [_, day, month, year, time, "GMT"] if month in _MONTHS:
            hour, minute, second = time.split(":")
            # A leap second (60) is read as second 59.
            at = min(int(second), 59)
            return datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), at, tzinfo=UTC)
    from email.utils import parsedate_to_datetime

    parsed = parsedate_to_datetime(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
