"""The first requests of many reflectors: few lists at once, watches afterwards, and nobody waits for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import msgspec
import pytest
from tests.kubekit.kube.apiscript import Handler, failure, reply, scripted_api, stream

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import LISTS_AT_ONCE, LONGEST_S, WATCHES_AT_ONCE, FirstReads

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


async def test_watches_of_what_is_named_begin_first() -> None:
    """The others take turns, each until the one before it has begun; none waits for longer than it may."""
    clock = ManualClock()
    reads = FirstReads(clock)
    others = [asyncio.create_task(reads.until_watch(NODES)) for _ in range(WATCHES_AT_ONCE + 2)]
    named = asyncio.create_task(reads.until_watch(PODS))
    reads.begin_watches([PODS])
    async with asyncio.timeout(GUARD_S):
        await named
        begun = await asyncio.gather(*others[:WATCHES_AT_ONCE])
        await clock.advance(LONGEST_S / 2)
        assert [other.done() for other in others[WATCHES_AT_ONCE:]] == [False, False]
        for _ in range(2):
            begun[0]()  # whoever says it twice has begun once
        await others[WATCHES_AT_ONCE]
        await clock.advance(0)
        assert not others[-1].done()
        await clock.advance(LONGEST_S / 2)
        await others[-1]


def _groups(*versions: str) -> Handler:
    groups = [{"name": version.partition("/")[0], "versions": [{"groupVersion": version}]} for version in versions]
    return reply({"kind": "APIGroupList", "groups": groups})


@pytest.mark.parametrize(
    ("answer", "lacking"),
    [
        pytest.param(_groups("apps/v1", "apps/v1beta1"), False, id="the version is there"),
        pytest.param(_groups("apps/v1", "batch/v1"), True, id="it is not"),
        pytest.param(_groups("batch/v1"), False, id="not even what every server has: one that has just begun"),
        pytest.param(_groups(), False, id="nothing at all"),
        pytest.param(failure(403, "Forbidden"), False, id="it may not be asked for"),
        pytest.param(failure(404, "NotFound"), False, id="it is not told"),
        pytest.param(reply({"kind": "APIVersions"}), False, id="something else is told"),
    ],
)
async def test_what_a_server_lacks(answer: Handler, lacking: bool) -> None:
    """Only what it says itself; it is asked once for all kinds, and never for those of the core."""
    beta = msgspec.structs.replace(resource_of(Deployment), version="v1beta1")
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(answer)
        reads = FirstReads(ManualClock(), client)
        assert await reads.lacks(PODS) is False
        assert api.requests == []
        assert await asyncio.gather(*(reads.lacks(beta) for _ in range(3))) == [lacking] * 3
        assert await reads.lacks(resource_of(Deployment)) is False
        assert api.targets == ["GET /apis"]


async def test_a_server_that_does_not_answer_holds_nobody_up() -> None:
    """For longer than a list may wait."""
    clock = ManualClock()
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(stream(hold=True))
        asked = asyncio.create_task(FirstReads(clock, client).lacks(resource_of(Deployment)))
        async with asyncio.timeout(GUARD_S):
            await api.until_requests(1)
            await clock.advance(LONGEST_S)
            assert await asked is False
