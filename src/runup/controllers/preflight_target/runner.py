"""Runs checks beside the event loop, one after the other, each within a time limit.

Python cannot stop a thread. A check that takes too long is left behind and becomes Unknown; it is not started again
while it still runs, so that a hanging check costs one thread and not one a change.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

from runup.domain.checks.engine import CheckOutcome, could_not_tell, run_check
from runup.domain.checks.model import Check, Context, Snapshot
from runup.kube.clock import Clock

LIMIT_S = 10.0


class Runner:
    """Runs each check in a thread of its own; `limit_s` seconds are what one may take."""

    def __init__(self, clock: Clock, limit_s: float = LIMIT_S) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._left_behind: set[str] = set()

    async def run(self, check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
        """The outcome of `check`, with how long it took."""
        if check.name in self._left_behind:
            return could_not_tell(check, f"did not finish in {self._limit_s:g} s, and still runs")
        started = self._clock.monotonic()
        done: asyncio.Future[CheckOutcome] = asyncio.get_running_loop().create_future()
        self._start(check, lambda: run_check(check, snapshot, context), done)
        finished, _ = await asyncio.wait({done}, timeout=self._limit_s)
        took_s = self._clock.monotonic() - started
        if not finished:
            self._left_behind.add(check.name)
            return replace(could_not_tell(check, f"did not finish in {self._limit_s:g} s"), duration_seconds=took_s)
        return replace(done.result(), duration_seconds=took_s)

    def _start(self, check: Check, work: Callable[[], CheckOutcome], done: asyncio.Future[CheckOutcome]) -> None:
        loop = asyncio.get_running_loop()

        def finish(outcome: CheckOutcome) -> None:
            self._left_behind.discard(check.name)
            if not done.done():
                done.set_result(outcome)

        def run() -> None:
            outcome = work()
            try:
                loop.call_soon_threadsafe(finish, outcome)
            except RuntimeError:
                return  # the loop is gone: the process ends

        # A daemon: a check that hangs must not keep the process from ending.
        threading.Thread(target=run, name=f"check-{check.name}", daemon=True).start()
