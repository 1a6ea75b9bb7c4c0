"""All interleavings of two processes, crashes and people with a pool that a run pauses, to their end.

The number is that of the case: 48 is a crash between any two writes. See `test_interleavings` for how processes write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_hops import HOPS, LAST, LATER, node
from tests.rollout.decide.test_interleavings import CURRENT, OLDER, REQUESTS
from tests.rollout.decide.test_pools import MASTER, NEXT, OUTSIDE, pool
from tests.rollout.decide.test_run_steps import NOW, OPEN, cluster, deleted, entry, run_of, situation

from runup.api.config_v1 import UpdateHistory
from runup.api.update_policy_v1alpha1 import UpdateRunStatus
from runup.rollout.decide.run_steps import FINISHED, Act, Outcome, decide

FIRST, SECOND = entry("Completed"), entry("Completed", LATER.image, LATER.version)
HISTORY: dict[str, tuple[UpdateHistory, ...]] = {
    "": (),
    "Partial": (entry(),),
    "Completed": (FIRST,),
    "Partial2": (replace(SECOND, state="Partial"), FIRST),
    "Completed2": (SECOND, FIRST),
}
DESIRED = {**REQUESTS, "preflight2": replace(LATER, mode="Preflight"), "ours2": LATER}


class Seen(NamedTuple):
    """ClusterVersion and the pool. `open` is the state of every gate, `behind` whether the pool is not updated.

    `desired` is empty, preflight or ours, `state` empty, Partial or Completed, both with a 2 for the second hop.
    """

    desired: str = ""
    state: str = ""
    open: bool = True
    paused: bool = False
    marked: bool = False
    behind: bool = False


class Sender(NamedTuple):
    """The next writes of a process: the status, unless it is written, and then the act on what it read."""

    status: UpdateRunStatus | None
    act: Act
    hop: int
    sees_run: bool = True
    sees_cluster: bool = True
    sees_pool: bool = True


class World(NamedTuple):
    """The stored objects, what each process is about to write, and how often others may still intervene."""

    status: UpdateRunStatus = UpdateRunStatus()
    ended_by: Literal["", "Abort", "Skip", "deleted"] = ""
    seen: Seen = Seen()
    senders: tuple[Sender | None, ...] = (None, None)
    budget: tuple[str, ...] = ()


@cache
def decided(status: UpdateRunStatus, ended_by: str, seen: Seen, leader: str) -> Outcome:
    """The decision of a process on the objects that it read, without the texts that only inform."""
    run = run_of(
        max_hops=max(len(status.hops), 1),
        status=status,
        pools=NEXT,
        soak="0s",
        **({"control": ended_by} if ended_by in ("Abort", "Skip") else {}),
    )
    run = deleted(run) if ended_by == "deleted" else run
    run = replace(run, spec=replace(run.spec, target=LAST if status.hops else run.spec.target))
    found = cluster(*HISTORY[seen.state], desired=DESIRED[seen.desired], version=CURRENT)
    worker = pool(paused=seen.paused, by="u" if seen.marked else "", updated=not seen.behind, version=CURRENT)
    verdict = OPEN if seen.open else OUTSIDE
    observed = situation(
        found,
        verdict,
        leader=leader,
        owns_request=bool(seen.desired),
        pools=(MASTER, worker),
        resumption={"worker": verdict},
        nodes=(node("v1.33.1"),),
    )
    outcome = decide(run, observed, NOW)
    return replace(outcome, status=replace(outcome.status, decisions=(), gates=()))


def aged(status: UpdateRunStatus | None, of: str) -> UpdateRunStatus | None:
    """The status after ClusterVersion or the pool has changed: what it intends is for an older version."""
    if status is None:
        return None
    if of == "pool":
        listed = tuple(replace(each, resource_version=OLDER) for each in status.paused_pools)
        return replace(status, paused_pools=listed)
    intent = status.intent
    return status if intent is None else replace(status, intent=replace(intent, cluster_version_resource_version=OLDER))


def with_change(world: World, of: Literal["cluster", "pool"], **fields: Any) -> World:
    """The world after ClusterVersion or the pool has changed."""
    senders = tuple(
        each and each._replace(status=aged(each.status, of), **{f"sees_{of}": False}) for each in world.senders
    )
    status = aged(world.status, of)
    assert status is not None
    return world._replace(seen=world.seen._replace(**fields), status=status, senders=senders)


def with_run(world: World, **fields: Any) -> World:
    """The world after the run has changed."""
    return world._replace(senders=tuple(each and each._replace(sees_run=False) for each in world.senders), **fields)


def with_sender(world: World, number: int, new: Sender | None) -> World:
    """The world in which a process is about to write something else."""
    return world._replace(senders=tuple(new if index == number else each for index, each in enumerate(world.senders)))


def steps_of_process(world: World, number: int) -> Iterator[World]:
    """The possible next steps of one process, with and without being killed."""
    sender = world.senders[number]
    if sender is None:
        if world.status.step not in FINISHED:
            outcome = decided(world.status, world.ended_by, world.seen, "ab"[number])
            changed = outcome.status if outcome.status != world.status else None
            if changed is not None or outcome.act:
                yield with_sender(world, number, Sender(changed, outcome.act, outcome.status.hop))
        return
    idle = with_sender(world, number, None)
    yield idle  # killed, refused by a conflict, or the request did not arrive
    if sender.status is not None:
        if sender.sees_run:
            stored = with_run(idle, status=sender.status)
            yield stored
            if sender.act:
                yield with_sender(stored, number, sender._replace(status=None))
    elif sender.act in ("pause", "resume", "fence-pools"):
        if sender.sees_pool:
            fields = {"pause": {"paused": True, "marked": True}, "resume": {"paused": False, "marked": False}}
            yield with_change(idle, "pool", **fields.get(sender.act, {}))
    elif sender.sees_cluster:
        second = "2" if sender.hop else ""
        desired = {"preflight": f"preflight{second}", "commit": f"ours{second}", "withdraw": ""}
        yield with_change(idle, "cluster", desired=desired.get(sender.act, world.seen.desired))


def steps_of_others(world: World) -> Iterator[World]:
    """The possible next steps of the operators and of people."""
    seen = world.seen
    following = {("ours", ""): "Partial", ("ours", "Partial"): "Completed"}
    following |= {("ours2", "Completed"): "Partial2", ("ours2", "Partial2"): "Completed2"}
    if (state := following.get((seen.desired, seen.state), "")) != "":
        yield with_change(world, "cluster", state=state, behind=seen.behind or state.startswith("Completed"))
    if seen.behind and not seen.paused:
        yield with_change(world, "pool", behind=False)
    for index, each in enumerate(world.budget):
        left = world._replace(budget=world.budget[:index] + world.budget[index + 1 :])
        if each == "window":
            yield with_change(left, "cluster", open=not seen.open)
        elif each == "resume" and seen.paused:
            yield with_change(left, "pool", paused=False)
        elif each == "pause" and not seen.paused:
            yield with_change(left, "pool", paused=True)
        elif each == "take over" and seen.marked:
            yield with_change(left, "pool", paused=True, marked=False)
        elif each in ("Abort", "Skip", "deleted") and not world.ended_by:
            yield with_run(left, ended_by=each)


def assert_step(before: World, after: World, *, people: bool) -> None:
    """Fails for a step that no process may take."""
    begins = before.seen.desired != after.seen.desired and after.seen.desired.startswith("ours")
    assert not begins or before.seen.open, "an update started outside of its window"
    assert not begins or before.seen.paused or people, "an update started before its pool was paused"
    assert not begins or (before.seen.state == "Completed") is (after.seen.desired == "ours2"), "a hop began early"
    is_last = before.seen.state == ("Completed2" if before.status.hops else "Completed")
    resumes = before.seen.paused and not after.seen.paused and before.status.started is not None
    assert not resumes or is_last, "a pool was resumed between hops"
    persons = before.seen.paused and not before.seen.marked
    assert not persons or after.seen.paused, "a person's pause was undone"


def explore(start: World) -> dict[World, list[World]]:
    """Every state that can be reached, with the states that may follow it."""
    people = bool({"resume", "pause", "take over"} & set(start.budget))
    following: dict[World, list[World]] = {}
    waiting = deque([start])
    while waiting:
        world = waiting.popleft()
        if world in following:
            continue
        own = world.seen.paused and world.seen.marked
        assert not own or world.status.paused_pools, "a pool is paused, and the run does not name it"
        ended = world.status.step in FINISHED and world.status.started is None
        assert not (own and ended), "a run that began nothing left its pool paused"
        by_process = [each for number in (0, 1) for each in steps_of_process(world, number)]
        for each in by_process:
            assert_step(world, each, people=people)
        following[world] = [*by_process, *steps_of_others(world)]
        waiting.extend(following[world])
    return following


BUDGETS: list[tuple[str, ...]] = [
    (),
    ("window", "window"),
    ("Abort",),
    ("Abort", "window"),
    ("Skip",),
]
MANY: list[tuple[str, ...]] = [
    ("deleted", "window"),
    ("resume", "Abort"),
    ("pause", "window"),
    ("take over", "window"),
]


@pytest.mark.parametrize(
    "budget",
    [*BUDGETS, *(pytest.param(each, marks=pytest.mark.slow) for each in MANY)],
    ids=lambda each: " ".join(each) or "nobody intervenes",
)
def test_48_no_pool_is_left_paused_unnamed(budget: tuple[str, ...]) -> None:
    """A pool is paused before the start, is named while it is paused, and each run can end."""
    assert_ends(explore(World(budget=budget)))


@pytest.mark.parametrize(
    "budget",
    [(), pytest.param(("window", "window"), marks=pytest.mark.slow), pytest.param(("Abort",), marks=pytest.mark.slow)],
    ids=lambda each: " ".join(each) or "nobody intervenes",
)
def test_26_48_pools_stay_paused_between_hops(budget: tuple[str, ...]) -> None:
    """No hop begins before the one before it is complete, and each run of two hops can end."""
    assert_ends(explore(World(status=UpdateRunStatus(hops=HOPS), budget=budget)))


def assert_ends(following: dict[World, list[World]]) -> None:
    """Fails if a run cannot end from some state in which its gates are open."""
    ends = {world for world in following if world.status.step in FINISHED}
    assert {world.status.step for world in ends} >= {"Done"}
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
    stuck = [world for world in following if world not in reaching and world.seen.open]
    assert not stuck, stuck[:1]
