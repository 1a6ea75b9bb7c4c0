"""The time of the server that answers, by the `Date` header of its answers.

It differs from this machine's where this machine's clock is wrong, and where a cluster lives in the time of a dump.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from kubekit.http import http_date
from kubekit.kube.clock import Clock

# A smaller difference comes from the network and the header's whole seconds.
_SAME_TIME = timedelta(seconds=2)


class ServerTime:
    """By how much a server's time is ahead of `clock` (negative: behind); nothing until an answer says so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        """Returns the server's time according to the last answer that had a date."""
        return self._clock.now() + self.ahead

    def note_date(self, date: str | None) -> None:
        """Compares the clocks by the `Date` header of an answer that has just come; one that is none is ignored."""
        if date is None:
            return
        with suppress(ValueError, OverflowError):
            ahead = http_date.parse_http_date(date) - self._clock.now()
            self.ahead = ahead if abs(ahead) > _SAME_TIME else timedelta(0)
