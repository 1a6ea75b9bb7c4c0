"""Reapplies objects that another writer keeps changing, with growing delays, and reports them in events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from kubekit.kube.clock import Clock
from runup.applying.decide.task import Task
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
MAX_REPAIR_DELAY_S = 60.0
REPAIR_RESET_S = 120.0
# The pause from which on somebody insists: an object was put back five times in a quarter of a minute then.
CONTESTED_PAUSE_S = 8.0
Told = Callable[[Task], Awaitable[None]]


class Contention:
    """The objects that were put back, and when. `contested` is called with the task of each that is changed on."""

    def __init__(self, clock: Clock, contested: Told) -> None:
        self._clock = clock
        self._contested = contested
        self._repaired: dict[Identity, tuple[float, float]] = {}

    async def wait(self, task: Task) -> None:
        """Waits until the object of `task` is to be put back: at once the first time, then ever later, up to 60 s."""
        again, pause = self.next_pause(task.identity, self._clock.monotonic())
        log.info("put back", task=str(task), again=again)
        if pause >= CONTESTED_PAUSE_S:
            await self._contested(task)
        if pause:
            await self._clock.sleep(pause)

    def next_pause(self, identity: Identity, now: float) -> tuple[bool, float]:
        """Returns whether the object was put back shortly before, and the seconds to wait this time."""
        repaired_at, pause = self._repaired.get(identity, (-REPAIR_RESET_S, 0.0))
        again = now - repaired_at < REPAIR_RESET_S + pause
        pause = min(max(pause * 2, 1.0), MAX_REPAIR_DELAY_S) if again else 0.0
        self._repaired[identity] = (now, pause)
        return again, pause
