"""The update status controller with a clock that stands: when it looks, when it writes, and what a look is made of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests import factories
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, scripted_api, status

from kubekit.api import codec
from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.kube.api_errors import Conflict
from kubekit.kube.auth import Static
from kubekit.kube.cache import differs_beyond_version
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from runup.api.config_v1 import ClusterOperator, ClusterVersion, ObjectReference
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.control.alert_queries import Alerts
from runup.updatestatus.control.caches import Caches, trim_operator, trim_version
from runup.updatestatus.control.component_objects import WatchedComponents
from runup.updatestatus.control.controller import (
    KEY,
    DrainingPods,
    Metrics,
    Now,
    PodsOfNode,
    Sources,
    Timing,
    UpdateStatusController,
    observe,
)
from runup.updatestatus.control.process import Options, Process
from runup.updatestatus.control.status_store import UpdateStatusStore
from runup.updatestatus.decide.alerts import Unreadable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Scene:
    """A controller whose cluster is listed, and a server that keeps its object."""

    api: ScriptedApi
    client: Client
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON))
    caches: Caches = field(default_factory=Caches)
    metrics: Metrics = field(default_factory=Metrics)
    stored: dict[str, Any] | None = None
    refusal: tuple[int, str] | None = None
    version: int = 0
    slow_s: float = 0

    def __post_init__(self) -> None:
        for cache in self.caches.all():
            cache.replace([], "1")
        self.queue: WorkQueue[str] = WorkQueue(self.clock)
        self.controller = UpdateStatusController(
            caches=self.caches, queue=self.queue, clock=self.clock, metrics=self.metrics
        )
        self.keeper = UpdateStatusStore(self.client, self.clock, lambda: None)
        self.keeper.cache.replace([], "1")
        self.drains = DrainingPods(self.client, self.clock, lambda: None)
        self.alerts = Alerts("", Static(), self.clock, lambda: None)
        self.components = WatchedComponents(self.client, self.clock, lambda: None)
        self.api.answers(self.answer)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The one object, with versions that count."""
        if self.refusal is not None and request.method != "GET":
            code, reason = self.refusal
            return web.json_response(status(code, reason), status=code)
        if request.method == "GET":
            if self.stored is None:
                return web.json_response(status(404, "NotFound") | {"details": {"name": "cluster"}}, status=404)
            return web.json_response(self.stored)
        if request.method == "PUT":
            self.clock.jump(self.slow_s)
        self.version += 1
        body = json.loads(await request.read())
        kept = (self.stored or {}) | (body if request.method != "PATCH" else {})
        kept["metadata"] = {"name": "cluster", "resourceVersion": str(self.version)}
        self.stored = kept
        return web.json_response(kept)

    async def handle(self) -> list[str]:
        """One pass; the lines of the log."""
        with capture_logs() as logs:
            await self.controller.handle(KEY, self.keeper, Sources(self.drains, self.alerts, self.components))
        return [line["event"] for line in logs]

    @property
    def writes(self) -> float:
        """How often the object was written."""
        return self.metrics.registry.get_sample_value("update_status_writes_total") or 0.0

    def seen(self) -> None:
        """The watch reports the object as it is."""
        assert self.stored is not None
        self.keeper.cache.put(codec.convert(Object, self.stored))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Without the object."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        yield Scene(api, client)


async def test_a_change_is_written_three_times_a_second_at_most(scene: Scene) -> None:
    """The first at once; the next change waits for its turn, and time alone for half a minute."""
    assert await scene.handle() == []
    assert scene.writes == 1
    scene.seen()
    requests = len(scene.api.requests)
    scene.controller.on_change()
    for seconds in (0, 0.15, 0.1):
        scene.clock.jump(seconds)
        await scene.handle()
        assert len(scene.api.requests) == requests, "it is too soon to look"
    scene.clock.jump(0.05)
    await scene.handle()
    assert scene.writes == 1, "nothing is said that was not said before"
    looked = scene.metrics.registry.get_sample_value("update_status_assessment_seconds_count")
    assert looked == 2
    scene.clock.jump(29.9)
    await scene.handle()
    assert scene.metrics.registry.get_sample_value("update_status_assessment_seconds_count") == 2
    scene.clock.jump(0.1)
    await scene.handle()
    assert scene.metrics.registry.get_sample_value("update_status_assessment_seconds_count") == 3


