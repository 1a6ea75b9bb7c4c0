"""Runs blocking work in a daemon thread, which is not waited for once its result is no longer wanted.

The event loop's own executor is waited for when a process ends: a registry that hangs would delay the stop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Returns what `work` returns or raises; a cancelled caller or an ending process leaves the thread behind."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle_if_open(give: Callable[[], None]) -> None:
        if not future.done():
            give()

    def run() -> None:
        """Runs in the thread: hands the result or the exception to the event loop."""
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 -- it is raised where it was asked for
            hand_to_loop(lambda error=error: future.set_exception(error))  # type: ignore[misc]
        else:
            hand_to_loop(lambda: future.set_result(result))

    def hand_to_loop(give: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(settle_if_open, give)
        except RuntimeError:
            return  # the loop is gone: the process ends

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
