"""The first requests of many reflectors: few lists at once, watches afterwards, and nobody waits for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube.clock import ManualClock
from kubekit.kube.first_reads import LISTS_AT_ONCE, LONGEST_S, FirstReads

GUARD_S = 90.0
PODS, NODES = resource_of(Pod), resource_of(Node)


async def _hold(reads: FirstReads, begun: asyncio.Queue[int], end: asyncio.Event) -> None:
    async with reads.turn():
        begun.put_nowait(1)
        await end.wait()


@pytest.mark.parametrize("ended", ["a list", "the time"])
async def test_a_list_waits_for_its_turn(ended: str) -> None:
    """Until one of the others ends, or as long as it may wait at most."""
    clock, begun, ends = ManualClock(), asyncio.Queue[int](), [asyncio.Event() for _ in range(LISTS_AT_ONCE + 1)]
    reads = FirstReads(clock)
    tasks = [asyncio.create_task(_hold(reads, begun, end)) for end in ends]
    async with asyncio.timeout(GUARD_S):
        for _ in range(LISTS_AT_ONCE):
            await begun.get()
        await clock.advance(LONGEST_S / 2)
        assert begun.empty()
        if ended == "a list":
            ends[0].set()
        else:
            await clock.advance(LONGEST_S / 2)
        await begun.get()
        for end in ends:
            end.set()
        await asyncio.gather(*tasks)
    # All turns are back, and no more than there were.
    async with AsyncExitStack() as stack:
        for _ in range(LISTS_AT_ONCE):
            await stack.enter_async_context(reads.turn())
        one_more = asyncio.create_task(_hold(reads, begun, ends[0]))
        await clock.advance(LONGEST_S / 2)
        assert begun.empty()
    await one_more


@pytest.mark.parametrize("begun", ["when told", "after the time"])
async def test_watches_wait_for_the_first_evaluation(begun: str) -> None:
    """Who watches later does not wait."""
    clock = ManualClock()
    reads = FirstReads(clock)
    waiting = asyncio.create_task(reads.until_watch(PODS))
    await clock.advance(LONGEST_S / 2)
    assert not waiting.done()
    if begun == "when told":
        reads.begin_watches()
    else:
        await clock.advance(LONGEST_S / 2)
    async with asyncio.timeout(GUARD_S):
        await waiting
        reads.begin_watches()
        await reads.until_watch(PODS)
