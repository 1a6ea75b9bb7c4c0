"""Ends a controller's process: in order if possible, and within five seconds in any case.

A thread that waits for a slow registry or a hung disk cannot be cancelled, and Python waits for its threads. So as
soon as the process is to end, for whatever reason, a timer starts that ends it without asking.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

# Shorter than terminationGracePeriodSeconds: another replica waits for our lease, or a drain for this pod to end.
GRACEFUL_STOP_S = 4.0
# After the work has ended, only threads are waited for and the reason is logged.
THREAD_JOIN_S = 1.0


class CutOff:
    """The timer that ends the process. A later call sets it anew; the exit code is that of the first."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._code = 0

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def after(self, seconds: float, code: int) -> None:
        """Ends the process after `seconds`, instead of when it was set to end before; with `code` if it was not."""
        if self._timer is None:
            self._code = code
        else:
            self._timer.cancel()
        # Nothing is logged: a log whose reader hangs may be what keeps the process from ending.
        self._timer = threading.Timer(seconds, os._exit, (self._code,))
        self._timer.daemon = True
        self._timer.start()


async def run_until_told(
    run: Coroutine[Any, Any, None], stop: Callable[[], object], stopping: asyncio.Event | None = None
) -> None:
    """Runs `run` for a process: TERM and INT call `stop`, a second one ends the process at once.

    `stopping` is set when the process is to end for a reason of its own. If it has to be cut off, it exits with 0 if
    it was told to stop, else with 1.
    """
    loop = asyncio.get_running_loop()
    cut_off = CutOff()
    signalled = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        """Begins to stop at the first signal, and ends the process at the second."""
        nonlocal signalled
        if signalled:
            os._exit(1)
        signalled = True
        # One that ends already, as for a lost lease, gets no more time.
        if not cut_off.is_set:
            cut_off.after(GRACEFUL_STOP_S, 0)
        loop.call_soon_threadsafe(stop)

    # The loop's own signal handlers would wait for a loop that may be busy.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    watching = asyncio.create_task(_arm_when_stopping(stopping, cut_off))
    try:
        await run
    finally:
        watching.cancel()
        cut_off.after(THREAD_JOIN_S, 0 if signalled else 1)


async def _arm_when_stopping(stopping: asyncio.Event | None, cut_off: CutOff) -> None:
    if stopping is not None:
        await stopping.wait()
        if not cut_off.is_set:
            cut_off.after(GRACEFUL_STOP_S, 1)
