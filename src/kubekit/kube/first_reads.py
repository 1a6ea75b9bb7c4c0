"""Orders the first requests of many reflectors: the lists over few connections, the watches when all is listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from kubekit.kube.clock import Clock, run_within

LISTS_AT_ONCE = 8
LONGEST_S = 2.0


class FirstReads:
    """The order of the first requests for whoever waits for all of these kinds, and for no change of them yet.

    Each connection costs a TLS handshake, which takes milliseconds of processor time on both sides, and a watch needs
    one to itself. So lists take turns on `at_once` connections, and watches begin when `begin_watches` is called. No
    request waits for its turn for longer than `longest_s` seconds, so that slow kinds do not hold up the others.
    """

    def __init__(self, clock: Clock, *, at_once: int = LISTS_AT_ONCE, longest_s: float = LONGEST_S) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._turns = asyncio.Semaphore(at_once)
        self._watching = asyncio.Event()

    def begin_watches(self) -> None:
        """Lets watches begin, those of kinds that are listed later at once."""
        self._watching.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn to list, which ends with the block."""
        is_own = await self._waits(self._turns.acquire())
        try:
            yield
        finally:
            if is_own:
                self._turns.release()

    async def until_watches(self) -> None:
        """Waits until watches may begin."""
        await self._waits(self._watching.wait())

    async def _waits(self, wait: Coroutine[Any, Any, bool]) -> bool:
        """Returns whether `wait` ended in time."""
        try:
            return await run_within(self._clock, self._longest_s, wait)
        except TimeoutError:
            return False
