"""The managing operator's passes one by one: what each way of failing leads to, and what is not decided at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace as with_fields
from structlog.testing import capture_logs
from tests.advice.control.test_prometheus import asking, quiet, until
from tests.applying.control.test_own_release import own
from tests.clusterversion.decide.world import World
from tests.factories import cluster_operator
from tests.kubekit.kube.apiscript import ScriptedApi, scripted_api, status

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from runup.advice.control.prometheus import Prometheus
from runup.advice.control.update_service import UpdateService
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded, OwnRelease, ReleaseLoads
from runup.applying.control.worker import Worker
from runup.applying.decide.progress import ApplyReason, Loading, WantedRelease
from runup.clusterversion.control.clusterversion import (
    KEY,
    Caches,
    ClusterVersionController,
    reflectors,
)
from runup.clusterversion.control.metrics import Metrics
from runup.clusterversion.control.release_verification import ReleaseChecks
from runup.clusterversion.decide.reconcile import reconcile
from runup.clusterversion.decide.sync_failure import REPORT_AFTER_FAILURES
from runup.clusterversion.decide.work import ApplyRelease
from runup.preflight.control.report_reader import ReportReader
from runup.preflight.decide import container_check_pods, preflight_deployment
from runup.preflight.decide.outcome import ReportSeen
from runup.process.ca_file import Authorities
from runup.process.plan_executor import Executor
from runup.release.control.release_images import ReleaseImages
from runup.release.decide.payload import Payload
from runup.report.report import FORMAT, Report, encode

Refusal = tuple[int, str]
FORBIDDEN, CONFLICT, AWAY, INVALID = (
    (403, "Forbidden"),
    (409, "Conflict"),
    (503, "ServiceUnavailable"),
    (422, "Invalid"),
)


@dataclass
class Scene:
    """An operator that has read its cluster; what it writes is refused as the test says."""

    api: ScriptedApi
    client: Client
    world: World
    clock: ManualClock
    folder: Path
    caches: Caches = field(default_factory=Caches.new)
    metrics: Metrics = field(default_factory=Metrics)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    own: OwnRelease = field(default_factory=own)

    def controller(
        self, *, applies: bool = False, loads: ReleaseLoads | None = None, prometheus: Prometheus | None = None
    ) -> ClusterVersionController:
        """One that sees the world as it is now, and whose sources know what there must know."""
        self.queue: WorkQueue[str] = WorkQueue(self.clock)
        observed = self.world.observed
        self.service = UpdateService(self.clock, self._wake)
        self.checks = ReleaseChecks(
            self.client, lambda: None, self.clock, self._wake, images=ReleaseImages(self.client)
        )
        self.service.state = observed.service
        self.checks.states = dict(observed.releases)
        self.reader = ReportReader(self.folder, self.clock, self._wake)
        self.worker = Worker(
            self.client,
            self.clock,
            operators=self.caches.operators,
            operator=("ns", "operator"),
            image=observed.facts.release.image,
            wake=self._wake,
        )
        made = ClusterVersionController(
            caches=self.caches,
            facts=observed.facts,
            own_release=self.own,
            executor=Executor(self.client, self.clock),
            service=self.service,
            checks=self.checks,
            reader=self.reader,
            queue=self.queue,
            loads=loads,
            prometheus=prometheus,
            worker=self.worker if applies else None,
            authorities=Authorities(""),
            metrics=self.metrics,
            clock=self.clock,
        )
        for cache in self.caches.all():
            cache.replace([], "1")
        self.caches.gates.put(observed.feature_gate)  # type: ignore[arg-type]
        self.caches.versions.put(observed.cluster_version)
        return made

    def _wake(self) -> None:
        self.queue.add(KEY)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """A write is taken, or refused by what its path holds."""
        for part, (code, reason) in self.refusals.items():
            if part in request.path:
                return web.json_response(status(code, reason, "not so"), status=code)
        return web.json_response({})

    def patches(self) -> list[dict[str, Any]]:
        """The conditions of every status that was sent, by type: status and reason."""
        found = []
        for target, body in zip(self.api.targets, self.api.bodies, strict=True):
            if "clusterversions/version/status" in target:
                fields = {each["path"]: each.get("value") for each in json.loads(body)}
                conditions = fields.get("/status/conditions") or (fields.get("/status") or {}).get("conditions") or ()
                found.append({each["type"]: (each["status"], each.get("reason", "")) for each in conditions})
        return found


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A cluster before anybody asks for anything."""
    async with scripted_api() as api:
        world = World.new()
        world.settle()
        async with Client(ClusterConfig(server=api.url)) as client:
            made = Scene(api, client, world, ManualClock(world.now), tmp_path)
            api.answers(made.answer)
            yield made
            await made.service.close()
            await made.checks.close()


