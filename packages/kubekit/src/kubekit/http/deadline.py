"""A time limit for a whole request.

A socket's own time limit is for one piece: a server that sends a byte a second never reaches it. So every wait gets the
rest of the request's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec


class Deadline(msgspec.Struct, frozen=True):
    """The end of a request, by `monotonic`; no single wait is longer than `piece_s` seconds."""

    at: float
    piece_s: float
    monotonic: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, piece_s: float, monotonic: Callable[[], float] = time.monotonic) -> Deadline:
        """Returns a deadline `seconds` from now."""
        return cls(monotonic() + seconds, piece_s, monotonic)

    def wait_s(self) -> float:
        """Returns the longest time for the next wait, in seconds. Raises TimeoutError if there is none left."""
        remaining_s = self.at - self.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the request's time is over")
        return min(remaining_s, self.piece_s)
