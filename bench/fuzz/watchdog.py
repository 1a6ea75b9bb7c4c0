"""Ends this process, with what it was at, when an input takes too long: for `bench.fuzz.worker`.

It needs no lock of the interpreter, so that it ends what holds that for ever, too.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
from collections.abc import Iterator

# What sleeps for ever takes no processor. On a busy machine a second of one may take half a minute.
ASLEEP = 30


@contextlib.contextmanager
def watched(hang_s: float) -> Iterator[None]:
    """Lets the block take `hang_s` seconds of a processor, and `ASLEEP` times as many of the clock."""
    faulthandler.register(signal.SIGPROF, chain=True)
    signal.setitimer(signal.ITIMER_PROF, hang_s)
    faulthandler.dump_traceback_later(hang_s * ASLEEP, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGPROF)
