"""Applies one task, retrying with back-off. It waits for the objects that the task depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from kubekit.api.codec import DecodeError
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError, NotFound, Transient
from runup.applying.control.run_progress import RunProgress
from runup.applying.control.task_errors import KindMissing, error_message, problem_of
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task

log = structlog.get_logger("payload")
# The errors that applying an object may raise without a bug in this program.
FAILURES = (KubeError, DecodeError, Terminal, KindMissing)
# The number of failed attempts after which a failure is reported, and the longest pause between two attempts.
REPORT_AFTER_ATTEMPTS = 4
LONGEST_PAUSE_S = 15.0
# How long an unfinished dependency is waited for before the first attempt, which may succeed without it.
DEPENDENCY_WAIT_S = 10.0


class TaskRetrier:
    """Retries the tasks of one run. `failed` is called after every failed attempt."""

    def __init__(self, progress: RunProgress, failed: Callable[[], None]) -> None:
        self._progress = progress
        self._applier = progress.applier
        self._failed = failed

    async def wait_for_dependencies(self, task: Task) -> None:
        """Waits up to 10 s for the task's CustomResourceDefinition and namespace, to spare a request that must fail."""
        needed = [*self._progress.needs(task)]
        if needed and not self._applier.in_place(task):
            await self._progress.finished_within(DEPENDENCY_WAIT_S, needed)

    async def apply_until_done(self, task: Task) -> bool:
        """Applies `task`, retrying until it succeeds; returns False if it depends on a task that comes later."""
        attempts, waited = 0, False
        while True:
            try:
                await self._applier.apply_or_delete(task, updating=self._progress.state is ApplyReason.UPDATING)
            except FAILURES as error:
                if isinstance(error, KindMissing | NotFound):
                    # A task that comes later starts only after this one, so waiting for it here would never end.
                    if any(self._progress.later(task)):
                        return False
                    if needed := [*self._progress.needs(task)]:
                        waited = True
                        await self._wait_for_needed(task, needed)
                        continue
                attempts += 1
                problem = problem_of(task, error)
                log.warning("could not be applied", task=str(task), error=error_message(error), attempts=attempts)
                self._failed()
                # A Terminal error needs an edit, so further attempts before reporting it are useless.
                if attempts >= REPORT_AFTER_ATTEMPTS or isinstance(error, Terminal):
                    self._progress.tell(task, problem)
                await self.pause(task, attempts, error)
            else:
                break
        if attempts or waited:
            self._progress.tell(task, None)
        return True

    async def _wait_for_needed(self, task: Task, needed: Sequence[Task]) -> None:
        """Waits for the tasks in `needed`, which are on their way. Reports this as progress, not as a failure."""
        text = f"{task} is waiting on {', '.join(map(str, needed))}"
        self._progress.tell(task, Problem("WaitingForObject", text, Effect.NONE))
        await self._progress.finished_within(LONGEST_PAUSE_S, needed)

    async def pause(self, task: Task, attempts: int, error: Exception) -> None:
        """Waits until the next attempt: with exponential back-off, at least the server's Retry-After.

        Ends early if all unfinished dependencies of `task` are done.
        """
        retry_after_s = error.retry_after_s if isinstance(error, Transient) else None
        # The exponent is limited, because the number of attempts is not.
        seconds = min(max(2.0 ** min(attempts - 1, 10), retry_after_s or 0), max(LONGEST_PAUSE_S, retry_after_s or 0))
        needed = [*self._progress.needs(task)]
        await (self._progress.finished_within(seconds, needed) if needed else self._progress.clock.sleep(seconds))
