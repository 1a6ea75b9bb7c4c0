"""The parts of a run one by one: what each task waits for, what is reported of it, and how long nobody tries again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.applying.control.release_folders import (
    NAMESPACE,
    config_map,
    definition,
    deployment,
    manifest,
    namespace,
    operator,
)
from tests.applying.control.test_a_run_by_itself import NOON, applier, tasks
from tests.applying.control.test_one_object_is_put import MAPS, Server
from tests.factories import cluster_operator
from tests.kubekit.kube.apiscript import eventually, scripted_api

from kubekit.api.meta_v1 import Status
from kubekit.kube.api_errors import Forbidden, KubeError, ServerError, TooManyRequests
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Request
from runup.api.config_v1 import ClusterOperator
from runup.api.owned_v1 import Owned, OwnedMeta
from runup.applying.control.health_checker import Contention, HealthChecker
from runup.applying.control.object_applier import Memory
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.release_run import DriftRepairer
from runup.applying.control.retry import RunProgress, TaskRetrier
from runup.applying.control.task_errors import Notices
from runup.applying.decide.contesting_writers import contested_notice, dropped_notice
from runup.applying.decide.progress import ApplyReason, Effect, Problem
from runup.applying.decide.rendering import LABEL
from runup.applying.decide.task import Task
from runup.process.leader_election import cancel

WRITE = Request(method="PATCH", path="/api/v1/namespaces/ns/configmaps/c")
GONE = {"release.openshift.io/delete": "true"}


@dataclass
class Parts:
    """The parts of one run, whose clock stands, and which asks nobody."""

    client: Client
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON))
    reported: list[bool] = field(default_factory=list)
    operators: Cache[ClusterOperator] = field(default_factory=lambda: Cache(ClusterOperator))
    since: dict[str, datetime] = field(default_factory=dict)

    def progress(self, *found: Task, state: ApplyReason = ApplyReason.UPDATING) -> RunProgress:
        """How far a run of these tasks is: at its beginning."""
        # Watches have a separate clock: who sleeps on ours is what a test looks at.
        tracking = ObjectWatches(self.client, ManualClock(NOON), lambda _: None)
        puts = applier(self.client, tracking, found, Memory(), self.operators)
        return RunProgress(found, state, applier=puts, clock=self.clock, on_result=self.reported.append)

    def retrier(self, progress: RunProgress) -> TaskRetrier:
        """What tries again."""
        return TaskRetrier(progress, lambda: None)

    def health_checker(self, progress: RunProgress) -> HealthChecker:
        """What evaluates."""
        return HealthChecker(progress, self.retrier(progress), self.contention(progress), self.since)

    def contention(self, progress: RunProgress) -> Contention:
        """What puts back ever later."""
        return Contention(self.clock, progress.applier.tell_contested)

    def drift_repair(self, progress: RunProgress) -> DriftRepairer:
        """Returns the repairer of drifted objects."""
        return DriftRepairer(progress, self.retrier(progress), self.health_checker(progress), self.contention(progress))


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    """With a client that is never used."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        yield Parts(client)


WAITS = Problem(reason="WaitingForObject", message="waiting", effect=Effect.NONE)
OTHERWISE = Problem(reason="WaitingForObject", message="waiting otherwise", effect=Effect.NONE)
FAILS = Problem(reason="UpdatePayloadFailed", message="no")
WORDS = Problem(reason="UpdatePayloadFailed", message="no, in other words")
ELSE = Problem(reason="UpdatePayloadClusterDown", message="away")
SOON = Problem(reason="ClusterOperatorNotAvailable", message="etcd", effect=Effect.NONE)
DOWN = Problem(reason="ClusterOperatorNotAvailable", message="etcd", effect=Effect.FAIL)


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        pytest.param([None], [], id="nothing as before"),
        pytest.param([WAITS], [False], id="it waits"),
        pytest.param([WAITS, WAITS], [False], id="it waits on"),
        pytest.param([WAITS, OTHERWISE], [False, False], id="for something else"),
        pytest.param([WAITS, None], [False, False], id="it goes on"),
        pytest.param([FAILS], [True], id="it fails"),
        pytest.param([FAILS, WORDS], [True, False], id="for the same reason in other words"),
        pytest.param([FAILS, ELSE], [True, True], id="for another reason"),
        pytest.param([FAILS, WAITS], [True, True], id="it fails no more, and waits"),
        pytest.param([WAITS, FAILS], [False, True], id="it waited, and fails"),
        pytest.param([FAILS, None, None], [True, True], id="it is mended"),
        pytest.param([SOON, DOWN], [False, True], id="it waited long enough to fail, for the same reason"),
    ],
)
async def test_which_news_of_a_task_cannot_wait(parts: Parts, said: list[Problem | None], reported: list[bool]) -> None:
    """A failure that comes, changes its reason or goes; mere words and waiting can."""
    (task,) = tasks(config_map("a", {}))
    progress = parts.progress(task)
    for problem in said:
        progress.record(task, problem)
    assert parts.reported == reported
    assert progress.problems == ({} if said[-1] is None else {task.index: said[-1]})


