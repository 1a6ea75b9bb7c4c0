"""The progress of a run, shared by its parts: finished tasks, dependencies between tasks, and current problems."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import structlog

from kubekit.api.codec import DecodeError
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError, NotFound, Transient
from kubekit.kube.clock import Clock
from runup.applying.control.object_applier import ObjectApplier
from runup.applying.control.task_errors import KindMissing, error_message, problem_of
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.task import Task
from runup.applying.decide.task_graph import everything_before, graph_of


class RunProgress:
    """The progress of one run: its task graph, the indexes of the tasks that are `done`, and each task's problem.

    `on_result` is called whenever `done`, `problems` or `state` change, with True if that is urgent. The run itself
    sets `state` and `completed` once every task is done.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        state: ApplyReason,
        *,
        applier: ObjectApplier,
        clock: Clock,
        on_result: Callable[[bool], None],
    ) -> None:
        self.state = state
        self.completed = False
        self.done: set[int] = set()
        self.problems: dict[int, Problem] = {}
        self.tasks = {task.identity: task for task in tasks}
        self.graph = graph_of(tasks, state)
        self.applier = applier
        self.clock = clock
        self.on_result = on_result
        self._node_of = {task.index: number for number, node in enumerate(self.graph) for task in node.tasks}
        self._before = everything_before(self.graph)
        # Only of tasks that somebody waits for: a release has hundreds, and an Event takes 800 bytes.
        self._finished: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def finish(self, task: Task) -> None:
        """Marks `task` as done and wakes everything that waits for it."""
        self.done.add(task.index)
        if awaited := self._finished.pop(task.index, None):
            awaited.set()

    async def finished(self, *tasks: Task) -> None:
        """Waits until all of `tasks` are done, without a time limit."""
        for task in tasks:
            if task.index not in self.done:
                await self._finished[task.index].wait()

    async def finished_within(self, seconds: float, tasks: Sequence[Task]) -> None:
        """Waits until all of `tasks` are done, at most `seconds`."""
        await self.within(seconds, *(self._finished[task.index] for task in tasks if task.index not in self.done))

    def needs(self, task: Task) -> Iterator[Task]:
        """Yields the unfinished tasks that `task` depends on, without those that come later in the order."""
        later = {other.index for other in self.later(task)}
        yield from (dependency for dependency in self.applier.needs(task) if dependency.index not in self.done | later)

    def later(self, task: Task) -> Iterator[Task]:
        """Yields the unfinished dependencies of `task` that come after it in the order."""
        node = self._node_of[task.index]
        for other in self.applier.needs(task):
            its_node = self._node_of[other.index]
            # Tasks of one node are done in sequence; between nodes the graph decides.
            comes_later = other.index > task.index if its_node == node else node in self._before[its_node]
            if comes_later and other.index not in self.done:
                yield other

    def record(self, task: Task, problem: Problem | None) -> None:
        """Records the problem of `task`, or None. A failure that starts, changes or ends is urgent."""
        before = self.problems.get(task.index)
        if before == problem:
            return
        if problem is None:
            del self.problems[task.index]
        else:
            self.problems[task.index] = problem
        # Another message for the same reason can wait for the next regular report, but not that it fails by now.
        edge = before is None or problem is None or (before.reason, before.effect) != (problem.reason, problem.effect)
        failing = any(
            shown_problem is not None and shown_problem.effect is not Effect.NONE for shown_problem in (before, problem)
        )
        self.on_result(edge and failing)

    async def within(self, seconds: float, *events: asyncio.Event) -> None:
        """Waits until all of `events` are set, at most `seconds`."""

        async def all_events() -> None:
            for event in events:
                await event.wait()

        waiters = [asyncio.ensure_future(all_events()), asyncio.ensure_future(self.clock.sleep(seconds))]
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()


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
                    self._progress.record(task, problem)
                await self.pause(task, attempts, error)
            else:
                break
        if attempts or waited:
            self._progress.record(task, None)
        return True

    async def _wait_for_needed(self, task: Task, needed: Sequence[Task]) -> None:
        """Waits for the tasks in `needed`, which are on their way. Reports this as progress, not as a failure."""
        text = f"{task} is waiting on {', '.join(map(str, needed))}"
        self._progress.record(task, Problem(reason="WaitingForObject", message=text, effect=Effect.NONE))
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
