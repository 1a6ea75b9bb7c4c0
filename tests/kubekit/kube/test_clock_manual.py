"""The clock that tests move."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kubekit.kube.clock import ManualClock, MovableClock, SteadyClock, SystemClock, run_within


async def test_sleepers_wake_in_order_each_at_its_time() -> None:
    """Whoever falls asleep again within the time is woken again, in between the others."""
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def every(name: str, seconds: float) -> None:
        while True:
            await clock.sleep(seconds)
            woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(every("two", 2)), asyncio.create_task(every("three", 3))]
    await clock.advance(6)
    assert woken == [("two", 2), ("three", 3), ("two", 4), ("three", 6), ("two", 6)]
    assert clock.monotonic() == 6
    for task in tasks:
        task.cancel()


async def test_time_stands_still_until_moved() -> None:
    """A sleeper does not wake before its time, and `now` follows in whole seconds."""
    clock = ManualClock()
    start = clock.now()
    task = asyncio.create_task(clock.sleep(1.5))
    await clock.advance(1.4)
    assert not task.done()
    assert clock.sleeping == pytest.approx((0.1,))
    await clock.advance(0.1)
    assert task.done()
    assert (clock.now() - start).total_seconds() == 1


async def test_others_go_on_before_and_after_time_is_moved() -> None:
    """Also where it is moved by nothing, and where nobody sleeps."""
    clock = ManualClock()
    seen: list[float] = []

    async def work(steps: int) -> None:
        for _ in range(steps):
            seen.append(clock.monotonic())
            await asyncio.sleep(0)

    task = asyncio.create_task(work(30))
    await clock.advance(3)
    assert task.done()
    assert (seen[0], seen[-1]) == (0, 3)


async def test_those_who_sleep_are_told_soonest_first() -> None:
    """Those of one time wake as they came; a time that is over is none."""
    clock = ManualClock()
    woken: list[str] = []

    async def one(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = [asyncio.create_task(one(name, seconds)) for name, seconds in (("b", 2), ("a", 1), ("c", 2), ("d", -1))]
    await clock.advance(0)
    assert (woken, clock.sleeping) == (["d"], (1, 2, 2))
    clock.jump(1.5)
    assert clock.sleeping == (0.5, 0.5)
    assert clock.monotonic() == 1.5
    clock.jump(0.5)
    await asyncio.gather(*tasks)
    assert woken == ["d", "a", "b", "c"]


def test_a_pause_just_passes() -> None:
    """Nobody waits for it, and time never returns."""
    clock = ManualClock()
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    clock.pause(2.5)
    clock.pause(-5)
    assert clock.monotonic() == 2.5
    assert clock.now() == datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)


async def test_time_that_jumped_does_not_go_back() -> None:
    """Who should have woken in between wakes late."""
    clock = ManualClock()
    seen: list[float] = []

    async def sleeper() -> None:
        await clock.sleep(1)
        clock.jump(5)
        seen.append(clock.monotonic())

    async def other() -> None:
        await clock.sleep(2)
        seen.append(clock.monotonic())

    tasks = [asyncio.create_task(sleeper()), asyncio.create_task(other())]
    await clock.advance(3)
    await asyncio.gather(*tasks)
    assert seen == [6, 6]


async def test_so_many_sleepers_are_waited_for() -> None:
    """Also where they come one after the other; not for ever."""
    clock = ManualClock()
    with pytest.raises(TimeoutError):
        await clock.until_sleeping(deadline_s=0.01)
    tasks = [asyncio.create_task(clock.sleep(1))]
    waiting = asyncio.create_task(clock.until_sleeping(2, deadline_s=90))
    await clock.advance(0)
    assert not waiting.done()
    tasks.append(asyncio.create_task(clock.sleep(2)))
    await waiting
    await clock.until_sleeping(2, deadline_s=90)
    for task in tasks:
        task.cancel()


async def test_the_real_clock_passes_over_what_is_over() -> None:
    """A time before now is none to wait for."""
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1000)
    clock.pause(-1000)
    assert before <= clock.monotonic() < before + 500


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    """Cancelling a sleep leaves nothing behind."""
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleeping == ()
    await clock.advance(10)


async def test_within_gives_the_result_or_cancels() -> None:
    """Work that is done in time gives its result; work that is not is cancelled, and nothing continues behind."""
    clock = ManualClock()

    async def answer() -> int:
        return 7

    assert await run_within(clock, 5, answer()) == 7
    cancelled = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(run_within(clock, 5, forever()))
    await clock.advance(5)
    with pytest.raises(TimeoutError, match=r"^not done within 5 s$"):
        await waiting
    assert cancelled.is_set()
    assert clock.sleeping == ()


async def test_within_waits_until_what_it_cancelled_has_ended() -> None:
    """Work may have something to clear away; what goes wrong with that does not hide that time was up."""
    clock = ManualClock()

    async def untidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(1)
            raise ValueError("nothing to clear away")

    waiting = asyncio.create_task(run_within(clock, 5, untidy()))
    await clock.advance(5)
    assert not waiting.done()
    await clock.advance(1)
    with pytest.raises(TimeoutError, match="not done within 5 s"):
        await waiting


def test_the_real_clock_speaks_as_kubernetes_does() -> None:
    """Aware, UTC, whole seconds."""
    now = SystemClock().now()
    assert now.isoformat().endswith("+00:00")
    assert now.microsecond == 0


class SetClock(ManualClock):
    """A clock whose time a test sets."""

    off = timedelta()

    def now(self) -> datetime:
        return super().now() + self.off


async def test_a_steady_clock_counts_on() -> None:
    """A clock that is set after its creation changes nothing but the clock itself."""
    machine = SetClock()
    await machine.advance(0.5)
    start, steady = machine.now(), SteadyClock(machine)
    machine.off = timedelta(days=-1)
    await machine.advance(90)
    assert machine.now() == start - timedelta(days=1) + timedelta(seconds=90)
    assert steady.now() == start + timedelta(seconds=90)
    assert steady.monotonic() == machine.monotonic()


async def test_a_moved_clock_wakes_the_sleepers_that_are_due() -> None:
    """Others continue to sleep, and the time never returns."""
    clock = MovableClock()
    hour, day = asyncio.create_task(clock.sleep(3600)), asyncio.create_task(clock.sleep(86_400))
    await asyncio.sleep(0)
    before = clock.now()
    clock.advance(3700)
    await asyncio.wait_for(hour, 60)
    assert not day.done()
    assert clock.now() - before >= timedelta(seconds=3700)
    with pytest.raises(ValueError, match="the clock moves forward only, not by -1 seconds"):
        clock.advance(-1)
    clock.advance(86_400)
    await asyncio.wait_for(day, 60)