async def test_when_a_change_is_looked_at(scene: Scene) -> None:
    """A tenth of a second after it came, or once the last write is long enough ago."""
    scene.controller.on_change()
    assert scene.queue.due == {KEY: 0.1}
    await scene.handle()
    scene.clock.jump(0.1)
    await scene.queue.get()
    scene.controller.on_change()
    assert scene.queue.due == {KEY: pytest.approx(0.3)}
    scene.clock.jump(0.2)
    scene.queue.done(KEY)
    await scene.queue.get()
    scene.controller.on_echo()
    assert scene.queue.due == {KEY: pytest.approx(0.4)}


async def test_a_slow_server_gets_a_pause_all_the_same(scene: Scene) -> None:
    """As long as it took to answer, and at least a quarter of the interval: half of the time is left to others."""
    scene.slow_s = 5
    await scene.handle()
    scene.controller.on_change()
    assert scene.queue.due == {KEY: 10.0}


async def test_what_is_not_known_yet_holds_it_up(scene: Scene) -> None:
    """Half a cluster's status would end insights and start new ones."""
    for cache in (scene.caches.nodes, scene.caches.pods, scene.keeper.cache):
        cache.synced = False
        assert await scene.handle() == []
        assert scene.api.requests == []
        cache.synced = True
    assert await scene.handle() == []
    assert scene.writes == 1


@pytest.mark.parametrize(
    ("refusal", "logged"),
    [
        pytest.param((409, "Conflict"), ["decided on an old version"], id="somebody else was faster"),
        pytest.param((403, "Forbidden"), ["the object could not be written"], id="it may not be written"),
        pytest.param(None, ["the assessment failed"], id="a bug of ours"),
    ],
)
async def test_a_pass_that_fails_is_done_again(
    scene: Scene, refusal: tuple[int, str] | None, logged: list[str]
) -> None:
    """Later and later, and from the beginning once one has succeeded; long before time alone would bring one."""
    await scene.handle()
    scene.seen()
    scene.clock.jump(1)
    scene.caches.versions.put(factories.cluster_version())
    scene.refusal = refusal
    drains = scene.drains
    if refusal is None:
        scene.drains = None  # type: ignore[assignment]
    for number in (1, 2, 3):
        assert await scene.handle() == logged
        assert scene.queue.failures(KEY) == number
    assert scene.writes == 1
    scene.refusal, scene.drains = None, drains
    assert await scene.handle() == []
    assert (scene.queue.failures(KEY), scene.writes) == (0, 2)


async def test_of_how_many_writes_the_watch_may_still_have_to_tell(scene: Scene) -> None:
    """Sixteen: what it reports then is no news; one more, and the server is asked."""
    keeper = scene.keeper
    scene.stored = {"metadata": {"name": "cluster", "resourceVersion": "0"}}
    await keeper.read()
    scene.seen()
    for _ in range(15):
        await keeper.write(UpdateStatusStatus())
    assert keeper.is_current
    await keeper.write(UpdateStatusStatus())
    assert not keeper.is_current
    asked = len(scene.api.requests)
    await keeper.read()
    assert len(scene.api.requests) == asked + 1


async def test_a_conflict_makes_all_that_the_watch_tells_news(scene: Scene) -> None:
    """Whatever we wrote before; what is held is of no version any more."""
    keeper = scene.keeper
    await keeper.write(UpdateStatusStatus())
    scene.seen()
    assert (keeper.is_current, keeper.exists) == (True, True)
    scene.refusal = (409, "Conflict")
    with pytest.raises(Conflict):
        await keeper.write(UpdateStatusStatus())
    assert (keeper.is_current, keeper.exists) == (False, False)
    scene.refusal = (409, "AlreadyExists")
    with pytest.raises(Conflict):
        await keeper.write(UpdateStatusStatus())


