"""Helpers that await several coroutines at once and leave none of them running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

Work = Coroutine[Any, Any, Any]


async def wait_for_first(*waits: Work, task: asyncio.Task[Any] | None = None) -> None:
    """Waits until one of `waits` or `task` is done; then cancels the other waits, but not `task`."""
    futures = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait([*futures, *([task] if task else [])], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
        # Cancelled tasks are awaited, so that none runs on after the return.
        await asyncio.gather(*futures, return_exceptions=True)


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels `tasks` and waits until they have ended."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


@asynccontextmanager
async def run_beside(*work: Work) -> AsyncIterator[None]:
    """Runs `work` for as long as the block lasts; a failure in it ends the block with an ExceptionGroup."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