async def test_what_a_task_waits_for_and_what_waits_for_it(parts: Parts) -> None:
    """A condition stays required until its task is done; a task never waits for later ones, or for its own node."""
    space, gadget, gadgets, job, widget, widgets = found = tasks(
        namespace(),
        manifest("example.org/v1", "Gadget", "g", NAMESPACE),
        definition("Gadget", "gadgets"),
        manifest("batch/v1", "Job", "j", NAMESPACE),
        manifest("example.org/v1", "Widget", "w", NAMESPACE),
        definition("Widget", "widgets"),
    )
    progress = parts.progress(*found)
    assert (list(progress.needs(gadget)), list(progress.later(gadget))) == ([space], [gadgets])
    assert (list(progress.needs(widget)), list(progress.later(widget))) == ([space], [widgets])
    assert (list(progress.needs(job)), list(progress.later(job))) == ([space], [])
    progress.finish(space)
    assert list(progress.needs(gadget)) == list(progress.needs(job)) == []
    progress.finish(gadgets)
    assert (list(progress.needs(gadget)), list(progress.later(gadget))) == ([], [])
    assert list(progress.later(widget)) == [widgets]


async def test_what_stands_in_a_later_level_is_later(parts: Parts) -> None:
    """A Widget before a Job, its definition after it; and the other way round it is simply needed."""
    widget, _job, widgets = found = tasks(
        manifest("example.org/v1", "Widget", "w", NAMESPACE),
        manifest("batch/v1", "Job", "j", NAMESPACE),
        definition("Widget", "widgets"),
    )
    progress = parts.progress(*found)
    assert (list(progress.needs(widget)), list(progress.later(widget))) == ([], [widgets])
    widgets, _job, widget = found = tasks(
        definition("Widget", "widgets"),
        manifest("batch/v1", "Job", "j", NAMESPACE),
        manifest("example.org/v1", "Widget", "w", NAMESPACE),
    )
    progress = parts.progress(*found)
    assert (list(progress.needs(widget)), list(progress.later(widget))) == ([widgets], [])


async def test_who_waits_for_others_waits_for_all_of_them_or_for_a_while(parts: Parts) -> None:
    """Whichever comes first; without end where no time is named."""
    one, two = found = tasks(config_map("a", {}), config_map("b", {}))
    progress = parts.progress(*found)
    for_ever = asyncio.create_task(progress.finished(one, two))
    for_a_while = asyncio.create_task(progress.finished_within(10, found))
    await parts.clock.advance(9)
    progress.finish(one)
    await parts.clock.advance(0.5)
    assert not for_a_while.done()
    await parts.clock.advance(0.5)
    assert for_a_while.done()
    assert not for_ever.done()
    progress.finish(two)
    await parts.clock.advance(0)
    assert for_ever.done()
    before = parts.clock.monotonic()
    await progress.finished_within(10, found)
    assert parts.clock.monotonic() == before
    await parts.clock.advance(0)
    assert parts.clock.sleeping == (), "whoever is done leaves no alarm behind"


