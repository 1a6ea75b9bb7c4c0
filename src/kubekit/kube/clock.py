"""The clock that is passed around, and the only reading of the real one.

Whoever decides takes `now`; whoever waits takes a `Clock`. So a test moves time itself and never sleeps, and a
controller that compares times cannot mix two clocks.
"""

from __future__ import annotations

import heapq
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
    """What time it is, and how to wait. Durations are seconds."""

    @abstractmethod
    def now(self) -> datetime:
        """The wall clock: aware, UTC, whole seconds, as Kubernetes writes times."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back. For measuring durations and deadlines."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let `seconds` pass (none when it is zero or less), other tasks going on."""

    @abstractmethod
    def pause(self, seconds: float) -> None:
        """Let `seconds` pass, blocking the thread: for code without an event loop."""


OFFSET = "RUNUP_CLOCK_OFFSET_S"
"""Environment variable: how many seconds a cluster's time is ahead of the machine's; negative where it lies behind.

A cluster out of a dump lives in the dump's time: whoever is started in it is told so, as by a machine with that clock.
"""


def machine_now() -> datetime:
    """The machine's own time, whatever the offset says: for what other programs check, such as certificates."""
    return datetime.now(UTC).replace(microsecond=0)


class SystemClock(Clock):
    """The machine's clock, moved by what the environment says (`OFFSET`)."""

    def __init__(self) -> None:
        self._offset = timedelta(seconds=float(os.environ.get(OFFSET) or 0))

    def now(self) -> datetime:
        """See `Clock.now`."""
        return (datetime.now(UTC) + self._offset).replace(microsecond=0)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        import asyncio

        await asyncio.sleep(max(seconds, 0))

    def pause(self, seconds: float) -> None:
        """See `Clock.pause`."""
        time.sleep(max(seconds, 0))


class ManualClock(Clock):
    """A clock that stands still until a test moves it.

    `await clock.advance(s)` wakes the sleepers that are due, one by one in the order of their times (of their arrival
    where these are equal), each at exactly its time, and lets it run on before the next; one that falls asleep again
    within `s` is woken again.
    """

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = now
        self._elapsed = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._watchers: list[asyncio.Event] = []

    def now(self) -> datetime:
        """See `Clock.now`."""
        return (self._start + timedelta(seconds=self._elapsed)).replace(microsecond=0)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`; returns when `advance` or `jump` passes the time."""
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
        """See `Clock.pause`; here time just moves."""
        self.jump(max(seconds, 0))

    def jump(self, seconds: float) -> None:
        """Move time at once, and mark everyone who is due as woken; for code without an event loop."""
        target = self._elapsed + seconds
        while (due := self._pop(target)) is not None:
            due[1].set_result(None)
        self._elapsed = target

    async def advance(self, seconds: float) -> None:
        """Move time by `seconds`, waking sleepers in order and letting each run (see the class)."""
        target = self._elapsed + seconds
        await self._settle()
        while (due := self._pop(target)) is not None:
            self._elapsed = max(self._elapsed, due[0])
            due[1].set_result(None)
            await self._settle()
        self._elapsed = target
        await self._settle()

    @property
    def sleeping(self) -> tuple[float, ...]:
        """In how many seconds each sleeper is due, soonest first."""
        return tuple(sorted(at - self._elapsed for at, _, woken in self._sleepers if not woken.done()))

    async def until_sleeping(self, sleepers: int = 1, *, deadline_s: float = 10.0) -> None:
        """Wait, in real time, until that many sleep: what a test awaits when sockets are involved.

        Raises TimeoutError after `deadline_s` real seconds.
        """
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

    def _pop(self, until: float) -> tuple[float, asyncio.Future[None]] | None:
        while self._sleepers and self._sleepers[0][0] <= until:
            at, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                return at, woken
        return None

    async def _settle(self) -> None:
        import asyncio

        for _ in range(_TURNS):
            await asyncio.sleep(0)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or TimeoutError once `seconds` of `clock` have passed (`work` is cancelled then)."""
    import asyncio

    task = asyncio.ensure_future(work)
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        raise TimeoutError(f"not done within {seconds:g} s")
    finally:
        for each in (task, alarm):
            each.cancel()
        await asyncio.gather(task, alarm, return_exceptions=True)
