"""Tests the worker without a cluster: its requests, its notifications, and its handling of bugs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from structlog.testing import capture_logs
from tests.applying.control.release_folders import config_map
from tests.applying.control.test_a_run_by_itself import NOON, tasks
from tests.clusterversion.decide.world import release
from tests.kubekit.kube.apiscript import eventually, failure, reply, scripted_api

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.api.config_v1 import ClusterOperator
from runup.applying.control.worker import Work, Worker, chosen_manifests
from runup.applying.decide.progress import ApplyReason, Progress, WantedRelease
from runup.process.leader_election import cancel
from runup.release.decide.inclusion import Filters
from runup.release.decide.manifest import Manifest
from runup.release.decide.payload import Payload, version_hash

FIRST, SECOND = (WantedRelease(f"registry.example/release:{number}", f"5.0.{number}") for number in (1, 2))


@dataclass
class Scene:
    """A worker whose clock stands."""

    worker: Worker
    clock: ManualClock
    woken: list[Progress]
    operators: Cache[ClusterOperator]
    hurried: list[tuple[str, str]]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """One that asks nobody."""
    clock = ManualClock(NOON)
    woken: list[Progress] = []
    operators, hurried = Cache(ClusterOperator), list[tuple[str, str]]()
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        worker = Worker(
            client,
            clock,
            operators=operators,
            operator=("ns", "operator"),
            image="own",
            wake=lambda: woken.append(worker.progress),
            hurry=lambda group, kind: hurried.append((group, kind)),
        )
        yield Scene(worker, clock, woken, operators, hurried)


def work(wanted: WantedRelease, state: ApplyReason = ApplyReason.RECONCILING) -> Work:
    """That release, which has no manifest."""
    return Work(wanted, state, release(wanted.version))


@pytest.mark.parametrize(
    ("states", "taken"),
    [
        pytest.param([ApplyReason.INITIALIZING], [ApplyReason.INITIALIZING], id="an installation"),
        pytest.param([ApplyReason.RECONCILING], [ApplyReason.RECONCILING], id="a release that is there already"),
        pytest.param([ApplyReason.UPDATING], [ApplyReason.UPDATING], id="an update that went on while nobody ran"),
        pytest.param(
            [ApplyReason.INITIALIZING, ApplyReason.INITIALIZING],
            [ApplyReason.INITIALIZING] * 2,
            id="an installation that is changed",
        ),
        pytest.param(
            [ApplyReason.RECONCILING, ApplyReason.RECONCILING],
            [ApplyReason.RECONCILING, ApplyReason.UPDATING],
            id="another release than the one before",
        ),
    ],
)
async def test_why_a_release_is_applied(scene: Scene, states: list[ApplyReason], taken: list[ApplyReason]) -> None:
    """The first as it is asked for; any change after it is an update, except for an installation."""
    found = []
    with capture_logs() as logs:
        for wanted, state in zip((FIRST, SECOND), states, strict=False):
            scene.worker.want(work(wanted, state))
            found.append(scene.worker.latest.state)
        scene.worker.latest = replace(scene.worker.latest, done=7)
        scene.worker.want(work((FIRST, SECOND)[len(states) - 1], ApplyReason.INITIALIZING))
    assert found == taken
    assert [line["state"] for line in logs if line["event"] == "wanted"] == [str(state) for state in taken]
    assert scene.worker.latest.done == 7, "what is applied already is not begun anew"


async def test_when_it_says_what_is_new(scene: Scene) -> None:
    """At once after a quiet time; mere numbers after three seconds; at once where it cannot wait; never twice."""
    worker, clock, woken = scene.worker, scene.clock, scene.woken
    publishing = asyncio.create_task(worker.publish())

    async def notify(done: int, *, urgent: bool) -> int:
        worker.latest = replace(worker.latest, done=done)
        worker.notify(urgent)
        await clock.advance(0)
        return len(woken)

    assert await notify(1, urgent=False) == 1
    assert await notify(2, urgent=False) == 1
    await clock.advance(2.5)
    assert await notify(3, urgent=False) == 1
    await clock.advance(0.5)
    assert [each.done for each in woken] == [1, 3]
    assert await notify(4, urgent=True) == 3
    assert await notify(5, urgent=False) == 3
    assert await notify(5, urgent=True) == 4
    await clock.advance(3)
    await notify(5, urgent=True)
    await clock.advance(10)
    assert [each.done for each in woken] == [1, 3, 4, 5]
    assert clock.sleeping == ()
    await cancel([publishing])


async def test_a_bug_of_ours_starts_it_again(scene: Scene) -> None:
    """After five seconds, and then as often as it takes; not what was wanted before."""
    broken = Work(FIRST, ApplyReason.UPDATING, payload=None)  # type: ignore[arg-type]
    scene.worker.want(broken)
    going = asyncio.create_task(scene.worker.run())
    with capture_logs() as logs:

        def ended() -> int:
            return sum(line["event"] == "applying ended, and is started again" for line in logs)

        for number in (1, 2):
            await eventually(lambda number=number: ended() >= number)
            await scene.clock.advance(4.5)
            assert ended() == number
            await scene.clock.advance(0.5)
    await cancel([going])
    assert {line["log_level"] for line in logs if "ended" in line["event"]} == {"error"}


async def test_a_worker_that_is_run_again_goes_on(scene: Scene) -> None:
    """With what it was asked for before."""
    scene.worker.want(work(FIRST))
    for _ in range(2):
        going = asyncio.create_task(scene.worker.run())
        async with asyncio.timeout(90):
            while not scene.worker.progress.completed:
                await asyncio.sleep(0.001)
                await scene.clock.advance(3)
        assert scene.worker.progress.wanted == FIRST
        await cancel([going])
        scene.worker.latest = Progress(wanted=FIRST)
        scene.worker.progress = Progress()


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        pytest.param(200, [], id="it is not among those that are served"),
        pytest.param(403, ["a kind could not be looked up"] * 2, id="nobody may know"),
        pytest.param(404, [], id="its group is not served"),
    ],
)
async def test_a_kind_that_cannot_be_followed(code: int, logged: list[str]) -> None:
    """It is looked up again with the next release."""
    answer = reply({"resources": []}) if code == 200 else failure(code, "Forbidden" if code == 403 else "NotFound")
    async with scripted_api() as api:
        api.answers(answer)
        async with Client(ClusterConfig(server=api.url)) as client:
            worker = Worker(
                client,
                ManualClock(NOON),
                operators=Cache(ClusterOperator),
                operator=("ns", "operator"),
                image="own",
                wake=lambda: None,
            )
            with capture_logs() as logs:
                for _ in range(2):
                    await worker.follow(tasks(config_map("a", {})))
    assert [line["event"] for line in logs] == logged
    assert api.targets == ["GET /api/v1"] * 2


CAPABILITY = "capability.openshift.io/name"


def payload(*objects: dict[str, Any]) -> Payload:
    """A release of these."""
    manifests = tuple(
        Manifest.of(f"release-manifests/0000_20_a_{number:02}_x.yaml", task.identity, obj)
        for number, (obj, task) in enumerate(zip(objects, tasks(*objects), strict=True))
    )
    return with_fields(release("5.0.1"), manifests=manifests)


def names(chosen: tuple[Manifest, ...]) -> list[tuple[str, str]]:
    """Name and content of what is applied."""
    return [(each.identity.name, json.dumps(each.object["data"])) for each in chosen]


def test_which_objects_of_a_release_are_applied() -> None:
    """The last of two equal manifests counts; an unknown capability is left out of the operator's own release."""
    one, again = config_map("a", {"k": "1"}), config_map("a", {"k": "2"})
    unknown = config_map("b", {}, annotations={CAPABILITY: "Nobody"})
    off = config_map("c", {}, annotations={CAPABILITY: "Console"})
    found = payload(one, unknown, again, off)
    wanted = replace(FIRST, filters=Filters(profile="self-managed-high-availability", major=5))
    own, own_hash = chosen_manifests(Work(wanted, ApplyReason.UPDATING, found))
    other, other_hash = chosen_manifests(Work(wanted, ApplyReason.UPDATING, found, own=False))
    assert names(own) == [("a", '{"k": "2"}'), ("c", "{}")]
    assert names(other) == [("b", "{}"), ("a", '{"k": "2"}'), ("c", "{}")]
    raw = found.manifests
    assert own_hash == version_hash([raw[0], raw[2], raw[3]])
    assert other_hash == version_hash(raw)


async def test_what_changes_before_anything_is_applied_is_nobody_s_business(scene: Scene) -> None:
    """Operators that are listed, objects and values of the cluster that change: there is no run yet to be reported."""
    one = ClusterOperator(metadata=ObjectMeta(name="a"))
    scene.operators.replace([one], "1")
    scene.operators.remove(one)
    scene.worker.changed(tasks(config_map("a", {}))[0].identity)
    scene.worker.cluster_values_changed()
    scene.worker.served("example.org", "Widget")
    assert scene.hurried == [("example.org", "Widget")]
