"""The result of a simulated drain. All times are seconds from its beginning; None is never."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that could not be evicted at once; `by` are the budgets, empty for a pod without an owner.

    `to_s` is when it could: None if it was deleted by hand when the time of the drain was over.
    """

    pod: str
    why: str
    by: tuple[str, ...]
    from_s: int
    to_s: int | None


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """The drain of a node: its begin, its end, and its return. `after` is the node that had its place before.

    `last` is the pod that left last, with why it did not leave sooner.
    """

    node: str
    pool: str
    from_s: int
    drained_s: int
    back_s: int | None
    evicted: int
    after: str = ""
    last: str = ""
    blocked: tuple[Blocked, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolTimeline:
    """A pool with the nodes that are drained, in the order of their drains; `held` says why it does not go on.

    `node_count` is the number of all its nodes: a paused pool has them, too, and drains none.
    """

    name: str
    at_once: int
    surge: int
    paused: bool
    nodes: tuple[NodeDrain, ...] = ()
    held: str = ""
    node_count: int = 0


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Pods of one workload for which there was no place for a time, with the scheduler's words.

    `rivals` are workloads that got the room: their next pods were made at about the same time, or waited, too. Which of
    them is first is a race, and each of them may be the one that waits.
    """

    workload: str
    pods: int
    from_s: int
    to_s: int | None
    why: str
    moved_from: tuple[str, ...] = ()
    before: bool = False
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outage:
    """A workload none of whose pods is ready."""

    workload: str
    from_s: int
    to_s: int | None
    why: str

    @property
    def seconds(self) -> int | None:
        """Returns how long it is."""
        return None if self.to_s is None else self.to_s - self.from_s


@dataclass(frozen=True, slots=True)
class Preempted:
    """A pod that made way for another one of higher priority."""

    pod: str
    by: str
    node: str
    at_s: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """A part of the critical path: what everything after it waited for."""

    from_s: int
    to_s: int
    what: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The result of a simulated drain of all pools; `unknown` names what is not known, `trust` how sure the rest is."""

    started: datetime
    duration_s: int
    pools: tuple[PoolTimeline, ...]
    unplaced: tuple[Unplaced, ...] = ()
    outages: tuple[Outage, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    path: tuple[PathStep, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    evicted: int = 0

    @property
    def nodes(self) -> tuple[NodeDrain, ...]:
        """Returns the drains of all pools."""
        return tuple(node for pool in self.pools for node in pool.nodes)

    @property
    def stuck(self) -> tuple[tuple[NodeDrain, Blocked], ...]:
        """Returns the pods that had to be deleted by hand, with their nodes' drains."""
        return tuple((node, blocked) for node in self.nodes for blocked in node.blocked if blocked.to_s is None)

    @property
    def homeless(self) -> tuple[Unplaced, ...]:
        """Returns the pods that had no place even at the end, and had one before."""
        return tuple(unplaced for unplaced in self.unplaced if unplaced.to_s is None and not unplaced.before)