def refused(kind: type[Any], retry_after_s: float | None = None) -> KubeError:
    """An answer of that class."""
    said = Status(status="Failure", code=500, reason="r", message="m")
    return kind(said, WRITE) if retry_after_s is None else kind(said, WRITE, retry_after_s)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("attempts", "error", "seconds"),
    [
        pytest.param(1, refused(Forbidden), 1, id="after the first"),
        pytest.param(2, refused(Forbidden), 2, id="after the second"),
        pytest.param(4, refused(Forbidden), 8, id="after the fourth"),
        pytest.param(5, refused(Forbidden), 15, id="never longer than that"),
        pytest.param(2000, refused(Forbidden), 15, id="after very many"),
        pytest.param(1, refused(ServerError), 1, id="the server asks for nothing"),
        pytest.param(1, refused(TooManyRequests, 5), 5, id="the server asks for longer"),
        pytest.param(4, refused(TooManyRequests, 5), 8, id="the server asks for less"),
        pytest.param(1, refused(TooManyRequests, 60), 60, id="the server asks for longer than we ever wait"),
        pytest.param(9, refused(TooManyRequests, 60), 60, id="which is not made longer still"),
    ],
)
async def test_how_long_until_the_next_attempt(parts: Parts, attempts: int, error: Exception, seconds: float) -> None:
    """Twice as long each time up to a quarter of a minute, and as long as the server asks."""
    (task,) = tasks(config_map("a", {}))
    pausing = asyncio.create_task(parts.retrier(parts.progress(task)).pause(task, attempts, error))
    await parts.clock.advance(0)
    assert parts.clock.sleeping == (seconds,)
    await parts.clock.advance(seconds)
    assert pausing.done()


async def test_the_next_attempt_does_not_wait_once_what_it_needs_is_there(parts: Parts) -> None:
    """Its namespace is done in the meantime."""
    space, task = found = tasks(namespace(), config_map("a", {}))
    progress = parts.progress(*found)
    pausing = asyncio.create_task(parts.retrier(progress).pause(task, 4, refused(Forbidden)))
    await parts.clock.advance(1)
    assert not pausing.done()
    progress.finish(space)
    await parts.clock.advance(0)
    assert pausing.done()


async def test_what_is_not_there_yet_is_waited_for_ten_seconds_before_the_server_is_asked(parts: Parts) -> None:
    """Not for what is done, and not where nothing is needed."""
    space, task = found = tasks(namespace(), config_map("a", {}))
    progress = parts.progress(*found)
    waiting = asyncio.create_task(parts.retrier(progress).wait_for_dependencies(task))
    await parts.clock.advance(9.5)
    assert not waiting.done()
    await parts.clock.advance(0.5)
    assert waiting.done()
    for other in (space, task):
        progress.finish(space)
        await parts.retrier(progress).wait_for_dependencies(other)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Parts, Server]]:
    """Parts that ask a server of ConfigMaps, which refuses as it is reported."""
    async with scripted_api() as api:
        server = Server(api)
        async with Client(ClusterConfig(server=api.url)) as client:
            yield Parts(client), server


FORBIDDEN = (403, "Forbidden", {"name": "a"})


@pytest.mark.parametrize(
    ("attempts", "told_at"),
    [
        pytest.param(3, None, id="three attempts are nobody's business"),
        pytest.param(4, 4, id="the fourth is told"),
        pytest.param(6, 4, id="and once is enough"),
    ],
)
async def test_after_how_many_attempts_a_failure_is_told(
    served: tuple[Parts, Server], attempts: int, told_at: int | None
) -> None:
    """And that it is over, as soon as one succeeds; each that failed is counted."""
    parts, server = served
    (task,) = tasks(config_map("a", {}))
    progress, failed, reported = parts.progress(task), list[int](), list[int]()
    server.refusal = FORBIDDEN
    with capture_logs() as logs:
        going = asyncio.create_task(TaskRetrier(progress, lambda: failed.append(1)).apply_until_done(task))
        for _ in range(attempts):
            await parts.clock.until_sleeping(deadline_s=90)
            reported += [len(failed)] if progress.problems else []
            server.refusal = None if len(failed) == attempts else FORBIDDEN
            await parts.clock.advance(parts.clock.sleeping[0])
        assert await going
    said = [line["attempts"] for line in logs if line["event"] == "could not be applied"]
    assert said == list(range(1, attempts + 1))
    assert (reported[:1], len(failed)) == ([] if told_at is None else [told_at], attempts)
    assert progress.problems == {}
    assert parts.reported == ([] if told_at is None else [True, True])


