"""Limits how often something is done: a few times at once, then once in an interval."""

from __future__ import annotations


class Allowance:
    """A token bucket: at most `burst` tokens, refilled with one every `interval_s` seconds."""

    def __init__(self, burst: int, interval_s: float) -> None:
        self._burst = burst
        self._interval_s = interval_s
        # The time at which all turns are back, in seconds of the caller's monotonic clock.
        self._full_at = float("-inf")

    def take(self, now: float) -> bool:
        """Takes a turn at `now`; returns False if there is none."""
        full_at = max(self._full_at, now) + self._interval_s
        if full_at - now > self._burst * self._interval_s:
            return False
        self._full_at = full_at
        return True
