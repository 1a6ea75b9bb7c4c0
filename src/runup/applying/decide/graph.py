"""Which task waits for which: nodes of tasks that are done one after the other, and what each node comes after.

An update goes by run level, the components of one level side by side. Installing and keeping do all levels at once.
A Job is a barrier in either: all before it comes first, all after it waits (cvo-behaviour 4.2). Within a node
definitions are the exception to the order: until something would use them, nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from runup.applying.decide.operators import KIND as CLUSTER_OPERATOR
from runup.applying.decide.progress import State
from runup.applying.decide.task import Task
from runup.applying.decide.workloads import DAEMON_SET, DEPLOYMENT, JOB
from runup.release.decide.manifest import FileName, file_name


@dataclass(frozen=True, slots=True)
class Node:
    """Tasks in the order in which they are done, and the indexes of the nodes that come first."""

    tasks: tuple[Task, ...]
    after: frozenset[int] = frozenset()


Graph = tuple[Node, ...]
Bucket = tuple[tuple[Task, ...], ...]


def graph_of(tasks: Sequence[Task], state: State) -> Graph:
    """The graph of `tasks`, which are in the order of the release, when they are applied in `state`."""
    nodes: list[Node] = []
    before: frozenset[int] = frozenset()
    for bucket in _buckets(tasks, state):
        first = len(nodes)
        nodes.extend(Node(group, before) for group in bucket)
        before = frozenset(range(first, len(nodes)))
    return tuple(nodes)


def everything_before(graph: Graph) -> tuple[frozenset[int], ...]:
    """For each node all those that are done before it starts, directly or not."""
    found: list[frozenset[int]] = []
    for node in graph:  # what a node comes after stands before it
        found.append(node.after.union(*(found[before] for before in node.after)))
    return tuple(found)


def after_definitions(task: Task) -> bool:
    """Whether `task` waits for the definitions before it in its node to be established (decision 67).

    What runs and what reports does, and what is removed. What is merely there does not; a custom resource waits for
    its own definition, wherever that stands.
    """
    return task.deletes or task.kind in (DEPLOYMENT, DAEMON_SET, JOB, CLUSTER_OPERATOR)


def _buckets(tasks: Sequence[Task], state: State) -> Iterator[Bucket]:
    for part in _around_jobs(tasks):
        buckets = tuple(_by_level(part))
        if state is State.UPDATING:
            yield from buckets
        else:
            yield tuple(group for bucket in buckets for group in bucket)


def _around_jobs(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    """Runs of tasks without a Job, and each Job by itself."""
    for is_job, run in groupby(tasks, key=lambda task: task.kind == JOB):
        if is_job:
            yield from ((task,) for task in run)
        else:
            yield tuple(run)


def _by_level(tasks: Iterable[Task]) -> Iterator[Bucket]:
    """Groups side by side, bucket after bucket. What has nothing beside it is joined with its like around it."""
    alone: list[Task] = []
    for level in _levels(tasks):
        groups = tuple(tuple(group) for _, group in groupby(level, key=lambda task: _name(task)[1]))
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
    """Neighbours of one run level; a file whose name says nothing is a level of its own."""
    level: list[Task] = []
    for task in tasks:
        name = _name(task)
        if level and (not name[0] or name[0] != _name(level[-1])[0]):
            yield level
            level = []
        level.append(task)
    if level:
        yield level


def _name(task: Task) -> tuple[str, str]:
    found = file_name(task.manifest.file) or FileName("", "")
    return found.run_level, found.component
