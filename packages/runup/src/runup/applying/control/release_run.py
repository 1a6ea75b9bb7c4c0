"""Returns memory that was needed to read a release to the system, with glibc's malloc_trim(3).

glibc keeps the memory that libyaml and JSON have freed: a tenth of the operator's memory, which is not needed again for
an hour.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from kubekit.kube.clock import Clock
from runup.applying.control.health_checker import Contention, HealthChecker
from runup.applying.control.object_applier import ObjectApplier
from runup.applying.control.retry import FAILURES, RunProgress, TaskRetrier
from runup.applying.control.task_errors import error_message
from runup.applying.decide.health import CLUSTER_OPERATOR, DEFINITION, ROLLED_OUT
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.task import Task
from runup.applying.decide.task_graph import Node, after_definitions
from runup.release.decide.manifest import Identity


def trim() -> None:
    """Returns free memory to the system; does nothing if the C library has no `malloc_trim`."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return


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
        """Evaluates the health of `task` again, if the release is completed and the task is not being repaired."""
        if self._progress.completed and task.identity not in self.repairing:
            self._progress.record(task, self._health_checker.health(task))

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
                    await self._applier.apply_or_delete(task, reapply=True)
                except FAILURES as error:
                    log.warning("could not be applied again", task=str(task), error=error_message(error))


# Once the operator's own Deployment has the new image, the run pauses this long for the new operator to take over.
HANDOVER_S = 120.0


