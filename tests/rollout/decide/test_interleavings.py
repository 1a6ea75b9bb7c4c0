"""All interleavings of two processes, crashes, lost answers, people and the operator, to their end.

The numbers are those of the cases: 48 is a crash between any two writes, 49 two leaders, 50 a lost answer. A process
reads, decides, writes the status on the version that it read, and then ClusterVersion on the version that it read. It
may be killed between any two of these, and each request that it sent may have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_run_steps import (
    CLOSED,
    NOW,
    OPEN,
    OURS,
    PREFLIGHT,
    REFUSED,
    cluster,
    deleted,
    entry,
    run_of,
    situation,
)
from tests.rollout.observed_cluster import OTHER_IMAGE

from runup.api.update_policy_v1alpha1 import UpdateRunStatus
from runup.rollout.decide.run_steps import FINISHED, Act, Outcome, decide

CURRENT, OLDER = "7", "6"
Desired = Literal["", "preflight", "ours", "other"]
REQUESTS = {"": None, "preflight": PREFLIGHT, "ours": OURS, "other": replace(OURS, version="5.2.0", image=OTHER_IMAGE)}


class Cluster(NamedTuple):
    """ClusterVersion: the request and its owner, the update's state, and whether its risks let an update start."""

    desired: Desired = ""
    ours: bool = False
    state: Literal["", "Partial", "Completed"] = ""
    open: bool = True
    refused: bool = False


class Sender(NamedTuple):
    """The next writes of a process: the status, unless it is written, and then the act.

    `sees_run` and `sees_cluster`: the object has not changed since the process read it.
    """

    status: UpdateRunStatus | None
    act: Act
    sees_run: bool = True
    sees_cluster: bool = True


class World(NamedTuple):
    """The stored objects, what each process is about to write, and how often others may still intervene."""

    status: UpdateRunStatus = UpdateRunStatus()
    ended_by: Literal["", "Abort", "Skip", "deleted"] = ""
    cluster: Cluster = Cluster()
    senders: tuple[Sender | None, ...] = (None, None)
    budget: tuple[str, ...] = ()


@cache
def decided(status: UpdateRunStatus, ended_by: str, seen: Cluster, leader: str) -> Outcome:
    """The decision of a process on the objects that it read, without the texts that only inform."""
    run = run_of(status=status, **({"control": ended_by} if ended_by in ("Abort", "Skip") else {}), soak="0s")
    run = deleted(run) if ended_by == "deleted" else run
    history = (entry(seen.state),) if seen.state else ()
    conditions = (REFUSED,) if seen.refused else ()
    found = cluster(*history, desired=REQUESTS[seen.desired], version=CURRENT, conditions=conditions)
    # A request of somebody else closes the gate `hold`.
    verdict = OPEN if seen.open and seen.desired != "other" else CLOSED
    outcome = decide(run, situation(found, verdict, leader=leader, owns_request=seen.ours), NOW)
    return replace(outcome, status=replace(outcome.status, decisions=(), gates=()))


def aged(status: UpdateRunStatus | None) -> UpdateRunStatus | None:
    """The status after ClusterVersion has changed: its intent is for an older version."""
    if status is None or status.intent is None:
        return status
    return replace(status, intent=replace(status.intent, cluster_version_resource_version=OLDER))


def with_cluster(world: World, **fields: Any) -> World:
    """The world after ClusterVersion has changed."""
    senders = tuple(each and each._replace(status=aged(each.status), sees_cluster=False) for each in world.senders)
    status = aged(world.status)
    assert status is not None
    return world._replace(cluster=world.cluster._replace(**fields), status=status, senders=senders)


def with_run(world: World, **fields: Any) -> World:
    """The world after the run has changed."""
    return world._replace(senders=tuple(each and each._replace(sees_run=False) for each in world.senders), **fields)


def with_sender(world: World, number: int, new: Sender | None) -> World:
    """The world in which a process is about to write something else."""
    senders = tuple(new if index == number else each for index, each in enumerate(world.senders))
    return world._replace(senders=senders)


