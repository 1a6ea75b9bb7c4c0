"""A queue of keys for a controller: one entry per key, one worker per key, retries with back-off.

The semantics are those of client-go's `util/workqueue`: a key added while it is queued is the same entry, and a key
added while it is being processed is queued again when that is done. So no change is lost and no object has two workers.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from kubekit.kube.clock import Clock

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """A queue of keys. Workers loop over `get()`, work, `done(key)`, then `forget(key)` or `add_rate_limited(key)`.

    `first_backoff_s` doubles with each failure of a key up to `longest_backoff_s`. client-go has 5 ms and 1000 s: five
    minutes of failures would then be followed by five more of waiting, and these queues have only one or two keys.
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

    def add(self, key: Key) -> None:
        """Queues `key` unless it is queued; while it is being processed, it is queued when that is done."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._queue.append(key)
            self._changed.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Queues `key` after `seconds`; of several delays for one key the shortest counts."""
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
        """Queues `key` after its back-off, which doubles each time until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is capped, because 2**1100 exceeds a float.
        self.add_after(key, min(self._first_backoff_s * 2.0 ** min(failures, 64), self._longest_backoff_s))

    def failures(self, key: Key) -> int:
        """Returns how often `key` was added with a back-off since it was last forgotten."""
        return self._failures.get(key, 0)

    @property
    def due(self) -> dict[Key, float]:
        """The delayed keys, each with the time of the monotonic clock at which it is queued."""
        return dict(self._due)

    def forget(self, key: Key) -> None:
        """Resets the back-off of `key` after a success."""
        self._failures.pop(key, None)

    def done(self, key: Key) -> None:
        """Marks the work on `key`, from `get`, as ended."""
        self._processing.discard(key)
        if key in self._dirty:
            self._queue.append(key)
        self._changed.set()

    def __len__(self) -> int:
        return len(self._queue)

    async def get(self) -> Key:
        """Returns the next key and marks it as being processed."""
        while True:
            now = self._clock.monotonic()
            while self._timers and self._timers[0][0] <= now:
                due, _, key = heapq.heappop(self._timers)
                # A later delay is void if the key got a shorter one since.
                if self._due.get(key) == due:
                    del self._due[key]
                    self.add(key)
            if self._queue:
                key = self._queue.popleft()
                self._dirty.discard(key)
                self._processing.add(key)
                return key
            self._changed.clear()
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        """Waits for a change, or for the first delay to pass; every waiting worker wakes and checks for itself."""
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
