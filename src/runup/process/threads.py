"""Blocking work beside the event loop, in a thread that nobody waits for once the answer is not wanted any more.

The loop's own executor is waited for when a process ends: a registry that hangs would hold up a stop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """What `work` gives or raises; a cancelled caller leaves it behind, and so does a process that ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(give: Callable[[], None]) -> None:
        if not done.done():
            give()

    def run() -> None:
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 -- it is raised where it was asked for
            tell(lambda error=error: done.set_exception(error))  # type: ignore[misc]
        else:
            tell(lambda: done.set_result(found))

    def tell(give: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(settle, give)
        except RuntimeError:
            return  # the loop is gone: the process ends

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