async def test_why_there_can_be_no_object() -> None:
    """Nothing once it is listed; before that the reason, or that it is not yet."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        reported: list[int] = []
        keeper = UpdateStatusStore(client, ManualClock(NOON), lambda: reported.append(1))
        assert keeper.lacking == "updatestatuses.update.openshift.io is not listed yet"
        keeper.cache.fail("the server has no API")
        assert (keeper.lacking, reported) == ("the server has no API", [1])
        keeper.cache.replace([], "1")
        assert (keeper.lacking, reported) == ("", [1, 1])


def test_what_time_it_is() -> None:
    """The clock's, unless the cluster is of another time; nodes are evaluated by the clock all the same."""
    clock, then = ManualClock(NOON), NOON - timedelta(days=9)
    assert (Now(clock).insights(), Now(clock).nodes()) == (NOON, None)
    assert (Now(clock, then).insights(), Now(clock, then).nodes()) == (then, NOON)
    assert (Timing().quiet_s, Timing().interval_s, Timing().longest_s) == (0.1, 0.3, 30.0)


async def test_who_drains_is_asked_about_after_a_minute_and_again_after_half_of_one(scene: Scene) -> None:
    """The longest first, by name where several began together; thirty at a time."""
    drains, clock = scene.drains, scene.clock
    drains.follow(["b", "a"])
    clock.jump(30.5)
    drains.follow(["b", "a", "0"])
    clock.jump(29)
    assert drains.due() == []
    clock.jump(0.5)
    assert drains.due() == ["a", "b"]
    scene.stored = {"metadata": {"resourceVersion": "1"}, "items": []}
    await drains.ask("b")
    clock.jump(0.5)
    await drains.ask("a")
    clock.jump(29.5)
    assert drains.due() == ["b"]
    clock.jump(0.5)
    assert drains.due() == ["a", "b", "0"]
    drains.follow(["b"])
    drains.follow(["a", "b"])
    assert drains.due() == ["b"], "who drains anew is waited for anew"
    drains.follow(f"n{number:02}" for number in range(40))
    clock.jump(60)
    assert drains.due() == [f"n{number:02}" for number in range(30)]


async def test_pods_of_nodes_are_known_or_they_are_not(scene: Scene) -> None:
    """In the order of the nodes; one node of which nothing is known makes all unknown, as long as it drains."""
    drains = scene.drains
    pods = {name: Pod(metadata=ObjectMeta(name=name, namespace="ns")) for name in "abc"}
    bad = Undecodable("ns", "d", "no")
    drains.follow(["n1", "n2"])
    drains.state = {"n2": PodsOfNode((pods["c"],), undecoded=(bad,)), "n1": PodsOfNode((pods["a"], pods["b"]))}
    assert drains.pods() == (pods["a"], pods["b"], pods["c"])
    assert drains.undecoded() == (bad,)
    drains.state = {**drains.state, "n1": PodsOfNode(error="forbidden")}
    assert drains.pods() == Unreadable("pods on node n1: forbidden")
    drains.follow(["n2"])
    assert drains.pods() == (pods["c"],)
    before = drains.state
    drains.follow(["n2", "n3"])
    assert drains.state is before


async def test_an_answer_for_a_node_that_is_done_draining_is_dropped(scene: Scene) -> None:
    """And one that says the same as before tells nobody."""
    reported: list[int] = []
    drains = DrainingPods(scene.client, scene.clock, lambda: reported.append(1))
    scene.stored = {"metadata": {"resourceVersion": "1"}, "items": []}
    drains.follow(["n"])
    for _ in range(2):
        await drains.ask("n")
        await drains.ask("gone")
    assert (drains.state, reported) == ({"n": PodsOfNode()}, [1])


async def test_drains_are_looked_at_every_five_seconds(scene: Scene) -> None:
    """Whether or not anybody drains."""
    scene.stored = {"metadata": {"resourceVersion": "1"}, "items": []}
    running = asyncio.create_task(scene.drains.run())
    scene.drains.follow(["n"])
    await scene.clock.advance(0)
    assert scene.clock.sleeping == (5,)
    await scene.clock.advance(59)
    assert scene.api.requests == []
    await scene.clock.advance(1)
    await eventually(lambda: scene.drains.state)
    running.cancel()


