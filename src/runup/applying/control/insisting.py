"""One task put, however often that takes: what it needs is waited for, what fails is tried again later and later."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from kubekit.api.codec import DecodeError
from kubekit.errors import Terminal
from kubekit.kube.errors import KubeError, NotFound, Transient
from runup.applying.control.course import Course
from runup.applying.control.failing import KindMissing, problem_of, words_of
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import State
from runup.applying.decide.task import Task

log = structlog.get_logger("payload")
# What putting an object may end with that is no bug of ours.
FAILURES = (KubeError, DecodeError, Terminal, KindMissing)
# Attempts at one task until its failure is told, and the longest pause between two.
TOLD_AFTER = 4
LONGEST_PAUSE_S = 15.0
# What is there already, or comes by itself in a moment, is waited for so long before the server is asked all the same.
BEFORE_ASKING_S = 10.0


class Insisting:
    """For one run. `failed` is called after each attempt that did."""

    def __init__(self, course: Course, failed: Callable[[], None]) -> None:
        self._course = course
        self._putting = course.putting
        self._failed = failed

    async def awaited(self, task: Task) -> None:
        """Wait for definition and namespace if the release has them: asking before is a request for nothing."""
        needed = [*self._course.needs(task)]
        if needed and not self._putting.in_place(task):
            await self._course.finished_within(BEFORE_ASKING_S, needed)

    async def put(self, task: Task) -> bool:
        """Put it, however often that takes; False where it cannot be before something that comes after it."""
        attempts, waited = 0, False
        while True:
            try:
                await self._putting.put(task, updating=self._course.state is State.UPDATING)
            except FAILURES as error:
                if isinstance(error, KindMissing | NotFound):
                    if any(self._course.later(task)):
                        return False
                    if needed := [*self._course.needs(task)]:
                        waited = True
                        await self._in_vain(task, needed)
                        continue
                attempts += 1
                problem = problem_of(task, error)
                log.warning("could not be applied", task=str(task), error=words_of(error), attempts=attempts)
                self._failed()
                if attempts >= TOLD_AFTER or isinstance(error, Terminal):
                    self._course.tell(task, problem)
                await self._pause(task, attempts, error)
            else:
                break
        if attempts or waited:
            self._course.tell(task, None)
        return True

    async def _in_vain(self, task: Task, needed: Sequence[Task]) -> None:
        """It came before what it needs, which is on its way: that is waited for, and is no failure of this one."""
        text = f"{task} is waiting on {', '.join(map(str, needed))}"
        self._course.tell(task, Problem("WaitingForObject", text, Effect.NONE))
        await self._course.finished_within(LONGEST_PAUSE_S, needed)

    async def _pause(self, task: Task, attempts: int, error: Exception) -> None:
        """Until the next attempt: what the server asks for, else longer each time, or until what it needs is there."""
        asked = error.retry_after_s if isinstance(error, Transient) else None
        seconds = min(max(2.0 ** min(attempts - 1, 10), asked or 0), max(LONGEST_PAUSE_S, asked or 0))
        needed = [*self._course.needs(task)]
        await (self._course.finished_within(seconds, needed) if needed else self._course.clock.sleep(seconds))