def ask_for_preflight(world: World) -> None:
    """A preflight is asked for, and all that must be known about its target is known."""
    world.ask_preflight().settle()
    world.change(history=None, deployment=None)


STATUS, RECORD = "clusterversions/version/status", "configmaps/preflight-history"


async def passes(controller: ClusterVersionController, count: int) -> list[str]:
    """The lines of the log that so many passes leave."""
    with capture_logs() as logs:
        for _ in range(count):
            await controller.handle(KEY)
    return [line["event"] for line in logs if line["log_level"] in ("warning", "error")]


async def test_a_conflict_is_no_trouble(scene: Scene) -> None:
    """A decision on an old version is repeated without a report."""
    scene.world.change(cluster_version=with_fields(scene.world.version, status=type(scene.world.version.status)()))
    controller = scene.controller()
    scene.refusals = {STATUS: CONFLICT}
    with capture_logs() as logs:
        await controller.handle(KEY)
    assert [(line["log_level"], line["event"]) for line in logs] == [("debug", "decided on an old version")]
    assert await passes(controller, 19) == []
    assert scene.queue.failures(KEY) == 20
    scene.refusals = {}
    with capture_logs() as logs:
        await controller.handle(KEY)
    # What it said is an event, too.
    versions = "clusterversions.config.openshift.io"
    assert [(line["event"], line["actions"]) for line in logs] == [
        ("reconciled", [f"PatchStatus {versions}", f"Event {versions}"])
    ]
    assert scene.queue.failures(KEY) == 0


async def test_a_status_that_is_refused_is_not_sent_again(scene: Scene) -> None:
    """It is counted, and the next one goes without what was refused."""
    scene.world.change(cluster_version=with_fields(scene.world.version, status=type(scene.world.version.status)()))
    controller = scene.controller()
    scene.refusals = {STATUS: INVALID}
    assert await passes(controller, 1) == ["the API server refuses the status"]
    assert scene.metrics.registry.get_sample_value("cluster_version_status_refused_total") == 1
    scene.refusals = {}
    assert await passes(controller, 1) == []
    first, second = scene.patches()
    assert "StatusWriteRefused" not in first
    assert second["StatusWriteRefused"][0] == "True"


@pytest.mark.parametrize(
    ("refusal", "told_at"),
    [
        pytest.param(FORBIDDEN, 2, id="it is refused, whoever asks again: the next pass says so"),
        pytest.param(AWAY, 5, id="a webhook that is away is worth a word when it stays so"),
    ],
)
async def test_a_record_that_is_not_taken(scene: Scene, refusal: Refusal, told_at: int) -> None:
    """Until it is taken nothing of the preflight is started; its own condition says why, and the cluster is well."""
    ask_for_preflight(scene.world)
    controller = scene.controller(applies=True)
    scene.refusals = {RECORD: refusal}
    for number in range(1, 20):
        await passes(controller, 1)
        failed = [each["PreflightFailed"] for each in scene.patches() if "PreflightFailed" in each]
        assert bool(failed) is (number >= told_at), number
        assert scene.queue.failures(KEY) == number
    assert set(failed) == {("True", "FailedCreate")}
    assert not any("Failing" in each and each["Failing"][0] == "True" for each in scene.patches())
    assert not any("deployments" in target for target in scene.api.targets)


