"""How far a run is: what is done, what each task needs of the others, what keeps it. The parts of a run share it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from kubekit.kube.clock import Clock
from runup.applying.control.putting import Putting
from runup.applying.decide.graph import everything_before, graph_of
from runup.applying.decide.problems import Effect, Problem
from runup.applying.decide.progress import State
from runup.applying.decide.task import Task


class Course:
    """`told` is called whenever `done`, `problems` or `state` have changed, with whether that cannot wait.

    `state` and `completed` are set by the run, once all is done.
    """

    def __init__(
        self, tasks: Sequence[Task], state: State, *, putting: Putting, clock: Clock, told: Callable[[bool], None]
    ) -> None:
        self.state = state
        self.completed = False
        self.done: set[int] = set()
        self.problems: dict[int, Problem] = {}
        self.tasks = {task.identity: task for task in tasks}
        self.graph = graph_of(tasks, state)
        self.putting = putting
        self.clock = clock
        self.told = told
        self._node_of = {task.index: number for number, node in enumerate(self.graph) for task in node.tasks}
        self._before = everything_before(self.graph)
        self._finished: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def finish(self, task: Task) -> None:
        """`task` is done: whoever waits for it goes on."""
        self.done.add(task.index)
        self._finished[task.index].set()

    async def finished(self, *tasks: Task) -> None:
        """Wait until all of `tasks` are done, however long that takes."""
        for task in tasks:
            await self._finished[task.index].wait()

    async def finished_within(self, seconds: float, tasks: Sequence[Task]) -> None:
        """The same, but at most so long."""
        await self.within(seconds, *(self._finished[task.index] for task in tasks))

    def needs(self, task: Task) -> Iterator[Task]:
        """The tasks of this release that must be done before, and are not; none that comes later."""
        later = {other.index for other in self.later(task)}
        yield from (each for each in self.putting.needs(task) if each.index not in self.done | later)

    def later(self, task: Task) -> Iterator[Task]:
        """Those of them whose turn comes only when that of `task` is over."""
        node = self._node_of[task.index]
        for other in self.putting.needs(task):
            theirs = self._node_of[other.index]
            after = other.index > task.index if theirs == node else node in self._before[theirs]
            if after and other.index not in self.done:
                yield other

    def tell(self, task: Task, problem: Problem | None) -> None:
        """What keeps `task` now, None for nothing. A failure that comes, changes or goes cannot wait."""
        before = self.problems.get(task.index)
        if before == problem:
            return
        if problem is None:
            del self.problems[task.index]
        else:
            self.problems[task.index] = problem
        edge = before is None or problem is None or before.reason != problem.reason
        failing = any(each is not None and each.effect is not Effect.NONE for each in (before, problem))
        self.told(edge and failing)

    async def within(self, seconds: float, *events: asyncio.Event) -> None:
        """Until all of `events` are set, at most so long."""

        async def all_() -> None:
            for event in events:
                await event.wait()

        work = [asyncio.ensure_future(all_()), asyncio.ensure_future(self.clock.sleep(seconds))]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in work:
                each.cancel()