def steps_of_process(world: World, number: int) -> Iterator[World]:
    """The possible next steps of one process, with and without being killed."""
    sender = world.senders[number]
    if sender is None:
        if world.status.step not in FINISHED:
            outcome = decided(world.status, world.ended_by, world.cluster, "ab"[number])
            changed = outcome.status if outcome.status != world.status else None
            if changed is not None or outcome.act:
                yield with_sender(world, number, Sender(changed, outcome.act))
        return
    idle = with_sender(world, number, None)
    yield idle  # killed, refused by a conflict, or the request did not arrive
    if sender.status is not None:
        if sender.sees_run:
            stored = with_run(idle, status=sender.status)
            yield stored  # killed, or the answer is lost
            if sender.act:
                yield with_sender(stored, number, sender._replace(status=None))
    elif sender.sees_cluster:
        if sender.act == "fence":
            yield with_cluster(idle)
            return
        desired = {"preflight": "preflight", "commit": "ours", "withdraw": ""}[sender.act]
        yield with_cluster(idle, desired=desired, ours=bool(desired), refused=False)


def steps_of_others(world: World) -> Iterator[World]:
    """The possible next steps of the operator and of people."""
    found = world.cluster
    if found.desired == "ours" and not found.refused and found.state != "Completed":
        yield with_cluster(world, state="Completed" if found.state else "Partial")
    for index, each in enumerate(world.budget):
        left = world._replace(budget=world.budget[:index] + world.budget[index + 1 :])
        if each == "risk":
            yield with_cluster(left, open=not found.open)
        elif each == "refuse" and found.desired == "ours" and not found.state:
            yield with_cluster(left, refused=True)
        elif each == "other" and found.desired != "ours":
            yield with_cluster(left, desired="other", ours=False)
        elif each in ("Abort", "Skip", "deleted") and not world.ended_by:
            yield with_run(left, ended_by=each)


def explore(start: World) -> dict[World, list[World]]:
    """Every state that can be reached, with the states that may follow it."""
    following: dict[World, list[World]] = {}
    waiting = deque([start])
    while waiting:
        world = waiting.popleft()
        if world in following:
            continue
        after = [each for number in (0, 1) for each in steps_of_process(world, number)] + [*steps_of_others(world)]
        following[world] = after
        waiting.extend(after)
        for each in after:
            is_commit = world.cluster.desired != "ours" and each.cluster.desired == "ours"
            assert not is_commit or world.cluster.open, "an update started while a risk kept it closed"
            assert not is_commit or not world.cluster.state, "an update was requested twice"
            assert not is_commit or world.cluster.desired != "other", "the request of somebody else was replaced"
    return following


BUDGETS: list[tuple[str, ...]] = [
    (),
    ("risk", "risk"),
    ("refuse",),
    ("other",),
    ("Abort", "risk"),
    ("deleted", "refuse"),
    ("Abort", "refuse", "risk"),
    ("Skip", "risk"),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda each: " ".join(each) or "nobody intervenes")
def test_48_49_50_all_interleavings(budget: tuple[str, ...]) -> None:
    """An update starts at most once and behind open gates, each run can end, and no start is missing in its record."""
    following = explore(World(budget=budget))
    ends = {world for world in following if world.status.step in FINISHED}
    for world in ends:
        unrecorded = world.status.started is None and world.cluster.desired == "ours"
        assert not unrecorded, f"the run is {world.status.step}, and its update has begun"
    # From every state some continuation leads to the end: nothing waits for ever.
    before: dict[World, list[World]] = {}
    for world, after in following.items():
        for each in after:
            before.setdefault(each, []).append(world)
    reaching, waiting = set(ends), deque(ends)
    while waiting:
        for each in before.get(waiting.popleft(), []):
            if each not in reaching:
                reaching.add(each)
                waiting.append(each)
    stuck = [world for world in following if world not in reaching and world.cluster.desired != "other"]
    assert all(not world.cluster.open for world in stuck), stuck[:1]
