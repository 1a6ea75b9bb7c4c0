"""The work queue behaves as client-go's."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.kube.clock import ManualClock
from kubekit.kube.workqueue import WorkQueue


async def test_a_key_is_queued_once() -> None:
    """However often a key is added, there is one entry; others keep their order."""
    queue: WorkQueue[str] = WorkQueue(ManualClock())
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_has_one_worker() -> None:
    """A key added while it is worked on comes back when that is done, not before."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("a")
    await queue.get()
    queue.add("a")
    again = asyncio.create_task(queue.get())
    await clock.advance(1)
    assert not again.done()
    queue.done("a")
    assert await again == "a"


async def test_a_delayed_key_comes_at_its_time() -> None:
    """The soonest of several delays of a key counts, and counts once."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    getting = asyncio.create_task(queue.get())
    await clock.advance(4.9)
    assert not getting.done()
    await clock.advance(0.1)
    assert await getting == "a"
    queue.done("a")
    again = asyncio.create_task(queue.get())
    await clock.advance(60)
    assert not again.done()
    again.cancel()


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_delay_that_is_over_is_none(seconds: float) -> None:
    """The key is there at once, and once."""
    queue: WorkQueue[str] = WorkQueue(ManualClock())
    queue.add_after("a", seconds)
    assert len(queue) == 1
    assert await queue.get() == "a"


async def test_a_sooner_delay_wakes_a_worker_that_waits_for_a_later_one() -> None:
    """A worker that sleeps until a far delay does not miss a nearer one, nor a key added at once."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("late", 100)
    getting = asyncio.create_task(queue.get())
    await clock.advance(0)
    queue.add_after("soon", 1)
    await clock.advance(1)
    assert await getting == "soon"
    getting = asyncio.create_task(queue.get())
    await clock.advance(0)
    queue.add("now")
    await clock.advance(0)
    assert await getting == "now"


async def test_back_off_doubles_a_key_and_is_forgotten() -> None:
    """5 ms, 10 ms, ... up to the longest, each key by itself; success starts over."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock, longest_backoff_s=0.02)
    waits = []
    for _ in range(5):
        queue.add_rate_limited("a")
        before = clock.monotonic()
        getting = asyncio.create_task(queue.get())
        await clock.advance(0)
        (wait,) = clock.sleeping
        await clock.advance(wait)
        assert await getting == "a"
        queue.done("a")
        waits.append(clock.monotonic() - before)
    assert waits == pytest.approx([0.005, 0.01, 0.02, 0.02, 0.02])
    assert (queue.failures("a"), queue.failures("b")) == (5, 0)
    queue.forget("a")
    assert queue.failures("a") == 0


async def test_back_off_goes_up_to_a_quarter_of_a_minute() -> None:
    """However often it failed; each key by itself."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    waits = []
    for failed in range(1100):
        queue.add_rate_limited("a")
        getting = asyncio.create_task(queue.get())
        await clock.until_sleeping()
        waits.append(clock.sleeping[0])
        clock.jump(15)
        assert await getting == "a"
        queue.done("a")
        assert queue.failures("a") == failed + 1
    assert waits[:3] == pytest.approx([0.005, 0.01, 0.02])
    assert waits[11:13] == pytest.approx([10.24, 15])
    assert waits[-1] == pytest.approx(15)
    queue.add_rate_limited("b")
    assert (queue.failures("b"), queue.failures("c")) == (1, 0)


async def test_a_first_back_off_may_be_another() -> None:
    """And doubles from there."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock, first_backoff_s=3, longest_backoff_s=7)
    for wait in (3, 6, 7):
        queue.add_rate_limited("a")
        getting = asyncio.create_task(queue.get())
        await clock.advance(wait - 0.5)
        assert not getting.done()
        await clock.advance(0.5)
        assert await getting == "a"
        queue.done("a")


async def test_a_later_delay_that_was_overtaken_is_void() -> None:
    """The key comes once, at the sooner time; added again it has a separate time."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("b", 3)
    clock.jump(2)
    assert await queue.get() == "a"
    queue.done("a")
    queue.add_after("a", 10)
    clock.jump(3)
    assert await queue.get() == "b"
    getting = asyncio.create_task(queue.get())
    await clock.advance(6.9)
    assert not getting.done()
    await clock.advance(0.1)
    assert await getting == "a"


async def test_delays_of_one_time_come_in_their_order() -> None:
    """Whatever their keys are, which need not compare."""
    clock = ManualClock()
    queue: WorkQueue[object] = WorkQueue(clock)
    keys = [object() for _ in range(3)]
    for key in keys:
        queue.add_after(key, 1)
    clock.jump(1)
    assert [await queue.get() for _ in keys] == keys


async def test_done_is_only_the_end_of_work() -> None:
    """A key that nobody added meanwhile does not come back, and one that waits is not there twice."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("a")
    assert len(queue) == 1
    await queue.get()
    queue.done("a")
    assert len(queue) == 0
    queue.add("a")
    assert len(queue) == 1


async def test_every_worker_gets_work() -> None:
    """Two waiting workers, two keys: neither waits for the other."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await clock.advance(0)
    queue.add("a")
    queue.add("b")
    assert sorted(await asyncio.gather(*workers)) == ["a", "b"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["add", "get", "done", "later"]), st.sampled_from("abc")), max_size=40))
async def test_no_change_is_lost_in_any_order(steps: list[tuple[str, str]]) -> None:
    """Whatever happens in whatever order, a key added is handed out afterwards, and never to two workers at once."""
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    working: set[str] = set()
    owed: set[str] = set()
    for step, key in steps:
        if step == "add" or step == "later":
            queue.add(key) if step == "add" else queue.add_after(key, 1)
            owed.add(key)
        elif step == "done" and key in working:
            working.discard(key)
            queue.done(key)
        elif step == "get" and len(queue):
            got = await queue.get()
            assert got not in working
            working.add(got)
            owed.discard(got)
    for key in tuple(working):
        queue.done(key)
    clock.jump(1)
    while owed:
        owed.discard(await asyncio.wait_for(queue.get(), 90))
