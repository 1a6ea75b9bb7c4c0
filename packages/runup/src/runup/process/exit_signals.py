"""Lets SIGTERM and the end of the terminal end a command as Ctrl-C does, so that the command still cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from runup.process.ending_signals import ending_signals


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
