"""Applies a release to the copy, with stand-ins for missing components, and records what would be reported."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound, ServerError, Unreachable
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.apiserver.metadata import rfc3339
from kubesandbox.apiserver.store import Entry
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import Owned, OwnedWorkload
from runup.applying.control.cluster_values import ClusterValuesWatcher
from runup.applying.control.object_applier import Memory, ObjectApplier, ObjectDeleter, digests_of
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.task_errors import KindMissing, Notices, error_message
from runup.applying.decide import health
from runup.applying.decide.contesting_writers import Notice
from runup.applying.decide.health import CLUSTER_OPERATOR, DAEMON_SET, DEPLOYMENT, JOB, KINDS, wants_versions
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task
from runup.applying.decide.task_graph import Graph, everything_before, graph_of
from runup.process.steps import each
from runup.rehearse.control.cluster_copy import DEFINITION, ClusterCopy
from runup.rehearse.decide.rehearsal_outcome import Wait
from runup.release.decide.manifest import Identity


class UnwatchedObjects(ObjectWatches):
    """A stand-in for watches that knows no object, so that every object of the release is written."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock, lambda _identity: None)

    def follow(self, resource: Resource) -> Cache[Owned]:
        """Returns an empty cache; see `ObjectWatches.follow`."""
        del resource
        return Cache(Owned)

    async def follow_single(self, resource: Resource, identity: Identity) -> None:
        """Does nothing; see `ObjectWatches.follow_single`."""


class KeptNotices(Notices):
    """Keeps what would be events on ClusterVersion: the messages by object."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock)
        self.messages: dict[Identity, str] = {}

    async def emit(self, notice: Notice) -> None:
        """Keeps the notice; see `Notices.emit`."""
        self.messages[notice.task.identity] = notice.message


@contextmanager
def silence_logs() -> Iterator[None]:
    """Discards within the block what an operator logs while it applies a release; critical messages go to stderr.

    The result of the command is on stdout, where structlog logs by default.
    """
    configured, previous_config = structlog.is_configured(), structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        if configured:
            structlog.configure(**previous_config)
        else:
            structlog.reset_defaults()


JSON = dict[str, Any]
MANAGER = "runup-rehearse"
STUCK = "stuck:"


class StandIns:
    """The stand-ins of one rehearsal; `stuck` are the ClusterOperators that report nothing new."""

    def __init__(self, copied: ClusterCopy, client: Client, clock: Clock, stuck: Collection[str]) -> None:
        self._copied, self._client, self._clock = copied, client, clock
        self._stuck = frozenset(stuck)

    def is_stuck(self, task: Task) -> bool:
        """Returns whether the object of `task` was declared stuck."""
        return task.kind == CLUSTER_OPERATOR and task.identity.name in self._stuck

    async def write_status_for(self, task: Task) -> None:
        """Writes the status that the object's component would write once the update has reached it. Raises KubeError.

        Does nothing for objects that were declared stuck, and for kinds without a status to wait for.
        """
        obj = self._copied.get(task.identity)
        kind = self._copied.kind_of(*task.kind)
        if obj is None or kind is None or self.is_stuck(task):
            return
        status = self._status_when_done(task, obj)
        if status is None:
            return
        resource = Resource(
            group=kind.group, version=kind.version, kind=kind.kind, plural=kind.plural, namespaced=kind.namespaced
        )
        name, namespace = task.identity.name, task.identity.namespace
        patch = {"status": status}
        await self._client.send(
            calls.merge_patch(resource, name, patch, namespace, subresource="status", field_manager=MANAGER)
        )

    def _status_when_done(self, task: Task, obj: JSON) -> JSON | None:
        """Returns the status, as a merge patch; None for a kind that no operator waits for."""
        now = rfc3339(self._clock.now())
        generation = (obj.get("metadata") or {}).get("generation", 1)
        if task.kind == CLUSTER_OPERATOR:
            versions = [
                {"name": operand.name, "version": operand.version} for operand in wants_versions(task.manifest.object)
            ]
            states = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}
            return {"versions": versions, "conditions": _conditions(states, now)}
        if task.kind == DEPLOYMENT:
            replicas = (obj.get("spec") or {}).get("replicas", 1)
            numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
            conditions = _conditions({"Available": "True", "Progressing": "True"}, now)
            return {"observedGeneration": generation, **numbers, "conditions": conditions}
        if task.kind == DAEMON_SET:
            status = obj.get("status") or {}
            replicas = status.get("desiredNumberScheduled", 0)
            names = ("currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
            return {"observedGeneration": generation, **dict.fromkeys(names, replicas), "numberUnavailable": 0}
        if task.kind == JOB:
            # A server from 1.31 on takes no Job as complete without its times and the condition before.
            conditions = _conditions({"SuccessCriteriaMet": "True", "Complete": "True"}, now)
            return {"succeeded": 1, "startTime": now, "completionTime": now, "conditions": conditions}
        return None


def _conditions(states: dict[str, str], now: str) -> list[JSON]:
    return [
        {"type": type_, "status": status, "reason": "AsExpected", "message": "", "lastTransitionTime": now}
        for type_, status in states.items()
    ]


def stuck_operators(declared: Collection[str]) -> tuple[str, ...]:
    """Returns the names in `stuck:NAME` words. Raises ValueError for another word."""
    names = []
    for text in declared:
        if not text.startswith(STUCK) or not text.removeprefix(STUCK):
            raise ValueError(text)
        names.append(text.removeprefix(STUCK))
    return tuple(names)


FAILURES = (KubeError, codec.DecodeError, Terminal, KindMissing)
# In the words of the copy's server: what it lacks memory for, and what its disk does not take.
WANT_OF_MEMORY = ("Internal error occurred: MemoryError", "can't start new thread")
WANT_OF_ROOM = "storage: "
_ENDS_COPY = (*WANT_OF_MEMORY, f"Internal error occurred: {WANT_OF_ROOM}")


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that could not be carried out, and the error.

    `by_copy`: the copy failed, not the release. Then it is not known what the cluster would answer.
    """

    task: Task
    error: Exception
    by_copy: bool = False

    @property
    def message(self) -> str:
        """The server's own words."""
        if isinstance(self.error, KindMissing):
            return f"the API server does not serve {self.error}"
        return error_message(self.error)