class Run:
    """The application of one release.

    `on_result` is called whenever `done`, `problems` or `state` change, with True if the change is urgent. `served` is
    called with each group and kind that a CustomResourceDefinition of the release has established, `failed` after every
    failed attempt.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        state: ApplyReason,
        *,
        applier: ObjectApplier,
        clock: Clock,
        since: dict[str, datetime],
        on_result: Callable[[bool], None],
        served: Callable[[str, str], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.progress = progress = RunProgress(tasks, state, applier=applier, clock=clock, on_result=on_result)
        self._retrier = TaskRetrier(progress, failed)
        contention = Contention(clock, applier.tell_contested)
        self._health_checker = HealthChecker(progress, self._retrier, contention, since)
        self._drift_repair = DriftRepairer(progress, self._retrier, self._health_checker, contention)
        self._applier = applier
        self._served = served
        self._ended = [asyncio.Event() for _ in progress.graph]
        self._group: asyncio.TaskGroup | None = None
        # Not set while this operator waits for its successor to take over.
        self._ours = asyncio.Event()
        self._ours.set()

    @property
    def state(self) -> ApplyReason:
        """The reason to apply the release: `Reconciling` once all tasks were done."""
        return self.progress.state

    @property
    def completed(self) -> bool:
        """Returns whether all tasks were done at least once."""
        return self.progress.completed

    @property
    def done(self) -> int:
        """The number of tasks that are done."""
        return len(self.progress.done)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The current problems of tasks, in the order of the tasks."""
        return tuple(problem for _, problem in sorted(self.progress.problems.items(), key=lambda entry: entry[0]))

    async def go(self) -> None:
        """Applies all tasks, then keeps them applied; ends only by being cancelled."""
        progress = self.progress
        async with asyncio.TaskGroup() as group:
            self._group = group
            for number, node in enumerate(progress.graph):
                group.create_task(self._apply_node(number, node))
            await progress.finished(*progress.tasks.values())
            log.info("applied", objects=self.done, requests=self._applier.writes)
            trim()
            group.create_task(self._drift_repair.reapply_daily())
            await self._rolled_out()
            progress.completed, progress.state = True, ApplyReason.RECONCILING
            for task in progress.tasks.values():
                self._drift_repair.look_after(task)
            progress.on_result(True)

    def changed(self, identity: Identity) -> None:
        """Handles that the object was added, changed or deleted."""
        self._health_checker.changed(identity)
        task = self.progress.tasks.get(identity)
        if task is None or task.index not in self.progress.done:
            return
        self._drift_repair.look_after(task)
        if self._group is not None and self._drift_repair.must_repair(task):
            self._group.create_task(self._repair(task))

    def operators_listed(self) -> None:
        """Handles that the ClusterOperators were listed, or could not be listed."""
        for task in self.progress.tasks.values():
            if task.kind == CLUSTER_OPERATOR:
                self.changed(task.identity)

    def cluster_values_changed(self) -> None:
        """Handles that the cluster's values changed: objects that render differently now are applied again."""
        for identity in list(self.progress.tasks):
            self.changed(identity)

    async def _apply_node(self, number: int, node: Node) -> None:
        """Applies one node of the task graph after those before it, and waits until its objects are healthy."""
        for before in node.after:
            await self._ended[before].wait()
        await self._precreate(node)
        async with asyncio.TaskGroup() as group:
            defining: set[asyncio.Task[None]] = set()
            for task in node.tasks:
                if defining and after_definitions(task):
                    await asyncio.wait(defining)
                if not await self._put_task(task):
                    continue
                if task.kind == DEFINITION and not task.deletes:
                    defining.add(group.create_task(self._see_well(task)))
                else:
                    await self._see_well(task)
        self._ended[number].set()

    async def _precreate(self, node: Node) -> None:
        """Creates the ClusterOperators of `node` ahead, so that their operators' conditions and must-gather find them.

        A failure is only logged: the object is applied again in its turn.
        """
        assert self._group is not None
        for task in node.tasks:
            if task.kind == CLUSTER_OPERATOR and not task.deletes:
                self._group.create_task(self._create_ahead(task))

    async def _create_ahead(self, task: Task) -> None:
        """Tries once to create the object of a task before its turn; a failure is only logged."""
        try:
            await self._ours.wait()
            await self._retrier.wait_for_dependencies(task)
            await self._applier.apply_or_delete(task)
        except FAILURES as error:
            log.debug("not created ahead", task=str(task), error=error_message(error))

    async def _put_task(self, task: Task) -> bool:
        """Applies `task` after its dependencies; returns whether it was applied (False: postponed)."""
        await self._ours.wait()
        await self._retrier.wait_for_dependencies(task)
        hands_over = self.state is ApplyReason.UPDATING and self._applier.hands_over(task)
        if not await self._retrier.apply_until_done(task):
            self._postpone_task(task)
            return False
        if hands_over:
            await self._hand_over(task)
        return True

    async def _see_well(self, task: Task) -> None:
        """Waits until the applied object is healthy, and reports the task as finished."""
        await self._health_checker.wait_until_healthy(task)
        self.progress.finish(task)
        for group, kind in self._applier.defined_by(task):
            self._served(group, kind)
        # `changed` ignores events of unfinished tasks, so a change that came just before must be looked up here.
        if self._applier.drifted(task):
            self.changed(task.identity)
        self.progress.on_result(False)

    async def _rolled_out(self) -> None:
        """Waits until every workload of the release runs what the release wants.

        Why here? A series does not wait for its workloads to roll out, because what they need to make their pods may
        come later in it: rights, a webhook's Service.
        """
        async with asyncio.TaskGroup() as group:
            for task in self.progress.tasks.values():
                if task.kind in ROLLED_OUT:
                    group.create_task(self._health_checker.wait_until_rolled_out(task))

    def _postpone_task(self, task: Task) -> None:
        """Applies `task` after the later tasks that it depends on: in its own place it would wait for ever."""
        assert self._group is not None
        needed = [*self.progress.later(task)]
        text = f"waiting on {', '.join(map(str, needed))}, which comes after {task}"
        log.info("postponed", task=str(task), until=[str(other) for other in needed])
        self.progress.record(task, Problem(reason="WaitingForObject", message=text, effect=Effect.NONE))
        self._group.create_task(self._apply_after(task, needed))

    async def _apply_after(self, task: Task, needed: Sequence[Task]) -> None:
        await self.progress.finished(*needed)
        if await self._put_task(task):
            await self._see_well(task)

    async def _hand_over(self, task: Task) -> None:
        """Pauses the run, so that this operator and the one that replaces it do not both write."""
        log.info("the new operator continues from here", task=str(task))
        self._ours.clear()
        self.progress.on_result(True)
        await self.progress.clock.sleep(HANDOVER_S)
        log.warning("no new operator came, so this one continues", waited_s=HANDOVER_S)
        self._ours.set()

    async def _repair(self, task: Task) -> None:
        await self._drift_repair.repair(task)
        self.changed(task.identity)