def test_a_cluster_that_is_partly_known() -> None:
    """What is wrong with each object and each list is reported; ClusterVersion's own trouble is its own."""
    caches = Caches()
    for cache in caches.all():
        cache.replace([], "1")
    assert observe(caches, alerts=None, draining_pods=()).cluster_version == Unreadable(
        "there is no ClusterVersion of the name version"
    )
    caches.versions.put_undecoded(Undecodable("", "version", "no enum"))
    caches.nodes.put_undecoded(Undecodable("", "b", "no node"))
    caches.nodes.put(factories.node("z"))
    caches.nodes.put(factories.node("a"))
    caches.pools.fail("forbidden")
    caches.pools.put_undecoded(Undecodable("", "worker", "no pool"))
    caches.budgets.replace([], "1", incomplete=("one part", "another"))
    found = observe(caches, alerts=None, draining_pods=(), unread_pods=(Undecodable("ns", "p", "no pod"),))
    assert found.cluster_version == Unreadable("no enum")
    assert found.machine_config_pools == Unreadable("forbidden")
    assert isinstance(found.nodes, tuple)
    assert [node.metadata.name for node in found.nodes] == ["a", "z"]
    assert found.undecoded == (("Node b", "no node"), ("Pod ns/p", "no pod"))
    assert list(found.incomplete.values()) == ["one part; another"]
    caches.operators.synced = False
    assert observe(caches, alerts=None, draining_pods=()).cluster_operators == Unreadable(
        "ClusterOperator is not listed yet"
    )
    caches.versions.put(ClusterVersion(metadata=ObjectMeta(name="version")))
    version = observe(caches, alerts=None, draining_pods=()).cluster_version
    assert isinstance(version, ClusterVersion)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, factories.node(), True, id="it came"),
        pytest.param(factories.node(), None, True, id="it went"),
        pytest.param(
            factories.node(metadata={"resourceVersion": "1"}),
            factories.node(metadata={"resourceVersion": "2"}),
            False,
            id="a version",
        ),
        pytest.param(factories.node(), factories.node(unschedulable=True), True, id="what it says"),
    ],
)
def test_what_is_a_change(old: Node | None, new: Node | None, expected: bool) -> None:
    """More than its version."""
    assert differs_beyond_version(old, new) is expected


def test_only_namespaces_are_kept_of_the_objects_of_an_operator() -> None:
    """Pods are read in them if the operator needs attention. Available updates are not kept, either."""
    operator = factories.cluster_operator()
    namespace = ObjectReference(resource="namespaces", name="openshift-dns")
    route = ObjectReference(group="route.openshift.io", resource="routes", name="x")
    related = replace(operator, status=replace(operator.status, related_objects=(route, namespace)))
    assert trim_operator(related).status.related_objects == (namespace,)
    assert isinstance(operator, ClusterOperator)
    version = factories.cluster_version()
    changed = replace(version, status=replace(version.status, version_hash="h"))
    assert trim_version(changed).status.version_hash == ""


async def test_a_process_says_what_it_waits_for() -> None:
    """The probe's answer names the kind."""
    process = Process(ClusterConfig(server="http://127.0.0.1:9"), Options())
    assert process.not_ready() == "ClusterVersion is not listed yet"
    for cache in process.caches.all():
        cache.replace([], "1")
    assert process.not_ready() == ""
    process.stop()
    assert process.stopping.is_set()


async def test_a_process_that_is_stopped_leaves_nothing_behind() -> None:
    """It logs that it starts, and ends also while it waits for an API server that does not answer."""
    clock = ManualClock(NOON)
    process = Process(ClusterConfig(server="http://127.0.0.1:9"), Options(leader_elect=False), clock=clock)
    before = asyncio.all_tasks()
    with capture_logs() as logs:
        running = asyncio.create_task(process.run())
        await eventually(lambda: process.not_ready() and clock.sleeping)
        process.stop()
        await asyncio.wait_for(running, 90)
    assert asyncio.all_tasks() == before
    assert [(line["event"], line["namespace"]) for line in logs if "namespace" in line] == [
        ("starting", "openshift-update-status-controller")
    ]


