"""Determines which signals end a command of a terminal in order: Ctrl-C, SIGTERM, and the end of the terminal itself.

`exit_on_signal` lets SIGTERM and the end of the terminal end a command as Ctrl-C does, so that it still cleans up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under `nohup`, or the system has none."""
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, hang_up


def ignore_terminal_signals() -> None:
    """Ignores SIGINT and SIGHUP, which a terminal sends to each of its processes: the one that prints decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Lets SIGTERM raise SystemExit(143) within the block, and SIGHUP SystemExit(129).

    In a thread other than the main one it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in ending_signals() if number != signal.SIGINT]
    previous_handlers = [signal.signal(number, _exit) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, previous_handlers, strict=True):
            signal.signal(number, handler)


def _exit(number: int, _frame: object) -> None:
    # 128 + the signal, as shells report it.
    raise SystemExit(128 + number)