async def test_what_came_too_early_is_told_as_waiting_and_then_not_at_all(served: tuple[Parts, Server]) -> None:
    """Its namespace is not there yet: no attempt that failed, and nothing that is reported once it is put."""
    parts, server = served
    space, task = found = tasks(namespace(), config_map("a", {}))
    progress, failed = parts.progress(*found), list[int]()
    server.refusal = (404, "NotFound", {"name": NAMESPACE})
    going = asyncio.create_task(TaskRetrier(progress, lambda: failed.append(1)).apply_until_done(task))
    await eventually(lambda: progress.problems)
    waits = progress.problems[task.index]
    assert (waits.reason, waits.effect) == ("WaitingForObject", Effect.NONE)
    assert waits.message == f"{task} is waiting on {space}"
    server.refusal = None
    await eventually(lambda: parts.clock.sleeping == (15,))
    progress.finish(space)
    assert await going
    assert (progress.problems, parts.reported, failed) == ({}, [False, False], [])


async def test_what_no_attempt_can_mend_is_told_at_once(parts: Parts) -> None:
    """And tried again all the same: somebody may turn it off."""
    (task,) = tasks(config_map("a", {}, annotations={"release.openshift.io/delete": "maybe"}))
    progress = parts.progress(task)
    going = asyncio.create_task(parts.retrier(progress).apply_until_done(task))
    await parts.clock.advance(0)
    assert "Invalid delete annotation" in progress.problems[task.index].message
    assert parts.clock.sleeping == (1,)
    await cancel([going])


@pytest.mark.parametrize("state", list(ApplyReason))
async def test_only_an_update_removes(served: tuple[Parts, Server], state: ApplyReason) -> None:
    """Installing and keeping a release delete nothing; repairs that succeed at once are not reported."""
    parts, server = served
    (task,) = tasks(config_map("a", {}, annotations=GONE))
    server.refusal = (404, "NotFound", {"name": "a"})
    await parts.retrier(parts.progress(task, state=state)).apply_until_done(task)
    assert (parts.reported, server.deletions) == ([], 1 if state is ApplyReason.UPDATING else 0)


def repairs(contention: Contention, clock: ManualClock, task: Task, *after_s: float) -> list[tuple[bool, float]]:
    """Returns the lines that several repairs log, each so long after the one before."""
    found = []
    for seconds in after_s:
        clock.jump(seconds)
        found.append(contention.next_pause(task.identity, clock.monotonic()))
    return found


@pytest.mark.parametrize(
    ("after_s", "pauses"),
    [
        pytest.param([0], [0], id="the first is put back at once, by a process that just began, too"),
        pytest.param([500, 120], [0, 0], id="two minutes later that is forgotten"),
        pytest.param([500, 119], [0, 1], id="shortly before that it is not"),
        pytest.param([500, 1, 120], [0, 1, 2], id="the pause itself counts for nothing"),
        pytest.param([500, 1, 121], [0, 1, 0], id="after it the two minutes begin"),
        pytest.param([500, *[1] * 8], [0, 1, 2, 4, 8, 16, 32, 60, 60], id="later and later, up to a minute"),
    ],
)
async def test_whoever_keeps_changing_an_object_is_given_in_to_for_a_while(
    parts: Parts, after_s: list[float], pauses: list[float]
) -> None:
    """Each time twice as long, until it has been calm for two minutes."""
    (task,) = tasks(config_map("a", {}))
    progress = parts.progress(task)
    found = repairs(parts.contention(progress), parts.clock, task, *after_s)
    assert [pause for _, pause in found] == pauses
    assert [again for again, _ in found] == [pause > 0 for pause in pauses]