@dataclass(kw_only=True)
class RunResult:
    """The result of applying a release to a copy.

    `before` has every object of the release as it was before, None if there was none. `failures` and `tried` are by
    the task's index. `waits` are objects that an operator would wait for, `notices` the operator's own by object.
    `too_late` says at which task the time limit was reached; it is empty if there was time for all.
    """

    tasks: Sequence[Task]
    before: dict[Identity, Entry | None] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    notices: Mapping[Identity, str] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    too_late: str = ""


class ReleaseRun:
    """The application of one release to a copy, which starts no further task after `deadline` (monotonic seconds).

    `stand_ins` report in place of the components, `operator` is namespace and name of the operator's own Deployment,
    and `owner_uid` the UID of the ClusterVersion that owns what is created.
    """

    def __init__(
        self,
        copied: ClusterCopy,
        client: Client,
        tasks: Sequence[Task],
        *,
        clock: Clock,
        stand_ins: StandIns,
        operator: tuple[str, str],
        owner_uid: str,
        deadline: float,
    ) -> None:
        self._copied, self._client, self._clock, self._stand_ins = copied, client, clock, stand_ins
        self._tasks, self._operator, self._owner_uid, self._deadline = tasks, operator, owner_uid, deadline
        self._graph = graph_of(tasks, ApplyReason.UPDATING)

    async def run_all(self) -> RunResult:
        """Carries out every task once, in the operator's order, and those that failed for want of a later one again."""
        result = RunResult(tasks=self._tasks)
        result.before = {task.identity: self._copied.entry(task.identity) for task in self._tasks}
        watcher = ClusterValuesWatcher(self._client, self._clock, self._operator, lambda: None)
        watcher.wanted(self._tasks, self._owner_uid)
        notices = KeptNotices(self._client, self._clock)
        deleter = ObjectDeleter(self._client, self._clock, lambda _urgent: None)
        try:
            await watcher.settled()
            applier = self._make_applier(watcher, notices, deleter)
            await self._apply_each(applier, [task for node in self._graph for task in node.tasks], result)
            await self._retry_failed(applier, result)
        finally:
            await deleter.close()
            await watcher.close()
        result.notices = notices.messages
        return result

    def _make_applier(
        self, watcher: ClusterValuesWatcher, notices: KeptNotices, deleter: ObjectDeleter
    ) -> ObjectApplier:
        """Returns the applier that an update uses, on the copy and without caches."""
        kinds = ResourceDiscovery(self._client)
        kinds.define([task.manifest for task in self._tasks])
        return ObjectApplier(
            self._tasks,
            client=self._client,
            kinds=kinds,
            tracking=UnwatchedObjects(self._client, self._clock),
            deleting=deleter,
            operators=Cache(ClusterOperator),
            memory=Memory(),
            digests=digests_of(self._tasks, watcher.cluster_values),
            cluster_values=lambda: watcher.cluster_values,
            notices=notices,
        )

    async def _apply_each(self, applier: ObjectApplier, tasks: Sequence[Task], result: RunResult) -> None:
        """Applies the tasks one after the other until the deadline."""
        for task in each(tasks, "Applying objects of the release"):
            if self._clock.monotonic() > self._deadline:
                result.too_late = f"the time limit was reached at {task}"
                return
            await self._apply_one(applier, task, result)

    async def _apply_one(self, applier: ObjectApplier, task: Task, result: RunResult) -> None:
        """Applies a task to the copy once, and notes in `result` a failure, or what an operator would wait for.

        After a success the object gets the status that its component would write, since no component runs on the copy.
        Raises KubeError if the copy cannot continue, which ends the rehearsal.
        """
        result.tried.add(task.index)
        try:
            await applier.apply_or_delete(task, updating=True)
        except FAILURES as error:
            _raise_if_copy_ended(error)
            result.failures[task.index] = Failure(task, error, by_copy=_is_copy_failure(error))
            return
        result.failures.pop(task.index, None)
        if task.deletes:
            return
        try:
            if task.kind == DEFINITION:
                await self._copied.wait_until_served(self._copied.get(task.identity) or {})
            await self._stand_ins.write_status_for(task)
        except (KubeError, Terminal) as error:
            _raise_if_copy_ended(error)
            # Without a status it is not known whether an operator would continue.
            result.failures[task.index] = Failure(task, error, by_copy=True)
            return
        problem = None
        obj = self._copied.get(task.identity)
        now = self._clock.now()
        if task.kind == CLUSTER_OPERATOR:
            operator = codec.convert(ClusterOperator, obj) if obj is not None else None
            target_versions = wants_versions(task.manifest.object)
            problem = health.operator_problem(
                task.identity.name, target_versions, operator=operator, state=ApplyReason.UPDATING, since=now, now=now
            )
        elif task.kind in KINDS and obj is not None:
            workload = codec.convert(OwnedWorkload, obj)
            problem = health.problem_of(task, workload, ApplyReason.UPDATING)
        if problem is not None:
            result.waits.append(Wait(task.identity, task.index, problem.message, count_behind(self._graph, task)))

    async def _retry_failed(self, applier: ObjectApplier, result: RunResult) -> None:
        """Retries the tasks that lacked an object which a later task may have created, for as long as that helps."""
        while not result.too_late:
            missing = [
                failure.task
                for failure in result.failures.values()
                if isinstance(failure.error, KindMissing | NotFound)
            ]
            await self._apply_each(applier, missing, result)
            if all(task.index in result.failures for task in missing):
                return


def _is_copy_failure(error: Exception) -> bool:
    """Returns whether the copy's own API server failed at a request, which says nothing about the release."""
    # No release makes a server fail; what a policy says has another reason.
    return isinstance(error, ServerError) and "Internal error occurred: " in error.message


def _raise_if_copy_ended(error: Exception) -> None:
    """Raises the error again if the next request will fare no better: no server, no room, no memory."""
    if isinstance(error, Unreachable) or (_is_copy_failure(error) and any(sign in str(error) for sign in _ENDS_COPY)):
        raise error


def count_behind(graph: Graph, task: Task) -> int:
    """Returns how many tasks an operator does only after `task` is done."""
    number = next(index for index, node in enumerate(graph) if task in node.tasks)
    tasks = graph[number].tasks
    task_counts = (
        len(node.tasks)
        for node, nodes_before in zip(graph, everything_before(graph), strict=True)
        if number in nodes_before
    )
    return len(tasks) - tasks.index(task) - 1 + sum(task_counts)
