"""Runs a command's work so that Ctrl-C, SIGTERM and the end of the terminal cancel it, and it cleans up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from runup.process.ending_signals import ending_signals

T = TypeVar("T")


def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`. A signal that ends the command cancels it, so that it can clean up.

    Raises KeyboardInterrupt after SIGINT, SystemExit with 128 and the number of the signal after another one.
    """
    ended: list[int] = []

    async def guarded() -> T:
        """Returns the result of `work`; the signals cancel it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def end(number: int) -> None:
            ended.append(number)
            task.cancel()

        for number in ending_signals():
            loop.add_signal_handler(number, end, number)
        return await task

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if signal.SIGINT in ended:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + (ended or [signal.SIGTERM])[0]) from None