async def test_alerts_are_asked_for_every_minute_and_told_where_they_differ() -> None:
    """Not where they say the same."""
    clock, reported = ManualClock(NOON), list[float]()
    answers = [[], [], [{"labels": {"alertname": "A"}, "state": "firing", "activeAt": "2026-01-01T00:00:00Z"}]]
    asked: list[float] = []

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        asked.append(clock.monotonic())
        found = answers[min(len(asked), len(answers)) - 1]
        return web.json_response({"status": "success", "data": {"alerts": found}})

    async with scripted_api() as api:
        api.answers(answer)
        alerts = Alerts(api.url, Static(), clock, lambda: reported.append(clock.monotonic()))
        running = asyncio.create_task(alerts.run())
        for number in (1, 2, 3):
            await api.until_requests(number)
            await clock.until_sleeping(deadline_s=90)
            assert clock.sleeping == (60,)
            await clock.advance(60)
        running.cancel()
    assert asked[:3] == [0, 60, 120]
    assert reported[:2] == [0, 120]


async def test_a_pass_confirms_the_object(scene: Scene) -> None:
    """From its start, with or without a write; one that fails, or does not look, confirms nothing."""
    controller = scene.controller
    assert controller.confirmed_at is None
    scene.refusal = (403, "Forbidden")
    await scene.handle()
    assert controller.confirmed_at is None
    scene.refusal, scene.slow_s = None, 5
    await scene.handle()
    assert (controller.confirmed_at, scene.writes) == (NOON, 1)
    scene.seen()
    scene.clock.jump(20)
    await scene.handle()
    assert controller.confirmed_at == NOON
    scene.clock.jump(10)
    await scene.handle()
    assert (controller.confirmed_at, scene.writes) == (NOON + timedelta(seconds=35), 1)
    registry = scene.metrics.registry
    gauge = registry.get_sample_value("update_status_confirmed_timestamp_seconds")
    assert gauge == (NOON + timedelta(seconds=35)).timestamp()
    assert registry.get_sample_value("update_status_condition", {"condition": "Complete"}) == 1


def test_insights_are_counted_by_level() -> None:
    """Of all layers and all informers; a level that none has is 0, and a condition that is gone is gone."""

    def insight(level: str) -> dict[str, Any]:
        health = {"scope": {"type": "Cluster"}, "impact": {"level": level, "type": "t", "summary": "s"}}
        return {"uid": level, "acquiredAt": "2026-11-21T06:00:00Z", "type": "Health", "health": health}

    def informer(*levels: str) -> dict[str, Any]:
        return {"name": "i", "insights": [insight(level) for level in levels]}

    version = {"uid": "v", "acquiredAt": "2026-11-21T06:00:00Z", "type": "ClusterVersion"}
    ref = {"group": "g", "resource": "r", "name": "n"}
    status = {
        "controlPlane": {"informers": [informer("Error"), {"name": "j", "insights": [version, insight("Warning")]}]},
        "workerPools": [{"name": "w", "resource": ref, "informers": [informer("Error", "Unknown")]}],
        "conditions": [{"type": "Available", "status": "False"}],
    }
    metrics = Metrics()
    metrics.confirm(codec.convert(UpdateStatusStatus, status), 7)

    def value(level: str) -> float | None:
        return metrics.registry.get_sample_value("update_status_insights", {"level": level})

    levels = ("Unknown", "Info", "Warning", "Error", "Critical")
    assert [value(level) for level in levels] == [1, 0, 1, 2, 0]
    available = {"condition": "Available"}
    assert metrics.registry.get_sample_value("update_status_condition", available) == 0
    assert metrics.registry.get_sample_value("update_status_confirmed_timestamp_seconds") == 7
    metrics.confirm(UpdateStatusStatus(), 8)
    assert [value(level) for level in levels] == [0, 0, 0, 0, 0]
    assert metrics.registry.get_sample_value("update_status_condition", available) is None


async def test_nodes_that_an_earlier_controller_saw_held_up_are_looked_at_first(scene: Scene) -> None:
    """What is new waits its minute; what is known to be held up does not wait again."""
    scene.drains.follow(["new", "held up"], at_once={"held up", "elsewhere"})
    assert scene.drains.due() == ["held up"]
    assert scene.drains.read() == frozenset()
    scene.drains.state = {"held up": PodsOfNode(), "new": PodsOfNode(error="forbidden")}
    assert scene.drains.read() == frozenset({"held up"})
    scene.clock.jump(59)
    scene.drains.follow(["new", "held up"], at_once={"new"})
    assert scene.drains.due() == ["held up"]
    scene.clock.jump(1)
    assert scene.drains.due() == ["held up", "new"]
