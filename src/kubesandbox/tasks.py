"""Waiting for several things at once, with nothing left running afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Work = Coroutine[Any, Any, Any]


async def first(*waits: Work, task: asyncio.Task[Any] | None = None) -> None:
    """Until one of `waits` or `task` is done; the other waits are cancelled then, `task` goes on."""
    own = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait([*own, *([task] if task else [])], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in own:
            each.cancel()
        await asyncio.gather(*own, return_exceptions=True)


@asynccontextmanager
async def beside(*work: Work) -> AsyncIterator[None]:
    """Do `work` for as long as the block lasts; what fails there ends the block with an ExceptionGroup."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
