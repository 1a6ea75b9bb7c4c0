"""A run and what puts its objects, without an operator around them: what only shows while a watch is late."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench.hostile.faulty_api import faulty_api
from tests.applying.control.applied_world import CONFIG_MAPS, eventually, exists
from tests.applying.control.release_folders import NAMESPACE, config_map, namespace, operator
from tests.operator.operator_world import Cluster, cluster

from kubekit.kube import calls, config
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from runup.api.config_v1 import ClusterOperator
from runup.applying.control.object_applier import Memory, ObjectApplier, ObjectDeleter, digests_of
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.release_run import REAPPLY_INTERVAL_S, Run
from runup.applying.control.task_errors import Notices
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.rendering import LABEL, ClusterValues
from runup.applying.decide.task import Task, tasks_of
from runup.process.leader_election import cancel
from runup.release.decide.manifest import Identity, Manifest

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tasks(*objects: dict[str, Any]) -> tuple[Task, ...]:
    """The objects as a release's tasks."""
    return tasks_of(
        [
            Manifest.of(f"release-manifests/0000_20_a_{number:02}_x.yaml", _identity(obj), obj)
            for number, obj in enumerate(objects)
        ]
    )


def _identity(obj: dict[str, Any]) -> Identity:
    metadata = obj["metadata"]
    return Identity(obj["apiVersion"].rpartition("/")[0], obj["kind"], metadata.get("namespace", ""), metadata["name"])


def applier(
    client: Client,
    tracking: ObjectWatches,
    found: tuple[Task, ...],
    memory: Memory,
    operators: Cache[ClusterOperator] | None = None,
) -> ObjectApplier:
    """What puts `found`, with a clock that stops."""
    return ObjectApplier(
        found,
        client=client,
        kinds=ResourceDiscovery(client),
        tracking=tracking,
        deleting=ObjectDeleter(client, ManualClock(NOON), lambda _: None),
        operators=Cache(ClusterOperator) if operators is None else operators,
        memory=memory,
        digests=digests_of(found, ClusterValues()),
        cluster_values=ClusterValues,
        notices=Notices(client, ManualClock(NOON)),
    )


async def test_who_waits_for_operators_goes_on_when_their_list_comes(tmp_path: Path) -> None:
    """Not when the time is over after which they are looked at in any case: here no time passes at all."""
    clock, operators = ManualClock(NOON), Cache(ClusterOperator)
    (task,) = found = tasks(operator("a", "5.0.0"))
    async with cluster(tmp_path) as (world, _):
        tracking = ObjectWatches(world.client, clock, lambda _: None)
        run = Run(
            found,
            ApplyReason.UPDATING,
            applier=applier(world.client, tracking, found=found, memory=Memory(), operators=operators),
            clock=clock,
            since={},
            on_result=lambda _: None,
            served=lambda *_: None,
        )
        operators.add_state_listener(run.operators_listed)
        going = asyncio.create_task(run.go())
        try:
            await eventually(
                lambda: _has_problem(run, "waiting on the list of ClusterOperators"), "that nobody is listed"
            )
            operators.fail("they are forbidden")
            await eventually(lambda: _has_problem(run, "ClusterOperators: they are forbidden"), "why nobody is")
            # Without the one that is waited for: its coming would be news by itself.
            operators.replace([], "1")
            await eventually(
                lambda: _has_problem(run, f"Cluster operator {task.identity.name} is"), "that it is not there"
            )
        finally:
            await cancel([going])
            await tracking.close()


async def test_what_was_written_is_not_written_again_while_its_watch_is_late(tmp_path: Path) -> None:
    """An object that was changed, and one that was made; the watch still has the one as it was, and knows no other."""
    memory = Memory()
    async with cluster(tmp_path) as (world, _), faulty_api(config.load(str(world.kubeconfig))) as api:  # noqa: SIM117
        async with Client(api.config, clock=ManualClock(NOON)) as through:
            tracking = ObjectWatches(through, ManualClock(NOON), lambda _: None)
            (space, first) = found = tasks(namespace(), config_map("a", {"of": "1"}))
            before = applier(world.client, tracking, found, memory)
            for task in (space, first):
                await before.apply_or_delete(task)
            await eventually(lambda: _seen(tracking, first), "the watch tells of the first write")
            old = tracking.get(first.identity)
            await eventually(lambda: _opened(api.counted["watch pass_on"]), "both watches are open")
            api.silent = True

            changed, made = found = tasks(config_map("a", {"of": "2"}), config_map("b", {}))
            after = applier(world.client, tracking, found, memory)
            for _ in range(2):
                for task in found:
                    await after.apply_or_delete(task)
                    assert not after.drifted(task)
            stored = await exists(world, CONFIG_MAPS, "a", NAMESPACE)
            await exists(world, CONFIG_MAPS, "b", NAMESPACE)
            assert tracking.get(changed.identity) == old
            assert tracking.get(made.identity) is None
            await tracking.close()
    assert stored["data"] == {"of": "2"}
    assert old is not None and stored["metadata"]["labels"][LABEL] != old.metadata.labels[LABEL]
    assert after.writes == 3  # the one that was made is looked for on the watch alone


