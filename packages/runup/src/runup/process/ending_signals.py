"""Tells which signals end a command of a terminal in order: Ctrl-C, SIGTERM, and the end of the terminal itself."""

from __future__ import annotations

import signal


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