async def test_a_record_that_is_not_taken_while_nobody_asks_for_a_preflight(scene: Scene) -> None:
    """No preflight condition fits, so the passes fail, are retried, and are reported as failing."""
    scene.world.ask_preflight().settle()
    assert scene.world.observed.history is not None
    scene.world.ask(None)
    controller = scene.controller(applies=True)
    scene.caches.config_maps.put(scene.world.observed.history)
    scene.refusals = {RECORD: FORBIDDEN}
    for number in range(1, REPORT_AFTER_FAILURES + 1):
        assert await passes(controller, 1) == ["an object is not taken"]
        assert scene.queue.failures(KEY) == number
        assert bool(_failing(scene)) is (number == REPORT_AFTER_FAILURES), number
    assert {each["Failing"] for each in _failing(scene)} == {("True", "Forbidden")}


@pytest.mark.parametrize("applies", [True, False], ids=["who applies", "who only records"])
async def test_passes_that_fail_again_and_again_are_told(scene: Scene, applies: bool) -> None:
    """Reports after fifteen failures in a row; an operator with --record-only leaves that to the managing operator."""
    controller = scene.controller(applies=applies)
    scene.metrics.count = None  # type: ignore[method-assign,assignment]
    assert await passes(controller, 14) == ["reconcile failed"] * 14
    assert _failing(scene) == []
    await passes(controller, 1)
    shown = _failing(scene)
    assert len(shown) == (1 if applies else 0)
    if applies:
        assert (shown[0]["Available"][0], shown[0]["Failing"]) == ("False", ("True", ""))


async def test_a_status_that_may_not_be_written_is_tried_again_and_again(scene: Scene) -> None:
    """Each pass is a line of the log; that fifteen of them failed is unknown either."""
    scene.world.ask(None)
    controller = scene.controller(applies=True)
    scene.refusals = {STATUS: FORBIDDEN}
    assert await passes(controller, 14) == ["a write failed"] * 14
    assert await passes(controller, 1) == ["a write failed", "the failure of passes was not published"]
    first = controller.observe()
    assert first is not None
    assert first.failure is not None
    assert (first.failure.reason, first.failure.decided) == ("Forbidden", True)
    await passes(controller, 1)
    again = controller.observe()
    assert again is not None
    assert again.failure is first.failure, "words that change each time would be a write each time"
    scene.refusals = {STATUS: AWAY}
    await passes(controller, 1)
    other = controller.observe()
    assert other is not None
    assert other.failure is not None
    assert other.failure.reason == "ServiceUnavailable"


def _failing(scene: Scene) -> list[dict[str, Any]]:
    return [each for each in scene.patches() if each.get("Failing", ("", ""))[0] == "True"]


async def test_a_pass_that_succeeds_takes_back_that_they_failed(scene: Scene) -> None:
    """By one more pass, which says that all is well."""
    controller = scene.controller(applies=True)
    scene.metrics.count = None  # type: ignore[method-assign,assignment]
    await passes(controller, 16)
    assert controller.observe() is not None
    assert controller.observe().failure is not None  # type: ignore[union-attr]
    del scene.metrics.count
    await scene.queue.get()
    scene.queue.done(KEY)
    assert len(scene.queue) == 0
    await passes(controller, 1)
    assert len(scene.queue) == 1
    assert controller.observe().failure is None  # type: ignore[union-attr]
    await scene.queue.get()
    scene.queue.done(KEY)
    await passes(controller, 1)
    assert len(scene.queue) == 0


async def test_nothing_is_observed_before_there_is_enough(scene: Scene) -> None:
    """Nor where there is no ClusterVersion."""
    controller = scene.controller()
    assert controller.observe() is not None
    scene.caches.pods.synced = False
    assert controller.observe() is None
    scene.caches.pods.synced = True
    scene.caches.versions.remove(scene.world.version)
    assert controller.observe() is None


