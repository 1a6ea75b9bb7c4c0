"""Reapplies objects that another writer keeps changing, with growing delays, and reports them in events."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import structlog

from kubekit.kube.clock import Clock
from runup.api.owned_v1 import OwnedWorkload
from runup.applying.control.retry import RunProgress, TaskRetrier
from runup.applying.decide import health
from runup.applying.decide.health import CLUSTER_OPERATOR, wants_versions
from runup.applying.decide.progress import Effect, Problem
from runup.applying.decide.task import Task
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")
MAX_REPAIR_DELAY_S = 60.0
REPAIR_RESET_S = 120.0
# The pause from which on somebody insists: an object was put back five times in a quarter of a minute then.
CONTESTED_PAUSE_S = 8.0
OnContested = Callable[[Task], Awaitable[None]]


class Contention:
    """The objects that were put back, and when. `contested` is called with the task of each that is changed on."""

    def __init__(self, clock: Clock, contested: OnContested) -> None:
        self._clock = clock
        self._contested = contested
        self._repaired: dict[Identity, tuple[float, float]] = {}

    async def wait(self, task: Task) -> None:
        """Waits until the object of `task` must be put back: at once the first time, then ever later, up to 60 s."""
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


class HealthChecker:
    """The health checks of one run. `since` holds when each ClusterOperator that is not ready was first waited for."""

    def __init__(
        self, progress: RunProgress, retrier: TaskRetrier, contention: Contention, since: dict[str, datetime]
    ) -> None:
        self._progress = progress
        self._contention = contention
        self._applier = progress.applier
        self._retrier = retrier
        self._since = since
        self._versions = {
            task.index: wants_versions(task.manifest.object)
            for task in progress.tasks.values()
            if task.kind == CLUSTER_OPERATOR
        }
        self._listening: dict[Identity, set[asyncio.Event]] = defaultdict(set)

    def changed(self, identity: Identity) -> None:
        """Wakes everything that waits for the object, so that it is evaluated again."""
        for event in self._listening.get(identity, ()):
            event.set()

    async def wait_until_healthy(self, task: Task) -> None:
        """Waits until the object of `task` is healthy, and applies it again if it drifts meanwhile."""
        with self.changes(task.identity) as event:
            while True:
                event.clear()
                if self._applier.drifted(task):
                    await self._contention.wait(task)
                    await self._retrier.apply_until_done(task)
                problem = self.health(task)
                self._progress.record(task, problem)
                # A problem with effect REPORT stops nothing, so the tasks that wait for this one continue.
                if problem is None or problem.effect is Effect.REPORT:
                    self._applier.record_healthy(task)
                    return
                # Time alone changes the verdict: an operator counts as unavailable only after operators.GRACE.
                await self._progress.within(health.UNAVAILABLE_GRACE.total_seconds(), event)

    async def wait_until_rolled_out(self, task: Task) -> None:
        """Waits until the workload of `task`, which is applied, is healthy and runs what the release wants."""
        with self.changes(task.identity) as event:
            while True:
                event.clear()
                problem = self.health(task) or health.unfinished_rollout(task, self._workload(task))
                self._progress.record(task, problem)
                if problem is None:
                    return
                await event.wait()

    def health(self, task: Task) -> Problem | None:
        """Returns why the object of `task` is not healthy, None if it is."""
        if task.deletes:
            return None
        if task.kind == CLUSTER_OPERATOR:
            return self._operator(task)
        return health.problem_of(task, self._workload(task), self._progress.state)

    def _workload(self, task: Task) -> OwnedWorkload | None:
        latest = self._applier.latest(task)
        return latest if isinstance(latest, OwnedWorkload) else None

    def _operator(self, task: Task) -> Problem | None:
        """Returns why the task's ClusterOperator is not healthy yet, None if it is."""
        name = task.identity.name
        cache = self._applier.operators
        if not cache.synced:
            why = f": {cache.error}" if cache.error else ""
            return Problem(
                reason="WaitingForObject", message=f"waiting on the list of ClusterOperators{why}", effect=Effect.NONE
            )
        now = self._progress.clock.now()
        since = self._since.setdefault(name, now)
        operator = self._applier.operator(name)
        problem = health.operator_problem(
            name, self._versions[task.index], operator=operator, state=self._progress.state, since=since, now=now
        )
        if problem is None:
            self._since.pop(name, None)
        return problem

    @contextmanager
    def changes(self, identity: Identity) -> Iterator[asyncio.Event]:
        """Yields an event that is set whenever the object changes; it is listened for until the context ends."""
        event = asyncio.Event()
        self._listening[identity].add(event)
        try:
            yield event
        finally:
            self._listening[identity].discard(event)
            if not self._listening[identity]:
                del self._listening[identity]
