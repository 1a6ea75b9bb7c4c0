"""A queue of keys for a controller: one entry a key, one worker a key, failures retried later and later.

The semantics are client-go's `util/workqueue`: a key added while it is queued is the same entry, a key added while it
is being worked on comes back when that is done, so no change is lost and no object has two workers.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from kubekit.kube.clock import Clock

Key = TypeVar("Key", bound=Hashable)


class QueueShutDown(Exception):
    """The queue is shut down and empty: a worker ends."""


class WorkQueue(Generic[Key]):
    """Keys to work on. Workers loop over `get()`, work, `done(key)`, then `forget(key)` or `add_rate_limited(key)`.

    `first_backoff_s` doubles with each failure of a key up to `longest_backoff_s`. client-go has 5 ms and 1000 s; five
    minutes of trouble would then be followed by five more of waiting, and our queues have a key or two.
    """

    def __init__(self, clock: Clock, *, first_backoff_s: float = 0.005, longest_backoff_s: float = 15.0) -> None:
        self._clock = clock
        self._first_backoff_s = first_backoff_s
        self._longest_backoff_s = longest_backoff_s
        self._queue: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._due: dict[Key, float] = {}
        self._timers: list[tuple[float, int, Key]] = []
        self._timer_count = 0
        self._changed = asyncio.Event()
        self._shut_down = False

    def add(self, key: Key) -> None:
        """Queue `key` unless it is queued; while it is worked on, queue it when that is done."""
        if self._shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._queue.append(key)
            self._changed.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Add `key` when `seconds` have passed; of several delays of one key the soonest counts."""
        if self._shut_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        self._timer_count += 1
        heapq.heappush(self._timers, (due, self._timer_count, key))
        self._changed.set()

    def add_rate_limited(self, key: Key) -> None:
        """Add `key` after its back-off, which doubles each time until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is capped: 2**1100 is no float.
        self.add_after(key, min(self._first_backoff_s * 2.0 ** min(failures, 64), self._longest_backoff_s))

    def failures(self, key: Key) -> int:
        """How often `key` was added with a back-off since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """Start the back-off of `key` from the beginning: it succeeded."""
        self._failures.pop(key, None)

    def done(self, key: Key) -> None:
        """Say that the work on `key`, from `get`, has ended."""
        self._processing.discard(key)
        if key in self._dirty:
            self._queue.append(key)
        self._changed.set()

    def __len__(self) -> int:
        return len(self._queue)

    def shut_down(self) -> None:
        """Take no more keys; what is queued is still handed out, what is delayed is dropped."""
        self._shut_down = True
        self._timers.clear()
        self._due.clear()
        self._changed.set()

    async def get(self) -> Key:
        """The next key, now being worked on; raises QueueShutDown when there will be none."""
        while True:
            self._move_due()
            if self._queue:
                key = self._queue.popleft()
                self._dirty.discard(key)
                self._processing.add(key)
                return key
            if self._shut_down:
                raise QueueShutDown
            self._changed.clear()
            await self._wait()

    def _move_due(self) -> None:
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, _, key = heapq.heappop(self._timers)
            # A later delay of a key that was then given a sooner one is void.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

    async def _wait(self) -> None:
        """Wait for a change, or for the first delay to pass; every waiting worker wakes and looks for itself."""
        if not self._timers:
            await self._changed.wait()
            return
        changed = asyncio.ensure_future(self._changed.wait())
        alarm = asyncio.ensure_future(self._clock.sleep(self._timers[0][0] - self._clock.monotonic()))
        try:
            await asyncio.wait((changed, alarm), return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            alarm.cancel()
