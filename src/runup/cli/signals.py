"""Lets SIGTERM end a command as Ctrl-C does, so that the command still cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM raise SystemExit(143) within the block; in a thread other than the main one it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def _exit(number: int, _frame: object) -> None:
    # 128 + the signal, as shells report it.
    raise SystemExit(128 + number)
