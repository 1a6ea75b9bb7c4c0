"""The cluster's process: it serves until it is asked to stop, or until a part of it is no more."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.cluster import until_over
from kubesandbox.sandbox_error import SandboxError


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _bug() -> None:
    raise KeyError("a bug")


async def _ends() -> None:
    return


async def test_it_serves_until_it_is_told_to_stop() -> None:
    """And leaves its tasks to anybody who started them."""
    stop = asyncio.Event()
    task = asyncio.create_task(_for_ever())
    asyncio.get_running_loop().call_soon(stop.set)
    async with asyncio.timeout(90):
        await until_over(stop, [task])
    assert not task.done()
    task.cancel()


@pytest.mark.parametrize(("part", "error"), [(_bug, KeyError), (_ends, SandboxError)], ids=["a bug", "a quiet end"])
async def test_a_part_that_ends_is_no_secret(part: object, error: type[Exception]) -> None:
    """The error that ended the cluster is raised; a cluster never continues in part."""
    assert callable(part)
    tasks = [asyncio.create_task(_for_ever()), asyncio.create_task(part())]
    async with asyncio.timeout(90):
        with pytest.raises(error):
            await until_over(asyncio.Event(), tasks)
    tasks[0].cancel()
