"""The progress of a run, shared by its parts: finished tasks, dependencies between tasks, and current problems."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from kubekit.kube.clock import Clock
from runup.applying.control.object_applier import ObjectApplier
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import ApplyReason
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

    def tell(self, task: Task, problem: Problem | None) -> None:
        """Records the problem of `task` (None: it has none). A failure that starts, changes or ends is urgent."""
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
