"""The clock that is passed to code that decides or waits, so that it does not read the system clock itself.

Functions that decide take `now`, code that waits takes a `Clock`. So a test moves the time itself and never sleeps, and
a controller that compares times cannot mix two clocks.
"""

from __future__ import annotations

import heapq
import math
import os
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

T = TypeVar("T")

# Turns of the event loop that a woken task gets before the next one is woken. A turn is one step of a task, so this
# covers chains of awaits that need no input from outside (queues, events, locks).
_TURNS = 20


class Clock(ABC):
    """The current time, and a way to wait. Durations are seconds."""

    @abstractmethod
    def now(self) -> datetime:
        """Returns the wall-clock time: aware, UTC, whole seconds, as Kubernetes writes times."""

    @abstractmethod
    def monotonic(self) -> float:
        """Returns seconds from an arbitrary start that never return. For measuring durations and deadlines."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds` (not at all if zero or less) while other tasks run."""

    @abstractmethod
    def pause(self, seconds: float) -> None:
        """Waits for `seconds`, blocking the thread: for code without an event loop."""


CLOCK_OFFSET_VARIABLE = "RUNUP_CLOCK_OFFSET_S"
"""Environment variable: the seconds by which a cluster's time is ahead of the machine's; negative if it is behind.

A cluster that was made from a dump has the dump's time, and every program that is started in it gets this variable.
"""


def machine_now() -> datetime:
    """Returns the machine's own time, without the offset: for what other programs check, such as certificates."""
    return datetime.now(UTC).replace(microsecond=0)


class SystemClock(Clock):
    """The machine's clock, shifted by the environment variable `CLOCK_OFFSET_VARIABLE`."""

    def __init__(self) -> None:
        self._offset = float(os.environ.get(CLOCK_OFFSET_VARIABLE) or 0)
        # A server asks several times for each request: the time of a second is made once.
        self._last = 0, datetime.fromtimestamp(0, UTC)

    def now(self) -> datetime:
        second = math.floor(time.time() + self._offset)
        last, moment = self._last
        if second != last:
            moment = datetime.fromtimestamp(second, UTC)
            self._last = second, moment
        return moment

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(max(seconds, 0))

    def pause(self, seconds: float) -> None:
        time.sleep(max(seconds, 0))


class MovableClock(SystemClock):
    """The machine's clock, which `advance` moves forward; sleepers that are due by then wake at once."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0
        self._sleepers: set[asyncio.Event] = set()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=math.floor(self._ahead_s))

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead_s

    def advance(self, seconds: float) -> None:
        """Moves the time forward. Raises ValueError for a negative number, since time never returns."""
        if not seconds >= 0:
            raise ValueError(f"the clock moves forward only, not by {seconds} seconds")
        self._ahead_s += seconds
        for moved in self._sleepers:
            moved.set()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        deadline, moved = self.monotonic() + max(seconds, 0), asyncio.Event()
        self._sleepers.add(moved)
        try:
            while (left := deadline - self.monotonic()) > 0:
                moved.clear()
                try:
                    await asyncio.wait_for(moved.wait(), left)
                except TimeoutError:
                    continue
            await asyncio.sleep(0)
        finally:
            self._sleepers.discard(moved)


class ShiftedClock(Clock):
    """Another clock whose wall-clock time is moved by a fixed `offset`; durations and waits are the other clock's."""

    def __init__(self, clock: Clock, offset: timedelta) -> None:
        self._clock = clock
        self._offset = offset

    def now(self) -> datetime:
        return self._clock.now() + self._offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def pause(self, seconds: float) -> None:
        self._clock.pause(seconds)


class SteadyClock(ShiftedClock):
    """Another clock whose time counts on from its creation, although the machine's clock is set meanwhile."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, timedelta())
        self._start = clock.now() - timedelta(seconds=clock.monotonic())

    def now(self) -> datetime:
        return (self._start + timedelta(seconds=self.monotonic())).replace(microsecond=0)


class ManualClock(Clock):
    """A clock that only a test moves.

    `await clock.advance(s)` wakes the sleepers that are due, one by one in the order of their times (of their arrival
    if these are equal). Each wakes at exactly its time and runs on before the next one is woken; one that sleeps again
    within `s` is woken again.
    """

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = now
        self._elapsed = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._watchers: list[asyncio.Event] = []

    def now(self) -> datetime:
        return (self._start + timedelta(seconds=self._elapsed)).replace(microsecond=0)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        import asyncio

        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        for watcher in self._watchers:
            watcher.set()
        await woken

    def pause(self, seconds: float) -> None:
        self.jump(max(seconds, 0))

    def jump(self, seconds: float) -> None:
        """Moves the time at once, and marks all due sleepers as woken; for code without an event loop."""
        target = self._elapsed + seconds
        while (due := self._next_sleeper(target)) is not None:
            due[1].set_result(None)
        self._elapsed = target

    async def advance(self, seconds: float) -> None:
        """Moves the time by `seconds`, waking sleepers in order and letting each run (see the class)."""
        target = self._elapsed + seconds
        await self._let_tasks_run()
        while (due := self._next_sleeper(target)) is not None:
            self._elapsed = max(self._elapsed, due[0])
            due[1].set_result(None)
            await self._let_tasks_run()
        self._elapsed = target
        await self._let_tasks_run()

    @property
    def sleeping(self) -> tuple[float, ...]:
        """The seconds until each sleeper is due, soonest first."""
        return tuple(sorted(at - self._elapsed for at, _, woken in self._sleepers if not woken.done()))

    async def until_sleeping(self, sleepers: int = 1, *, deadline_s: float = 90.0) -> None:
        """Waits until that many tasks sleep. Raises TimeoutError after `deadline_s` real seconds."""
        import asyncio

        changed = asyncio.Event()
        self._watchers.append(changed)
        try:
            async with asyncio.timeout(deadline_s):
                while len(self.sleeping) < sleepers:
                    changed.clear()
                    await changed.wait()
        finally:
            self._watchers.remove(changed)

    def _next_sleeper(self, until: float) -> tuple[float, asyncio.Future[None]] | None:
        """Returns the next sleeper due at `until` seconds at the latest, without those that were cancelled."""
        while self._sleepers and self._sleepers[0][0] <= until:
            at, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                return at, woken
        return None

    async def _let_tasks_run(self) -> None:
        import asyncio

        for _ in range(_TURNS):
            await asyncio.sleep(0)


async def run_within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`. Raises TimeoutError after `seconds` of `clock`, and cancels `work` then."""
    import asyncio

    task = asyncio.ensure_future(work)
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        raise TimeoutError(f"not done within {seconds:g} s")
    finally:
        for awaitable in (task, alarm):
            awaitable.cancel()
        await asyncio.gather(task, alarm, return_exceptions=True)
