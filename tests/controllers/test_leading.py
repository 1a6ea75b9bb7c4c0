"""Whoever works holds the lease: a competition that breaks, or is given up, is no quiet wait and leaves no work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.kube.apiscript import ScriptedApi, scripted_api
from tests.kube.test_lease_election import LeaseServer

from runup.controllers.leading import Election, election_of, lead
from runup.kube.client import Client
from runup.kube.clock import ManualClock
from runup.kube.config import ClusterConfig

DEADLINE_S = 90.0


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server with one Lease."""
    async with scripted_api() as found:
        found.answers(LeaseServer().answer)  # type: ignore[arg-type]
        yield found


async def test_an_elector_that_breaks_before_it_leads_ends_the_process(api: ScriptedApi) -> None:
    """Not a process that waits for its turn for ever: no lease can be written with a duration that is no number."""
    stopping = asyncio.Event()

    async def work() -> None:
        raise AssertionError("nobody leads")

    async with Client(ClusterConfig(api.url)) as client, asyncio.timeout(DEADLINE_S):
        with pytest.raises(OverflowError):
            await lead(
                client,
                work,
                namespace="ns",
                lease="version",
                election=Election(float("inf"), 107, 26),
                clock=ManualClock(),
                stopping=stopping,
            )
    assert stopping.is_set()


async def test_giving_up_the_lease_gives_up_the_work(api: ScriptedApi) -> None:
    """Who is cancelled lets go of the lease; what went on working would write beside the next one."""
    at_work, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Client(ClusterConfig(api.url)) as client, asyncio.timeout(DEADLINE_S):
        leading = asyncio.create_task(
            lead(
                client,
                work,
                namespace="ns",
                lease="version",
                election=Election(),
                clock=ManualClock(),
                stopping=asyncio.Event(),
            )
        )
        await at_work.wait()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
    assert ended.is_set()


@pytest.mark.parametrize("text", ["inf,107,26", "nan,107,26", "137,107", "107,137,26", "137,107,0"])
def test_durations_that_are_none(text: str) -> None:
    """Refused where they are typed."""
    with pytest.raises(ValueError, match="three falling numbers"):
        election_of(text)