async def test_only_what_is_kept_is_looked_after(parts: Parts) -> None:
    """Once all is done; not while it is being put back."""
    (task,) = tasks(operator("a", "5.0.0"))
    progress = parts.progress(task, state=ApplyReason.RECONCILING)
    drift_repair = parts.drift_repair(progress)
    drift_repair.look_after(task)
    assert progress.problems == {}
    progress.completed = True
    drift_repair.repairing.add(task.identity)
    drift_repair.look_after(task)
    assert progress.problems == {}
    drift_repair.repairing.clear()
    drift_repair.look_after(task)
    assert progress.problems[task.index].message == "waiting on the list of ClusterOperators"


async def test_what_is_anew_in_a_day(served: tuple[Parts, Server]) -> None:
    """Every object once, evenly, except for what is removed and what is just being put back; a failure is no end."""
    parts, server = served
    _, gone, busy, _ = found = tasks(
        config_map("a", {}), config_map("gone", {}, annotations=GONE), config_map("busy", {}), config_map("z", {})
    )
    progress = parts.progress(*found)
    drift_repair = parts.drift_repair(progress)
    drift_repair.repairing.add(busy.identity)
    server.refusal = FORBIDDEN
    going = asyncio.create_task(drift_repair.reapply_daily())
    quarter = 24 * 3600 / 4
    put: list[list[str]] = []
    with capture_logs() as logs:
        for _ in range(8):
            await parts.clock.until_sleeping(deadline_s=90)
            assert parts.clock.sleeping == (quarter,)
            before = len(server.written)
            await parts.clock.advance(quarter)
            await parts.clock.until_sleeping(deadline_s=90)
            put.append(server.written[before:])
    assert [line["event"] for line in logs] == ["could not be applied again"] * 4
    await cancel([going])
    assert put == [["a"], [], [], ["z"]] * 2
    assert gone.identity.name not in server.written


@pytest.mark.parametrize(
    ("found", "error", "said"),
    [
        pytest.param(None, "", "waiting on the list of ClusterOperators", id="nobody was listed"),
        pytest.param(None, "forbidden", "waiting on the list of ClusterOperators: forbidden", id="nobody may be"),
        pytest.param([], "", "Cluster operator etcd is not available", id="it is not there"),
        pytest.param([cluster_operator(version="5.0.0")], "", None, id="it is well"),
        pytest.param(
            [cluster_operator(version="4.22.0")], "", "Cluster operator etcd is updating versions", id="it is behind"
        ),
    ],
)
async def test_how_an_operator_is(
    parts: Parts, found: list[ClusterOperator] | None, error: str, said: str | None
) -> None:
    """And since when it is waited for, which ends when it is well."""
    (task,) = tasks(operator("etcd", "5.0.0"))
    progress = parts.progress(task)
    if found is not None:
        parts.operators.replace(found, "1")
    if error:
        parts.operators.fail(error)
    earlier = NOON - timedelta(minutes=5)
    parts.since["other"] = earlier
    problem = parts.health_checker(progress).health(task)
    assert (problem.message if problem else None) == said
    listed = found is not None
    assert parts.since == {"other": earlier} | ({"etcd": NOON} if listed and said else {})
    if said and not listed:
        assert problem is not None
        assert problem.effect is Effect.NONE


async def test_since_when_an_operator_is_waited_for_stays(parts: Parts) -> None:
    """However often it is looked at; nothing is known any more of one that was well in between."""
    (task,) = tasks(operator("etcd", "5.0.0"))
    health_checker = parts.health_checker(parts.progress(task))
    parts.operators.replace([], "1")
    health_checker.health(task)
    await parts.clock.advance(60)
    problem = health_checker.health(task)
    assert problem is not None
    assert problem.since == (("etcd", NOON),)
    parts.operators.put(cluster_operator(version="5.0.0"))
    assert health_checker.health(task) is None
    assert parts.since == {}


async def test_what_is_to_be_gone_is_never_unwell(parts: Parts) -> None:
    """Nor is what nobody waits for."""
    gone, plain, run = found = tasks(
        operator("a", "5.0.0", annotations=GONE), config_map("b", {}), deployment("c", "registry.example/c:1")
    )
    health_checker = parts.health_checker(parts.progress(*found))
    assert [health_checker.health(task) for task in (gone, plain, run)] == [None, None, None]


