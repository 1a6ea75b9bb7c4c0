"""Ends a controller's process: in order if possible, and within five seconds in any case.

A thread that waits for a slow registry or a hung disk cannot be cancelled, and Python waits for its threads. So as
soon as the process must end, for whatever reason, a timer starts that ends it without asking.
"""

from __future__ import annotations

import asyncio
import ctypes
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
# After leading has ended, this much later than any of the above: the process hangs.
AFTER_LEADING_S = GRACEFUL_STOP_S + THREAD_JOIN_S + 1.0


class LeaseAlarm:
    """Ends the process when its lease runs out, whatever hangs in it, with exit code 14 (SIGALRM).

    The kernel's timer sends SIGALRM, whose handler is `_exit` of the C library. That needs no descriptor, no memory, no
    thread and no Python code. A suspended process ends before it executes anything else. The default action of
    the signal would not end the first process of a container (pid_namespaces(7)). Only the program of a process may
    have an alarm (docs/decisions/0089).
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        libc.signal.restype = ctypes.c_void_p
        libc.signal(signal.SIGALRM, ctypes.cast(libc._exit, ctypes.c_void_p))

    def renew(self, seconds: float) -> None:
        """Ends the process in so many seconds, instead of when it was set to end before."""
        # Zero would turn the timer off.
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))

    def hasten(self, seconds: float) -> None:
        """Ends the process in so many seconds, unless it ends sooner."""
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        self.renew(min(left or seconds, seconds))


class CutOff:
    """The timer that ends the process. A later call sets it again; the exit code is that of the first."""

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
    run: Coroutine[Any, Any, None],
    stop: Callable[[], object],
    stopping: asyncio.Event | None = None,
    alarm: LeaseAlarm | None = None,
) -> None:
    """Runs `run` for a process: TERM and INT call `stop`, a second one ends the process at once.

    `stopping` is set when the process must end for another reason; `alarm` then ends it if that takes too long. If the
    process has to be cut off, it exits with 0 if it was stopped by a signal, else with 1.
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
    watching = asyncio.create_task(_arm_when_stopping(stopping, cut_off, alarm))
    try:
        await run
    finally:
        watching.cancel()
        cut_off.after(THREAD_JOIN_S, 0 if signalled else 1)


async def _arm_when_stopping(stopping: asyncio.Event | None, cut_off: CutOff, alarm: LeaseAlarm | None) -> None:
    if stopping is not None:
        await stopping.wait()
        if alarm is not None:
            alarm.hasten(AFTER_LEADING_S)
        if not cut_off.is_set:
            cut_off.after(GRACEFUL_STOP_S, 1)
