"""One release being applied and then kept applied. Started by the worker, cancelled when something else is wanted.

Every node of the graph is a task of its own, and each object is put once: what waits (for a definition, a namespace, a
workload, an operator) waits on the watch and goes on where it stood. What fails is tried again in its place, later and
later, while the others go on. Once all is done the same watches say what drifted, and it is put back.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import structlog

from runup.api.codec import DecodeError
from runup.api.owned_v1 import OwnedWorkload
from runup.controllers.payload.failing import KindMissing, problem_of, words_of
from runup.controllers.payload.putting import Putting
from runup.controllers.payload.trimming import trim
from runup.domain.errors import Terminal
from runup.domain.payload import operators, workloads
from runup.domain.payload.graph import Node, everything_before, graph_of
from runup.domain.payload.operators import wants_versions
from runup.domain.payload.problems import Effect, Problem
from runup.domain.payload.progress import State
from runup.domain.payload.task import Task
from runup.domain.release.manifest import Identity
from runup.kube.clock import Clock
from runup.kube.errors import KubeError, NotFound, Transient

log = structlog.get_logger("payload")
# Attempts at one task until its failure is told, and the longest pause between two.
TOLD_AFTER = 4
LONGEST_PAUSE_S = 15.0
# What is there already, or comes by itself in a moment, is waited for so long before the server is asked all the same.
BEFORE_ASKING_S = 10.0
# Once the operator's own Deployment is of the new release, the rest is the next operator's, if one comes.
HANDOVER_S = 120.0
# An object that somebody else keeps changing is put back later and later.
LONGEST_REPAIR_S = 60.0
CALM_AFTER_S = 120.0
# Every object is applied anew once in that time, one by one: for what no watch tells.
FULL_PASS_S = 24 * 3600.0
CLUSTER_OPERATOR = operators.KIND


class Run:
    """`told` is called whenever `done`, `problems` or `state` have changed, with whether that cannot wait.

    `served` is called with each group and kind that a definition of the release has brought, `failed` after each
    attempt that did.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        state: State,
        *,
        putting: Putting,
        clock: Clock,
        since: dict[str, datetime],
        told: Callable[[bool], None],
        served: Callable[[str, str], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.state = state
        self.total = len(tasks)
        self.completed = False
        self.done: set[int] = set()
        self.problems: dict[int, Problem] = {}
        self._graph = graph_of(tasks, state)
        self._putting = putting
        self._clock = clock
        self._since = since
        self._told = told
        self._served = served
        self._failed = failed
        self._tasks = {task.identity: task for task in tasks}
        self._node_of = {task.index: number for number, node in enumerate(self._graph) for task in node.tasks}
        self._before = everything_before(self._graph)
        self._versions = {
            task.index: wants_versions(task.manifest.object) for task in tasks if task.kind == CLUSTER_OPERATOR
        }
        self._finished: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._ended = [asyncio.Event() for _ in self._graph]
        self._listening: dict[Identity, set[asyncio.Event]] = defaultdict(set)
        self._repaired: dict[Identity, tuple[float, float]] = {}
        self._repairing: set[Identity] = set()
        self._group: asyncio.TaskGroup | None = None
        self._ours = asyncio.Event()
        self._ours.set()

    async def go(self) -> None:
        """Apply all, then keep it so; ends only by being cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for number, node in enumerate(self._graph):
                group.create_task(self._node(number, node))
            for task in self._tasks.values():
                await self._finished[task.index].wait()
            log.info("applied", objects=len(self.done), requests=self._putting.writes)
            trim()
            self.completed, self.state = True, State.RECONCILING
            for task in self._tasks.values():
                self._look_after(task)
            self._told(True)
            await self._over_and_over()

    def changed(self, identity: Identity) -> None:
        """The object changed, came or went."""
        for event in self._listening.get(identity, ()):
            event.set()
        task = self._tasks.get(identity)
        if task is None or task.index not in self.done:
            return
        self._look_after(task)
        if identity not in self._repairing and self._group is not None and self._putting.drifted(task):
            self._repairing.add(identity)
            self._group.create_task(self._repair(task))

    def operators_listed(self) -> None:
        """The list of ClusterOperators came, or could not be had."""
        for task in self._tasks.values():
            if task.kind == CLUSTER_OPERATOR:
                self.changed(task.identity)

    def surroundings_changed(self) -> None:
        """What objects are given of the cluster changed: whatever looks otherwise now is put anew."""
        for identity in list(self._tasks):
            self.changed(identity)

    async def _node(self, number: int, node: Node) -> None:
        for before in node.after:
            await self._ended[before].wait()
        await self._precreate(node)
        for task in node.tasks:
            await self._do(task)
        self._ended[number].set()

    async def _precreate(self, node: Node) -> None:
        """So that conditions and must-gather have an object to hang on. What fails is tried again in its turn."""
        assert self._group is not None
        for task in node.tasks:
            if task.kind == CLUSTER_OPERATOR and not task.deletes:
                self._group.create_task(self._try(task))

    async def _try(self, task: Task) -> None:
        try:
            await self._ours.wait()
            await self._awaited(task)
            await self._putting.put(task)
        except (KubeError, DecodeError, Terminal, KindMissing) as error:
            log.debug("not created ahead", task=str(task), error=words_of(error))

    async def _do(self, task: Task) -> None:
        await self._ours.wait()
        await self._awaited(task)
        hands_over = self.state is State.UPDATING and self._putting.hands_over(task)
        if not await self._insist(task):
            self._postpone(task)
            return
        if hands_over:
            await self._hand_over(task)
        await self._well(task)
        self.done.add(task.index)
        self._finished[task.index].set()
        for group, kind in self._putting.defined_by(task):
            self._served(group, kind)
        if self._putting.drifted(task):
            self.changed(task.identity)
        self._told(False)

    async def _insist(self, task: Task) -> bool:
        """Put it, however often that takes; False where it cannot be before something that comes after it."""
        attempts, waited = 0, False
        while True:
            try:
                await self._putting.put(task, updating=self.state is State.UPDATING)
            except (KubeError, DecodeError, Terminal, KindMissing) as error:
                if isinstance(error, KindMissing | NotFound):
                    if any(self._later(task)):
                        return False
                    if needed := [*self._needs(task)]:
                        waited = True
                        await self._in_vain(task, needed)
                        continue
                attempts += 1
                problem = problem_of(task, error)
                log.warning("could not be applied", task=str(task), error=words_of(error), attempts=attempts)
                self._failed()
                if attempts >= TOLD_AFTER or isinstance(error, Terminal):
                    self._tell(task, problem)
                await self._pause(task, attempts, error)
            else:
                break
        if attempts or waited:
            self._tell(task, None)
        return True

    async def _in_vain(self, task: Task, needed: Sequence[Task]) -> None:
        """It came before what it needs, which is on its way: that is waited for, and is no failure of this one."""
        text = f"{task} is waiting on {', '.join(map(str, needed))}"
        self._tell(task, Problem("WaitingForObject", text, Effect.NONE))
        await self._within(LONGEST_PAUSE_S, *(self._finished[other.index] for other in needed))

    def _postpone(self, task: Task) -> None:
        """Leave its turn to what comes after it, and do it once that is there: in its place it would wait for ever."""
        assert self._group is not None
        needed = [*self._later(task)]
        text = f"waiting on {', '.join(map(str, needed))}, which comes after {task}"
        log.info("postponed", task=str(task), until=[str(other) for other in needed])
        self._tell(task, Problem("WaitingForObject", text, Effect.NONE))
        self._group.create_task(self._after(task, needed))

    async def _after(self, task: Task, needed: Sequence[Task]) -> None:
        for other in needed:
            await self._finished[other.index].wait()
        await self._do(task)

    async def _hand_over(self, task: Task) -> None:
        """Leave the rest to the operator that replaces this one: two of them would write the same in turns."""
        log.info("the new operator goes on from here", task=str(task))
        self._ours.clear()
        self._told(True)
        await self._clock.sleep(HANDOVER_S)
        log.warning("no new operator came, so this one goes on", waited_s=HANDOVER_S)
        self._ours.set()

    async def _pause(self, task: Task, attempts: int, error: Exception) -> None:
        """Until the next attempt: what the server asks for, else longer each time, or until what it needs is there."""
        asked = error.retry_after_s if isinstance(error, Transient) else None
        seconds = min(max(2.0 ** min(attempts - 1, 10), asked or 0), max(LONGEST_PAUSE_S, asked or 0))
        needed = [self._finished[other.index] for other in self._needs(task)]
        await (self._within(seconds, *needed) if needed else self._clock.sleep(seconds))

    async def _awaited(self, task: Task) -> None:
        """Wait for definition and namespace if the release has them: asking before is a request for nothing."""
        needed = [self._finished[other.index] for other in self._needs(task)]
        if needed and not self._putting.in_place(task):
            await self._within(BEFORE_ASKING_S, *needed)

    def _needs(self, task: Task) -> Iterator[Task]:
        """The tasks of this release that must be done before, and are not; none that comes later."""
        later = {other.index for other in self._later(task)}
        yield from (each for each in self._putting.needs(task) if each.index not in self.done | later)

    def _later(self, task: Task) -> Iterator[Task]:
        """Those of them whose turn comes only when that of `task` is over."""
        node = self._node_of[task.index]
        for other in self._putting.needs(task):
            theirs = self._node_of[other.index]
            after = other.index > task.index if theirs == node else node in self._before[theirs]
            if after and other.index not in self.done:
                yield other

    async def _within(self, seconds: float, *events: asyncio.Event) -> None:
        async def all_() -> None:
            for event in events:
                await event.wait()

        work = [asyncio.ensure_future(all_()), asyncio.ensure_future(self._clock.sleep(seconds))]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in work:
                each.cancel()

    async def _well(self, task: Task) -> None:
        """Wait until what was put is as it should be."""
        with self._changes(task.identity) as event:
            while True:
                event.clear()
                if self._putting.drifted(task):
                    await self._insist(task)
                problem = self._health(task)
                self._tell(task, problem)
                if problem is None or problem.effect is Effect.REPORT:
                    self._putting.well(task)
                    return
                # An operator that just was asked is given a moment before it counts as unavailable.
                await self._within(operators.GRACE.total_seconds(), event)

    def _health(self, task: Task) -> Problem | None:
        if task.deletes:
            return None
        if task.kind == CLUSTER_OPERATOR:
            return self._operator(task)
        seen = self._putting.seen(task)
        return workloads.problem_of(task, seen if isinstance(seen, OwnedWorkload) else None, self.state)

    def _operator(self, task: Task) -> Problem | None:
        name = task.identity.name
        cache = self._putting.operators
        if not cache.synced:
            why = f": {cache.error}" if cache.error else ""
            return Problem("WaitingForObject", f"waiting on the list of ClusterOperators{why}", Effect.NONE)
        now = self._clock.now()
        since = self._since.setdefault(name, now)
        found = self._putting.operator(name)
        problem = operators.problem_of(name, self._versions[task.index], found, self.state, since, now)
        if problem is None:
            self._since.pop(name, None)
        return problem

    def _look_after(self, task: Task) -> None:
        """What is done is judged on, as long as it is kept."""
        if self.completed and task.identity not in self._repairing:
            self._tell(task, self._health(task))

    def _tell(self, task: Task, problem: Problem | None) -> None:
        before = self.problems.get(task.index)
        if before == problem:
            return
        if problem is None:
            del self.problems[task.index]
        else:
            self.problems[task.index] = problem
        edge = before is None or problem is None or before.reason != problem.reason
        failing = any(each is not None and each.effect is not Effect.NONE for each in (before, problem))
        self._told(edge and failing)

    async def _repair(self, task: Task) -> None:
        """Put back what somebody changed; whoever keeps changing it is given in to for a while, later and later."""
        identity = task.identity
        again, pause = self._last_repair(identity, self._clock.monotonic())
        log.info("put back", task=str(task), again=again)
        if pause:
            await self._clock.sleep(pause)
        try:
            await self._insist(task)
            await self._well(task)
        finally:
            self._repairing.discard(identity)
        self.changed(identity)

    def _last_repair(self, identity: Identity, now: float) -> tuple[bool, float]:
        """Whether it was repaired shortly before, and how long to wait this time."""
        at, pause = self._repaired.get(identity, (-CALM_AFTER_S, 0.0))
        again = now - at < CALM_AFTER_S + pause
        pause = min(max(pause * 2, 1.0), LONGEST_REPAIR_S) if again else 0.0
        self._repaired[identity] = (now, pause)
        return again, pause

    async def _over_and_over(self) -> None:
        """One object after the other, all of them in a day: a safety net that nobody notices."""
        while True:
            if not self._tasks:  # nothing of the release is meant for this cluster
                await self._clock.sleep(FULL_PASS_S)
            for task in list(self._tasks.values()):
                await self._clock.sleep(FULL_PASS_S / len(self._tasks))
                if task.deletes or task.identity in self._repairing:
                    continue
                try:
                    await self._putting.put(task, anew=True)
                except (KubeError, DecodeError, Terminal, KindMissing) as error:
                    log.warning("could not be applied anew", task=str(task), error=words_of(error))

    @contextmanager
    def _changes(self, identity: Identity) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._listening[identity].add(event)
        try:
            yield event
        finally:
            self._listening[identity].discard(event)
            if not self._listening[identity]:
                del self._listening[identity]