async def test_who_listens_for_an_object_hears_of_it_and_of_no_other(parts: Parts) -> None:
    """As long as it listens."""
    one, other = found = tasks(operator("a", "5.0.0"), operator("b", "5.0.0"))
    health_checker = parts.health_checker(parts.progress(*found))
    with health_checker.changes(one.identity) as event, health_checker.changes(one.identity) as second:
        health_checker.changed(other.identity)
        assert not event.is_set()
        health_checker.changed(one.identity)
        assert event.is_set()
        assert second.is_set()
    event.clear()
    health_checker.changed(one.identity)
    assert not event.is_set()


@pytest.mark.parametrize(
    ("pauses", "reported"),
    [
        pytest.param(4, 0, id="a few times in a row"),
        pytest.param(5, 1, id="five times in a quarter of a minute"),
        pytest.param(7, 3, id="each time after that"),
    ],
)
async def test_when_a_change_that_is_made_again_is_a_contest(parts: Parts, pauses: int, reported: int) -> None:
    """Before the pause of eight seconds; the listener decides how often that is news."""
    (task,) = tasks(config_map("a", {}))
    heard: list[Task] = []

    async def contested(task: Task) -> None:
        heard.append(task)

    contention = Contention(parts.clock, contested)
    for _ in range(pauses):
        waiting = asyncio.create_task(contention.wait(task))
        await parts.clock.advance(0)
        for pause in parts.clock.sleeping:
            await parts.clock.advance(pause)
        await waiting
    assert heard == [task] * reported


async def test_an_object_that_is_waited_for_is_put_back_ever_later_too(served: tuple[Parts, Server]) -> None:
    """A writer that changes the object constantly does not cause constant writes."""
    parts, server = served
    (task,) = tasks(manifest("v1", "ConfigMap", "a", NAMESPACE))
    progress = parts.progress(task)
    cache = progress.applier.tracking.follow(MAPS)
    cache.replace([], "1")
    cache.recover()
    cache.put(Owned(metadata=OwnedMeta(name="a", namespace=NAMESPACE, resource_version="99", labels={LABEL: "other"})))
    contention = parts.contention(progress)
    health_checker = HealthChecker(progress, parts.retrier(progress), contention, parts.since)
    for pause in (0, 1, 2):
        before = len(server.written)
        waiting = asyncio.create_task(health_checker.wait_until_healthy(task))
        await parts.clock.advance(0)
        assert parts.clock.sleeping == ((pause,) if pause else ())
        await parts.clock.advance(pause)
        await waiting
        assert server.written[before:] == ["a"]


@pytest.mark.parametrize(
    ("again_after_s", "stored"),
    [
        pytest.param(0, 1, id="at once"),
        pytest.param(3599, 1, id="within the hour"),
        pytest.param(3600, 2, id="when the cluster has forgotten the event"),
    ],
)
async def test_how_often_the_same_is_told(again_after_s: float, stored: int) -> None:
    """Once in the time that a cluster keeps events; another object, or reason, is another matter."""
    one, other = tasks(config_map("a", {}), config_map("b", {}))
    clock = ManualClock(NOON)
    async with scripted_api() as api:
        api.answers(_stored)
        async with Client(ClusterConfig(server=api.url)) as client:
            notices = Notices(client, clock)
            await notices.emit(contested_notice(one, ""))
            clock.jump(again_after_s)
            await notices.emit(contested_notice(one, "x"))
            assert len(api.targets) == stored
            await notices.emit(contested_notice(other, ""))
            await notices.emit(dropped_notice(one, ["w"]))
            assert len(api.targets) == stored + 2
            assert [json.loads(body)["type"] for body in api.bodies] == ["Warning"] * (stored + 2)


async def _stored(_: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({})


async def test_an_event_that_cannot_be_stored_ends_nothing(parts: Parts) -> None:
    """There is no server."""
    (task,) = tasks(config_map("a", {}))
    with capture_logs() as logs:
        await Notices(parts.client, parts.clock).emit(contested_notice(task, ""))
    assert [line["event"] for line in logs] == ["notice", "an event could not be stored"]
