"""What is done is kept so: drift that a watch told of is put back, and one object after the other is applied anew."""

from __future__ import annotations

import structlog

from runup.applying.control.course import Course
from runup.applying.control.failing import words_of
from runup.applying.control.insisting import FAILURES, Insisting
from runup.applying.control.judging import Judging
from runup.applying.decide.task import Task
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
# An object that somebody else keeps changing is put back later and later.
LONGEST_REPAIR_S = 60.0
CALM_AFTER_S = 120.0
# Every object is applied anew once in that time, one by one: for what no watch tells.
FULL_PASS_S = 24 * 3600.0


class Keeping:
    """For one run."""

    def __init__(self, course: Course, insisting: Insisting, judging: Judging) -> None:
        self._course = course
        self._putting = course.putting
        self._insisting = insisting
        self._judging = judging
        self._repaired: dict[Identity, tuple[float, float]] = {}
        self._repairing: set[Identity] = set()

    def look_after(self, task: Task) -> None:
        """What is done is judged on, as long as it is kept."""
        if self._course.completed and task.identity not in self._repairing:
            self._course.tell(task, self._judging.health(task))

    def must_repair(self, task: Task) -> bool:
        """Whether `task` is not as it was put, and nobody is at it; whoever asks repairs it then."""
        if task.identity in self._repairing or not self._putting.drifted(task):
            return False
        self._repairing.add(task.identity)
        return True

    async def repair(self, task: Task) -> None:
        """Put back what somebody changed; whoever keeps changing it is given in to for a while, later and later."""
        identity = task.identity
        again, pause = self._last_repair(identity, self._course.clock.monotonic())
        log.info("put back", task=str(task), again=again)
        if pause:
            await self._course.clock.sleep(pause)
        try:
            await self._insisting.put(task)
            await self._judging.well(task)
        finally:
            self._repairing.discard(identity)

    async def over_and_over(self) -> None:
        """One object after the other, all of them in a day: a safety net that nobody notices."""
        tasks = list(self._course.tasks.values())
        while True:
            if not tasks:  # nothing of the release is meant for this cluster
                await self._course.clock.sleep(FULL_PASS_S)
            for task in tasks:
                await self._course.clock.sleep(FULL_PASS_S / len(tasks))
                if task.deletes or task.identity in self._repairing:
                    continue
                try:
                    await self._putting.put(task, anew=True)
                except FAILURES as error:
                    log.warning("could not be applied anew", task=str(task), error=words_of(error))

    def _last_repair(self, identity: Identity, now: float) -> tuple[bool, float]:
        """Whether it was repaired shortly before, and how long to wait this time."""
        at, pause = self._repaired.get(identity, (-CALM_AFTER_S, 0.0))
        again = now - at < CALM_AFTER_S + pause
        pause = min(max(pause * 2, 1.0), LONGEST_REPAIR_S) if again else 0.0
        self._repaired[identity] = (now, pause)
        return again, pause