async def test_what_needs_something_later_is_applied_after_it(tmp_path: Path) -> None:
    """In its own place it would wait for ever; meanwhile it says what for, and that is no failure."""
    shown: list[Problem] = []
    async with cluster(tmp_path) as (world, _):
        tracking = ObjectWatches(world.client, ManualClock(NOON), lambda _: None)
        early, later = found = tasks(config_map("a", {"of": "1"}), namespace())
        run = Run(
            found,
            ApplyReason.UPDATING,
            applier=applier(world.client, tracking, found, Memory()),
            clock=ManualClock(NOON),
            since={},
            on_result=lambda _: shown.extend(run.problems),
            served=lambda *_: None,
        )
        going = asyncio.create_task(run.go())
        try:
            await eventually(lambda: _completed(run), "all is applied")
            assert await exists(world, CONFIG_MAPS, "a", NAMESPACE)
        finally:
            await cancel([going])
            await tracking.close()
    assert set(shown) == {
        Problem(reason="WaitingForObject", message=f"waiting on {later}, which comes after {early}", effect=Effect.NONE)
    }
    assert run.problems == ()


ONCE = {"release.openshift.io/create-only": "true"}


@pytest.mark.parametrize("whose", ["ours", "somebody else's"])
async def test_what_is_only_created_is_created_again_whoever_made_it(tmp_path: Path, whose: str) -> None:
    """As soon as it is deleted. One that has no label, or has lost it, is left alone, and asked for once."""
    async with cluster(tmp_path) as (world, _):
        tracking = ObjectWatches(world.client, ManualClock(NOON), lambda _: None)
        space, task = found = tasks(namespace(), config_map("a", {"of": "us"}, annotations=ONCE))
        puts = applier(world.client, tracking, found, Memory())
        await puts.apply_or_delete(space)
        if whose == "ours":
            await puts.apply_or_delete(task)
            await eventually(lambda: _seen(tracking, task), "the watch tells of it")
            unlabelled = {"metadata": {"labels": {LABEL: None}}, "data": {"of": "them"}}
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "a", unlabelled, NAMESPACE))
            await eventually(lambda: _drifted(puts, task), "the watch tells that it is none of ours")
        else:
            await world.client.send(calls.create(CONFIG_MAPS, config_map("a", {"of": "them"})))
        before = puts.writes
        for _ in range(3):
            await puts.apply_or_delete(task)
            assert (puts.drifted(task), puts.in_place(task)) == (False, True)
        assert puts.writes == before + 1
        assert (await exists(world, CONFIG_MAPS, "a", NAMESPACE))["data"] == {"of": "them"}
        for again in (1, 2):
            await world.client.send(calls.delete(CONFIG_MAPS, "a", NAMESPACE))
            await eventually(lambda: _drifted(puts, task), f"the watch tells that it is gone, {again}")
            await puts.apply_or_delete(task)
            assert not puts.drifted(task)
            assert (await exists(world, CONFIG_MAPS, "a", NAMESPACE))["data"] == {"of": "us"}
            await eventually(lambda: _seen(tracking, task), "a watch tells of it")
        await tracking.unfollow_singles()
        assert not tracking.follows_single(task.identity)
        await eventually(lambda: _in_place(puts, task), "it has our label again")
        await tracking.close()


async def _drifted(puts: ObjectApplier, task: Task) -> bool:
    return puts.drifted(task)


async def _in_place(puts: ObjectApplier, task: Task) -> bool:
    return puts.in_place(task)


async def _has_problem(run: Run, words: str) -> bool:
    return any(words in problem.message for problem in run.problems)


async def _seen(tracking: ObjectWatches, task: Task) -> bool:
    return tracking.get(task.identity) is not None


async def _opened(count: int) -> bool:
    return count >= 2


async def test_what_no_watch_tells_of_is_put_back_in_its_turn(tmp_path: Path) -> None:
    """One object after the other is applied again, however well it looks, a day's share of time between two of them."""
    clock = ManualClock(NOON)
    async with cluster(tmp_path) as (world, _), faulty_api(config.load(str(world.kubeconfig))) as api:  # noqa: SIM117
        async with Client(api.config, clock=clock) as through:
            tracking = ObjectWatches(through, clock, lambda _: None)
            found = tasks(namespace(), config_map("a", {"of": "1"}), config_map("b", {"of": "1"}))
            run = Run(
                found,
                ApplyReason.UPDATING,
                applier=applier(world.client, tracking, found, Memory()),
                clock=clock,
                since={},
                on_result=lambda _: None,
                served=lambda *_: None,
            )
            going = asyncio.create_task(run.go())
            try:
                await eventually(lambda: _completed(run), "all is applied")
                await eventually(lambda: _opened(api.counted["watch pass_on"]), "both watches are open")
                api.silent = True
                for name in ("a", "b"):
                    theirs = {"data": {"of": "somebody else"}}
                    await world.client.send(calls.merge_patch(CONFIG_MAPS, name, theirs, NAMESPACE))
                await clock.until_sleeping(deadline_s=90)
                await clock.advance(REAPPLY_INTERVAL_S / len(found) - 1)
                assert run.completed
                assert not await _holds(world, "a", "1")
                for name in ("a", "b"):
                    await eventually(lambda name=name: _later(clock, world, name), f"{name} is put back")
            finally:
                await cancel([going])
                await tracking.close()


async def _later(clock: ManualClock, world: Cluster, name: str) -> bool:
    await clock.advance(REAPPLY_INTERVAL_S / 3)
    return await _holds(world, name, "1")


async def _completed(run: Run) -> bool:
    return run.completed


async def _holds(world: Cluster, name: str, value: str) -> bool:
    return bool((await exists(world, CONFIG_MAPS, name, NAMESPACE))["data"] == {"of": value})
