"""Clocks of tests that let a product's own waits pass sooner than they do on a machine."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from kubekit.kube.clock import ManualClock, SystemClock


class Hurried(SystemClock):
    """A clock that goes `times` as fast as the machine's."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self._times = times
        self._began = super().monotonic()
        self._start = super().now()

    def now(self) -> datetime:
        """See `Clock.now`."""
        return (self._start + timedelta(seconds=self.monotonic())).replace(microsecond=0)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return (super().monotonic() - self._began) * self._times

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await super().sleep(seconds / self._times)

    def pause(self, seconds: float) -> None:
        """See `Clock.pause`."""
        super().pause(seconds / self._times)


class Moved(SystemClock):
    """The machine's clock, set forward by anybody who calls `move`."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0

    def move(self, seconds: float) -> None:
        """Advances the time at once; sleeping tasks stay asleep."""
        self._ahead_s += seconds

    def now(self) -> datetime:
        """See `Clock.now`."""
        return super().now() + timedelta(seconds=self._ahead_s)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return super().monotonic() + self._ahead_s


class Leaping(ManualClock):
    """A clock that is moved by anybody who sleeps, for one task alone; `slept` says how long each time."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        self.slept.append(seconds)
        self.jump(seconds)
        await asyncio.sleep(0)
