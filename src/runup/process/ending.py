"""How a controller's process ends: in order where it can, and within five seconds in any case.

A thread that waits for a slow registry or a hung disk cannot be cancelled, and Python waits for its threads. So from
the moment when the process is to end, for whatever reason, a timer runs that ends it without asking.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

# Kubernetes would wait for terminationGracePeriodSeconds; who waits for our lease, or for the node's drain, should not.
IN_ORDER_S = 4.0
# What is left to do once the work has ended: nothing but waiting for threads, and saying why.
THREADS_S = 1.0


class _CutOff:
    """The timer. Of several the soonest counts, with the exit code of the first: why it ends does not change."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._code = 0

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def after(self, seconds: float, code: int) -> None:
        if self._timer is None:
            self._code = code
        else:
            self._timer.cancel()
        # Without a word: a log whose reader hangs is one of the things that may be pending.
        self._timer = threading.Timer(seconds, os._exit, (self._code,))
        self._timer.daemon = True
        self._timer.start()


async def run_until_told(
    run: Coroutine[Any, Any, None], stop: Callable[[], object], stopping: asyncio.Event | None = None
) -> None:
    """`run` for a process: TERM and INT call `stop`, a second one ends the process at once.

    `stopping` is set when the process is to end for a reason of its own. If it has to be cut off, it ends with 0 where
    it was told to stop, else with 1.
    """
    loop = asyncio.get_running_loop()
    cut_off = _CutOff()
    told = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        if told:
            os._exit(1)
        told = True
        cut_off.after(IN_ORDER_S, 0)
        loop.call_soon_threadsafe(stop)

    # Not the loop's own handlers: they wait for a loop that may be busy.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    watching = asyncio.create_task(_when(stopping, cut_off))
    try:
        await run
    finally:
        watching.cancel()
        cut_off.after(THREADS_S, 0 if told else 1)


async def _when(stopping: asyncio.Event | None, cut_off: _CutOff) -> None:
    if stopping is not None:
        await stopping.wait()
        if not cut_off.is_set:
            cut_off.after(IN_ORDER_S, 1)
