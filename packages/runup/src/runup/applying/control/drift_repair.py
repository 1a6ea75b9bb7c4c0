"""Keeps an applied release in place: repairs drift that a watch reports, and applies every object again once a day."""

from __future__ import annotations

import structlog

from runup.applying.control.contention import Contention
from runup.applying.control.health_checker import HealthChecker
from runup.applying.control.retry import FAILURES, TaskRetrier
from runup.applying.control.run_progress import RunProgress
from runup.applying.control.task_errors import error_message
from runup.applying.decide.task import Task
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
# Every object is applied again once in this time, one by one, for changes that no watch reports.
REAPPLY_INTERVAL_S = 24 * 3600.0


class DriftRepairer:
    """The upkeep of one run's objects."""

    def __init__(
        self, progress: RunProgress, retrier: TaskRetrier, health_checker: HealthChecker, contention: Contention
    ) -> None:
        self._progress = progress
        self._applier = progress.applier
        self._retrier = retrier
        self._health_checker = health_checker
        self._contention = contention
        self.repairing: set[Identity] = set()

    def look_after(self, task: Task) -> None:
        """Judges the health of `task` again, if the release is completed and the task is not being repaired."""
        if self._progress.completed and task.identity not in self.repairing:
            self._progress.tell(task, self._health_checker.health(task))

    def must_repair(self, task: Task) -> bool:
        """Returns whether `task` has drifted and is not being repaired; the caller must then repair it."""
        if task.identity in self.repairing or not self._applier.drifted(task):
            return False
        self.repairing.add(task.identity)
        return True

    async def repair(self, task: Task) -> None:
        """Applies a drifted object again, after a growing pause (up to 60 s) if it was repaired shortly before."""
        try:
            await self._contention.wait(task)
            await self._retrier.apply_until_done(task)
            await self._health_checker.wait_until_healthy(task)
        finally:
            self.repairing.discard(task.identity)

    async def reapply_daily(self) -> None:
        """Reapplies one object after the other, each of them once in 24 hours, until cancelled."""
        tasks = list(self._progress.tasks.values())
        while True:
            if not tasks:  # nothing of the release is meant for this cluster
                await self._progress.clock.sleep(REAPPLY_INTERVAL_S)
            for task in tasks:
                # Spread evenly over the day, so that the API server has no peak of requests.
                await self._progress.clock.sleep(REAPPLY_INTERVAL_S / len(tasks))
                if task.deletes or task.identity in self.repairing:
                    continue
                try:
                    await self._applier.apply_or_delete(task, anew=True)
                except FAILURES as error:
                    log.warning("could not be applied anew", task=str(task), error=error_message(error))