async def test_what_is_observed_of_operators(scene: Scene) -> None:
    """In the order of their names; why they are not known, where they are not."""
    controller = scene.controller()
    found = controller.observe()
    assert found is not None
    assert found.operators == (), "none of them is not the same as not knowing"
    for name in ("network", "etcd"):
        scene.caches.operators.put(cluster_operator(name))
    scene.caches.operators.fail("cut")
    found = controller.observe()
    assert found is not None
    assert [each.metadata.name for each in found.operators or ()] == ["etcd", "network"]
    assert found.operators_error == "cut"
    scene.caches.operators.synced = False
    found = controller.observe()
    assert found is not None
    assert found.operators is None


async def test_objects_that_cannot_be_read_are_told_once(scene: Scene) -> None:
    """In the order of the alphabet, again when their trouble is another one, and when it comes back."""
    controller = scene.controller()

    async def logged_errors() -> list[str]:
        with capture_logs() as logs:
            await controller.handle(KEY)
        return [line["error"].partition(":")[0] for line in logs if line["event"].startswith("an object is not as")]

    for name in ("b", "a"):
        scene.caches.operators.put_undecoded(Undecodable("", name, "no"))
    assert await logged_errors() == [f"ClusterOperator {name} cannot be read" for name in ("a", "b")]
    assert await logged_errors() == []
    scene.caches.operators.put_undecoded(Undecodable("", "a", "not at all"))
    assert await logged_errors() == ["ClusterOperator a cannot be read"]
    scene.caches.operators.put(cluster_operator("a"))
    assert await logged_errors() == []
    scene.caches.operators.put_undecoded(Undecodable("", "a", "not at all"))
    assert await logged_errors() == ["ClusterOperator a cannot be read"]


class Nowhere:
    """Releases that nobody has."""

    async def load(self, wanted: Release) -> Payload:
        """See `Payloads.load`."""
        raise NotLoaded(f"there is no {wanted.image}", reason="RetrievePayload")


async def test_whose_release_is_handed_over(scene: Scene) -> None:
    """The operator's own by its image or by what is loaded; any other one is not; what is not loaded not at all."""
    own_image = scene.world.observed.facts.release.image
    theirs = own().payload
    loads = ReleaseLoads(Nowhere(), scene.clock, lambda: None, image=own_image, own_payload=scene.own.payload)
    loads.states["same"] = Loading(payload=scene.own.payload)
    loads.states["other"] = Loading(payload=theirs)
    loads.states["not yet"] = Loading(running=True)

    def applied(controller: ClusterVersionController, image: str) -> bool | None:
        """Whether it is applied as the operator's own, None where it is not."""
        controller.apply(ApplyRelease(WantedRelease(image, "5.0.0"), ApplyReason.UPDATING))
        work = scene.worker.work
        return work.own if work is not None and work.wanted.image == image else None

    assert applied(scene.controller(applies=True), own_image) is None
    controller = scene.controller(applies=True, loads=loads)
    found = {image: applied(controller, image) for image in (own_image, "same", "other", "not yet", "no")}
    assert found == {own_image: True, "same": True, "other": False, "not yet": None, "no": None}
    assert applied(scene.controller(loads=loads), own_image) is None


async def test_who_asks_for_a_release_where_nobody_fetches_any(scene: Scene) -> None:
    """Nothing happens; where somebody does, it is asked for."""
    scene.controller().load(Release(image="a"))
    loads = ReleaseLoads(Nowhere(), scene.clock, lambda: None, image="own", own_payload=own().payload)
    scene.controller(loads=loads).load(Release(image="a"))
    assert loads.states["a"].running
    await loads.close()


async def test_queries_are_put_for_this_cluster(scene: Scene) -> None:
    """By its ID, none where there is no ClusterVersion; nobody is asked where nobody is named."""
    scene.controller().evaluate(("q",))
    cluster_id = scene.world.version.spec.cluster_id
    assert cluster_id
    async with asking(hosted=True) as (played, asks, _clock, _changed):
        played.go.set()
        controller = scene.controller(prometheus=asks)
        controller.evaluate(('q{_id=""}',))
        await until(quiet)
        scene.caches.versions.remove(scene.world.version)
        controller.evaluate(('r{_id=""}',))
        await until(quiet)
    assert played.asked == [f'q{{_id="{cluster_id}"}}', 'r{_id=""}']


