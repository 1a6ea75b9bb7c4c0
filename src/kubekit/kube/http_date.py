"""The time in an HTTP header, in the one form that a server may send (RFC 9110 5.6.7, IMF-fixdate).

`Sun, 06 Nov 1994 08:49:37 GMT`. `email.utils` reads that too, and its import takes an eighth of a bare interpreter;
it reads the two forms of before 1995.
"""

from __future__ import annotations

from datetime import UTC, datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST = 64


def read(text: str) -> datetime:
    """The time that `text` says; raises ValueError for what is none."""
    if len(text) > _LONGEST:
        raise ValueError("too long for a date")
    match text.split():
        case [_, day, month, year, time, "GMT"] if month in _MONTHS:
            hour, minute, second = time.split(":")
            # A leap second is the end of the one before.
            at = min(int(second), 59)
            return datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), at, tzinfo=UTC)
    from email.utils import parsedate_to_datetime

    found = parsedate_to_datetime(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
