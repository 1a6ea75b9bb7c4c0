"""Runs a command's work so that SIGINT and SIGTERM cancel it, and it cleans up however it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`. SIGTERM and SIGINT cancel it, so that it can clean up.

    Raises SystemExit(143) after SIGTERM, KeyboardInterrupt after SIGINT.
    """
    ended: list[int] = []

    async def guarded() -> T:
        """Returns the result of `work`; SIGTERM and SIGINT cancel it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def end(number: int) -> None:
            ended.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end, number)
        return await task

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if signal.SIGINT in ended:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + signal.SIGTERM) from None