@pytest.mark.parametrize("sink", ["file", "configmap"])
async def test_where_the_report_is_taken_from(scene: Scene, sink: str) -> None:
    """From the folder, or from the ConfigMap of that preflight; the other one is not looked at."""
    facts = scene.world.observed.facts
    place = with_fields(facts.place, report_sink=sink)
    scene.world.change(facts=replace(facts, place=place))
    controller = scene.controller()
    good = encode(Report(format=FORMAT, preflight_id="p1", target_version="5.2.0", execution_status="completed"))
    ours = ObjectMeta(
        name=preflight_deployment.NAME,
        namespace=place.namespace,
        annotations={preflight_deployment.ID_ANNOTATION: "p1"},
    )
    scene.caches.deployments.put(Deployment(metadata=ours))

    def seen() -> ReportSeen | None:
        found = controller.observe()
        assert found is not None
        return found.report

    metadata = ObjectMeta(name=preflight_deployment.report_map("p1"), namespace=place.namespace)
    scene.caches.config_maps.put(ConfigMap(metadata=metadata, data={"report.json": good.decode()}))
    assert (seen() is not None) is (sink == "configmap")
    (scene.folder / "p1").mkdir()
    (scene.folder / "p1" / "report.json").write_bytes(good)
    report = seen()
    assert report is not None
    assert report.preflight_id == "p1"


@pytest.mark.parametrize("applies", [True, False])
async def test_whose_hash_of_a_release_is_told(scene: Scene, applies: bool) -> None:
    """That of the own one where nothing is applied; else the worker knows better."""
    found = scene.controller(applies=applies).observe()
    assert found is not None
    assert bool(found.facts.version_hash) is not applies


async def test_what_is_wanted_later_is_looked_at_later(scene: Scene) -> None:
    """When the plan says so."""
    controller = scene.controller()
    ask_for_preflight(scene.world)
    controller = scene.controller()
    assert scene.queue.due == {}
    await passes(controller, 1)
    plan = reconcile(controller.observe(), now=scene.clock.now())  # type: ignore[arg-type]
    assert plan.requeue_after_s is not None
    assert list(scene.queue.due) == [KEY]


async def test_a_missing_cluster_version_makes_the_operator_unready(scene: Scene) -> None:
    """Until there is one; a kind that is not listed yet comes first."""
    controller = scene.controller()
    scene.caches.versions.remove(scene.world.version)
    scene.caches.pods.synced = False
    assert scene.caches.idle() == "Pod is not listed yet"
    scene.caches.pods.synced = True
    missing = "there is no ClusterVersion version: nothing is checked or applied until it is created"
    assert scene.caches.idle() == missing
    assert await passes(controller, 3) == []
    scene.caches.versions.put(scene.world.version)
    assert scene.caches.idle() == ""


async def test_who_is_told_to_stop_stops(scene: Scene) -> None:
    """In the middle of a pass; a queue that is shut down ends it, too."""
    controller = scene.controller()
    scene.world.ask(None)
    controller = scene.controller()
    holding = asyncio.Event()

    async def hold(_: web.BaseRequest) -> web.StreamResponse:
        holding.set()
        await asyncio.Event().wait()
        return web.Response()

    scene.api.answers(hold)
    running = asyncio.create_task(controller.run())
    await asyncio.wait_for(holding.wait(), 90)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    scene.queue.add(KEY)
    assert len(scene.queue) == 1, "nobody is at work on it"
    scene.api.answers(scene.answer)


def caches() -> Caches:
    """All listed, and empty."""
    made = Caches.new()
    for cache in made.all():
        cache.replace([], "1")
    return made


