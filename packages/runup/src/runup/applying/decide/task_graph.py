"""The task graph: nodes of tasks that are done in sequence, and the nodes that each node waits for.

An update goes run level by run level, with the components of a level in parallel. Installing and reconciling do all
levels in parallel. A Job is a barrier in either: tasks before it come first, tasks after it wait
(docs/reference/upstream.md 4.2). Within a node CustomResourceDefinitions are an exception: nothing waits for one until
something would use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from runup.applying.decide.health import CLUSTER_OPERATOR, DAEMON_SET, DEPLOYMENT, JOB
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task
from runup.release.decide.manifest import FileName, file_name


@dataclass(frozen=True, slots=True)
class Node:
    """Tasks that are done in sequence, and the indexes of the nodes that come before."""

    tasks: tuple[Task, ...]
    after: frozenset[int] = frozenset()


Graph = tuple[Node, ...]
Bucket = tuple[tuple[Task, ...], ...]


def graph_of(tasks: Sequence[Task], state: ApplyReason) -> Graph:
    """Returns the graph for applying `tasks` in `state`; `tasks` are in the order of the release."""
    nodes: list[Node] = []
    before: frozenset[int] = frozenset()
    for bucket in _buckets_for_state(tasks, state):
        first = len(nodes)
        nodes.extend(Node(group, before) for group in bucket)
        before = frozenset(range(first, len(nodes)))
    return tuple(nodes)


def everything_before(graph: Graph) -> tuple[frozenset[int], ...]:
    """Returns, for each node, the indexes of all nodes that are done before it starts, directly or indirectly."""
    predecessors: list[frozenset[int]] = []
    for node in graph:  # in topological order: a node follows those that it waits for
        predecessors.append(node.after.union(*(predecessors[before] for before in node.after)))
    return tuple(predecessors)


def after_definitions(task: Task) -> bool:
    """Returns whether `task` waits until the definitions before it in its node are established (docs/decisions/0067).

    Workloads, ClusterOperators and deletions do. Other objects do not. A custom resource waits for its own
    CustomResourceDefinition, wherever that stands.
    """
    return task.deletes or task.kind in (DEPLOYMENT, DAEMON_SET, JOB, CLUSTER_OPERATOR)


def _buckets_for_state(tasks: Sequence[Task], state: ApplyReason) -> Iterator[Bucket]:
    """Yields the buckets, one after another while updating; otherwise those between two Jobs are done at once."""
    for part in _around_jobs(tasks):
        buckets = tuple(_by_level(part))
        if state is ApplyReason.UPDATING:
            yield from buckets
        else:
            yield tuple(group for bucket in buckets for group in bucket)


def _around_jobs(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    """Yields sequences of tasks without a Job, and each Job by itself."""
    for is_job, run in groupby(tasks, key=lambda task: task.kind == JOB):
        if is_job:
            yield from ((task,) for task in run)
        else:
            yield tuple(run)


def _by_level(tasks: Iterable[Task]) -> Iterator[Bucket]:
    """Yields buckets of groups that are done in parallel. Consecutive levels of one group each become one group."""
    alone: list[Task] = []
    for level in _levels(tasks):
        groups = tuple(tuple(group) for _, group in groupby(level, key=lambda task: _run_level_and_component(task)[1]))
        if len(groups) == 1:
            alone.extend(groups[0])
            continue
        if alone:
            yield (tuple(alone),)
            alone = []
        yield groups
    if alone:
        yield (tuple(alone),)


def _levels(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yields consecutive tasks of one run level. A file without a run level in its name is a separate level."""
    level: list[Task] = []
    for task in tasks:
        name = _run_level_and_component(task)
        if level and (not name[0] or name[0] != _run_level_and_component(level[-1])[0]):
            yield level
            level = []
        level.append(task)
    if level:
        yield level


def _run_level_and_component(task: Task) -> tuple[str, str]:
    name = file_name(task.manifest.file) or FileName("", "")
    return name.run_level, name.component