@pytest.mark.parametrize(
    ("name", "kind", "error", "said"),
    [
        pytest.param("versions", "ClusterVersion", "", " is not listed yet", id="versions"),
        pytest.param("deployments", "Deployment", "", " is not listed yet", id="deployments"),
        pytest.param("pods", "Pod", "no", " is not listed yet: no", id="pods, which may not be"),
        pytest.param("config_maps", "ConfigMap", "", " is not listed yet", id="records"),
        pytest.param("settings", "ConfigMap", "no", " is not listed yet: no", id="settings, which may not be"),
        pytest.param("operators", "ClusterOperator", "", " is not listed yet", id="operators"),
        pytest.param("operators", "ClusterOperator", "no", "", id="operators, which may not be"),
        pytest.param("gates", "FeatureGate", "", " is not listed yet", id="gates"),
        pytest.param("gates", "FeatureGate", "no", "", id="gates, which may not be"),
        pytest.param("admin_gates", "ConfigMap", "", " is not listed yet", id="gates of administrators"),
        pytest.param("admin_acks", "ConfigMap", "no", "", id="acknowledgements, which may not be"),
        pytest.param("warnings", "Event", "", "", id="warnings, which nobody waits for"),
    ],
)
def test_what_is_needed_to_decide(name: str, kind: str, error: str, said: str) -> None:
    """A list, or where it can do without one a reason for having none."""
    made = caches()
    cache = getattr(made, name)
    cache.synced = False
    if error:
        cache.fail(error)
    assert made.not_ready() == (f"{kind}{said}" if said else "")


def test_which_objects_hold_everything_up() -> None:
    """A Deployment that cannot be read does; an operator that cannot is one that is unknown."""
    made = caches()
    made.operators.put_undecoded(Undecodable("", "etcd", "no"))
    assert made.not_ready() == ""
    made.deployments.put_undecoded(Undecodable("ns", "d", "no"))
    assert made.not_ready().startswith("Deployment ns/d cannot be read: ")


def test_a_feature_gate_counts_once_it_is_listed() -> None:
    """Before that nothing is assumed."""
    made = Caches.new()
    gate = World.new().observed.feature_gate
    assert gate is not None
    made.gates.put(gate)
    assert made.feature_gate() is None
    made.gates.replace([gate], "1")
    assert made.feature_gate() == gate
    assert len(made.all()) == 10


async def test_why_what_administrators_say_is_not_known(scene: Scene) -> None:
    """The first that may not be listed, or that is no ConfigMap."""
    controller = scene.controller()
    gates, acks = scene.caches.admin_gates, scene.caches.admin_acks

    def why() -> str:
        found = controller.observe()
        assert found is not None
        return found.admin_unreadable

    assert why() == ""
    acks.synced = False
    acks.fail("forbidden")
    assert why() == "forbidden"
    acks.replace([], "1")
    acks.recover()
    assert why() == ""
    gates.put_undecoded(Undecodable("ns", "gates", "no"))
    assert why().startswith("ns/gates cannot be read: ")


async def test_whose_pods_are_whose(scene: Scene) -> None:
    """By the label of the application."""
    controller = scene.controller()
    apps = {"a": preflight_deployment.NAME, "b": container_check_pods.NAME, "c": "other"}
    for name, app in apps.items():
        metadata = ObjectMeta(name=name, namespace="ns", labels={preflight_deployment.APP_LABEL: app})
        scene.caches.pods.put(Pod(metadata=metadata))
    scene.caches.pods.put(Pod(metadata=ObjectMeta(name="d", namespace="ns")))
    found = controller.observe()
    assert found is not None
    assert [pod.metadata.name for pod in found.pods] == ["a"]
    assert [pod.metadata.name for pod in found.check_pods] == ["b"]


async def test_watches_last_half_an_hour_to_an_hour(scene: Scene) -> None:
    """One for each cache, of our namespace where it is namespaced."""
    scene.controller()
    found = reflectors(scene.client, scene.caches, "ns", scene.clock)
    assert len(found) == len(scene.caches.all())
    assert {each.watch_s for each in found} == {1800}
