"""What the kernel-module preflight's shell decides by itself: whom a change concerns, what is counted, what is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.factories import node
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, failure, reply, scripted_api, status
from tests.release.control.test_registry_access import FORBIDDEN, Answers, cluster

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, ObjectMeta, OwnerReference
from kubekit.api.scheme import resource_of
from kubekit.api.whole_v1 import WholeJob, WholePod
from kubekit.error_types import Terminal, Waiting
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from kubekit.oci import registry_errors
from kubekit.oci.access import Access
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.kmm_v1beta1 import Module, TLSOptions
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation, PreflightValidationOCP, PreflightValidationStatus
from runup.kernelmodules.control import image_stage, process, registries
from runup.kernelmodules.control import module_check as kernels
from runup.kernelmodules.control.answer_cache import ANSWER_TTL, MAX_CONCURRENT_QUESTIONS, AnswerCache
from runup.kernelmodules.control.controller import BATCH_DELAY_S, KernelModulesController, Metrics
from runup.kernelmodules.control.image_stage import first_paths_text, outcome_of_error, with_options
from runup.kernelmodules.control.module_check import toolkits_of
from runup.kernelmodules.control.process import Options, Process
from runup.kernelmodules.control.registries import ClusterRegistries, names_of
from runup.kernelmodules.control.watches import AFTER_ERROR_S, AGAIN_S, Caches, Runners, trim_job, trim_node, trim_pod
from runup.kernelmodules.decide.build_jobs import JOBS, Builder
from runup.kernelmodules.decide.module_state import (
    AnswerValue,
    Image,
    ImageQuestion,
    Observed,
    Question,
    ReleaseQuestion,
)
from runup.kernelmodules.decide.runs import VALIDATION_ANNOTATION, Runner
from runup.kernelmodules.decide.toolkit import Flavour, Toolkit, flavour_of
from runup.kernelmodules.decide.verdict import ExaminationOutcome, ToolkitUnknown
from runup.process.plan import Action, Apply, Delete, Event, PatchStatus, Plan
from runup.process.plan_executor import Executor

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Heard:
    """Whom a change was asked to bear on."""

    names: list[str] = field(default_factory=list)
    everyone: int = 0
    requested: int = 0
    edited: list[str] = field(default_factory=list)

    def one(self, name: str) -> None:
        """One validation."""
        self.names.append(name)

    def all(self) -> None:
        """Every one."""
        self.everyone += 1

    def request(self) -> None:
        """Somebody asks again."""
        self.requested += 1

    @property
    def taken(self) -> tuple[list[str], int, int]:
        """Returns the events since the last call."""
        found = (self.names, self.everyone, self.requested)
        self.names, self.everyone, self.requested = [], 0, 0
        return found


def heard(caches: Caches) -> Heard:
    """Somebody who listens to these."""
    made = Heard()
    caches.on_change(made.one, made.all, made.request, made.edited.append)
    return made


def meta(name: str = "p", *, owner: str = "", controller: bool = True, **changes: Any) -> ObjectMeta:
    """Of an object, made by its owner."""
    owners = (OwnerReference(name=owner, controller=controller),) if owner else ()
    return ObjectMeta(**{"name": name, "uid": "1", "generation": 1, "owner_references": owners} | changes)


def test_whom_a_validation_concerns() -> None:
    """Itself and its owner; made or edited it is a request, unless another object's request made it."""
    caches = Caches()
    reported = heard(caches)
    caches.validations.put(PreflightValidation(metadata=meta()))
    assert reported.taken == (["p"], 0, 1)
    caches.validations.put(PreflightValidation(metadata=meta(resource_version="2")))
    assert reported.taken == (["p", "p"], 0, 0)
    caches.validations.put(PreflightValidation(metadata=meta(generation=2)))
    assert reported.taken == (["p", "p"], 0, 1)
    caches.validations.put(PreflightValidation(metadata=meta(uid="2", generation=2)))
    assert reported.taken == (["p", "p"], 0, 1)
    caches.validations.remove(PreflightValidation(metadata=meta()))
    assert reported.taken == (["p"], 0, 0)
    caches.validations.put(PreflightValidation(metadata=meta("q", owner="o")))
    assert reported.taken == (["q", "o"], 0, 0)
    caches.validations.put(PreflightValidation(metadata=meta("r", owner="o", controller=False)))
    assert reported.taken == (["r", "o"], 0, 1)


def test_whom_anything_else_concerns() -> None:
    """A release concerns everybody, and so do Modules and nodes, but for heartbeats; a run concerns its validation."""
    caches = Caches()
    reported = heard(caches)
    caches.ocps.put(PreflightValidationOCP(metadata=meta()))
    assert reported.taken == ([], 1, 1)
    for cache, obj in (
        (caches.modules, Module(metadata=meta())),
        (caches.nodes, node(metadata={"resourceVersion": "1"})),
    ):
        cache.put(obj)  # type: ignore[arg-type]
        assert reported.taken == ([], 1, 0)
        cache.put(replace(obj, metadata=replace(obj.metadata, resource_version="2")))  # type: ignore[arg-type,type-var]
        assert reported.taken == ([], 0, 0)
        cache.put(replace(obj, metadata=replace(obj.metadata, labels={"a": "b"})))  # type: ignore[arg-type,type-var]
        assert reported.taken == ([], 1, 0)
        cache.remove(obj)  # type: ignore[arg-type]
        assert reported.taken == ([], 1, 0)
    ours = meta("j", annotations={VALIDATION_ANNOTATION: "p"})
    caches.jobs.put(WholeJob(metadata=ours))
    caches.pods.put(WholePod(metadata=meta("k")))
    assert reported.taken == (["p", ""], 0, 0)
    for cache in (*caches.all(), caches.builds):
        cache.fail("no")
        assert reported.taken == ([], 1, 0)


def test_which_kind_is_waited_for() -> None:
    """The first that has neither a list nor a reason for having none; Builds are not every cluster's."""
    caches = Caches()
    names = []
    while waiting := caches.waiting():
        names.append(waiting)
        cache = next(each for each in caches.all() if each.kind.__name__ == waiting)
        if waiting == "Module":
            cache.fail("no")
        else:
            cache.replace([], "1")
    assert names == ["PreflightValidationOCP", "PreflightValidation", "Module", "Node", "WholeJob", "WholePod"]


def test_the_names_that_there_are() -> None:
    """Each once, in order."""
    caches = Caches()
    for name in ("b", "a"):
        caches.validations.put(PreflightValidation(metadata=meta(name)))
    caches.ocps.put(PreflightValidationOCP(metadata=meta("a")))
    assert caches.names() == ["a", "b"]


def test_what_is_kept_of_nodes_jobs_and_pods() -> None:
    """What Modules select by, no Dockerfile, and what containers came to."""
    kept = trim_node(node(metadata={"resourceVersion": "7"}, annotations={"a": "b"}))
    assert (kept.metadata.annotations, kept.metadata.resource_version) == ({}, "")
    assert kept.status.node_info.architecture == "amd64"
    assert kept.status.conditions == ()
    info = {"architecture": "amd64", "kernelVersion": "5.14.0-503.el9.x86_64+rt"}
    real_time = codec.convert(Node, {"metadata": {"name": "r"}, "status": {"nodeInfo": info}})
    assert flavour_of(trim_node(real_time)) == Flavour("amd64", real_time=True)
    job = codec.convert(WholeJob, {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": []}}}})
    assert trim_job(job).spec.template == {}
    pod = WholePod(
        metadata=meta(annotations={VALIDATION_ANNOTATION: "p", "other": "x"}),
        status={"containerStatuses": [1], "initContainerStatuses": [2], "phase": "Running"},
    )
    assert trim_pod(pod).metadata.annotations == {VALIDATION_ANNOTATION: "p"}
    assert trim_pod(pod).status == {"containerStatuses": [1], "initContainerStatuses": [2]}
    assert trim_pod(WholePod(metadata=meta(annotations={"other": "x"}))).metadata.annotations == {}


class Scene:
    """A controller whose cluster is listed, and a server that takes what it is asked to."""

    def __init__(self, api: ScriptedApi, client: Client) -> None:
        self.api, self.clock, self.caches = api, ManualClock(NOON), Caches()
        for cache in self.caches.all():
            cache.replace([], "1")
        self.queue: WorkQueue[str] = WorkQueue(self.clock)
        self.metrics = Metrics()
        self.executor = Executor(client, self.clock)
        self.controller = KernelModulesController(
            caches=self.caches, queue=self.queue, clock=self.clock, metrics=self.metrics, builder=Builder()
        )
        self.asked: list[Question] = []
        self.asking = AnswerCache(self._answer, self.clock, lambda: None)
        self.runners = Runners(client, self.caches, self.clock, lambda: None, builds=False)
        self.refused: dict[str, tuple[int, str]] = {}
        api.answers(self.answer)

    async def _answer(self, question: Question) -> AnswerValue:
        self.asked.append(question)
        return Image(verified=True)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Taken, or refused by name."""
        code, reason = self.refused.get(request.path.split("?")[0].rpartition("/")[2], (200, ""))
        return web.json_response({} if code == 200 else status(code, reason, "not so"), status=code)

    async def carry_out(self, *actions: Action) -> None:
        """A plan of these."""
        await self.controller.carry_out(Plan(actions), self.executor)

    async def handle(self) -> None:
        """One pass."""
        await self.controller.handle("p", self.executor, self.asking, self.runners)

    @property
    def observed(self) -> Observed:
        """What a pass would observe now."""
        return self.controller.observe("p", self.asking, self.runners)

    @property
    def done(self) -> list[str]:
        """The names of what was asked of the server."""
        return [target.partition("?")[0].rpartition("/")[2] for target in self.api.targets]

    def written(self, kind: str) -> float:
        """How many writes of a kind were counted."""
        return self.metrics.registry.get_sample_value("kernel_module_preflight_writes_total", {"kind": kind}) or 0.0


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """With nothing in it."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        yield Scene(api, client)


def job(name: str) -> Apply:
    """A run."""
    return Apply(resource=JOBS, object={"metadata": {"name": name, "namespace": "drivers"}})


VALIDATIONS = resource_of(PreflightValidation)
GONE = Delete(JOBS, NamespacedName("drivers", "gone"))
REPORTED = Event(resource=VALIDATIONS, key=NamespacedName("", "p"), type="Normal", reason="R", message="m")
FOR_EVER, FOR_NOW, TAKEN = (403, "Forbidden"), (503, "ServiceUnavailable"), (409, "Conflict")


@pytest.mark.parametrize(
    ("refused", "raised", "done"),
    [
        pytest.param({}, None, ["a", "b", "gone"], id="all is taken"),
        pytest.param({"a": FOR_EVER}, None, ["a", "b", "gone"], id="a run is refused, which its Module is told"),
        pytest.param({"a": FOR_NOW}, KubeError, ["a", "b", "gone"], id="a webhook is away: the others go on"),
        pytest.param({"gone": FOR_EVER}, KubeError, ["a", "b", "gone"], id="what is no run is refused"),
        pytest.param({"a": TAKEN}, Conflict, ["a"], id="decided on an old version: nothing more is"),
    ],
)
async def test_one_action_that_fails_and_the_others(
    scene: Scene, refused: dict[str, tuple[int, str]], raised: type[Exception] | None, done: list[str]
) -> None:
    """Modules do not wait for each other; only what was done is counted."""
    scene.refused = refused
    actions = (job("a"), job("b"), GONE)
    if raised is None:
        await scene.carry_out(*actions)
    else:
        with pytest.raises(raised):
            await scene.carry_out(*actions)
    assert scene.done == done
    assert scene.written("Job") == len([name for name in done if name not in refused])


async def test_the_first_failure_is_the_one_that_counts(scene: Scene) -> None:
    """And an event is no write."""
    scene.refused = {"gone": FOR_EVER, "a": FOR_NOW}
    with pytest.raises(KubeError) as caught:
        await scene.carry_out(job("a"), GONE, REPORTED)
    assert caught.value.reason == "ServiceUnavailable"
    await scene.carry_out(REPORTED)
    assert scene.written("PreflightValidation") == 0


async def test_a_refused_run_is_remembered_for_three_minutes(scene: Scene) -> None:
    """In the server's words; then a quota or a webhook may have changed."""
    scene.caches.validations.put(PreflightValidation(metadata=meta("p")))
    scene.clock.jump(1)
    await scene.queue.get()
    scene.refused = {"a": FOR_EVER}
    await scene.carry_out(job("a"))
    key = NamespacedName("drivers", "a")
    due = {"p": scene.clock.monotonic() + BATCH_DELAY_S}
    assert scene.queue.due == due, "the status of this pass does not know of it"
    said = {key: "Job drivers/a was refused: not so"}
    assert scene.observed.refused == said
    scene.clock.jump(179)
    assert scene.observed.refused == said
    scene.clock.jump(1)
    assert scene.observed.refused == {}


async def test_what_is_no_run_is_never_a_refusal_of_one(scene: Scene) -> None:
    """A validation of the release's that is refused is a failure of the pass."""
    scene.refused = {"v": FOR_EVER}
    with pytest.raises(KubeError):
        await scene.carry_out(Apply(resource=VALIDATIONS, object={"metadata": {"name": "v"}}))
    assert scene.observed.refused == {}


@pytest.mark.parametrize(
    ("refusal", "level"),
    [pytest.param(TAKEN, "debug", id="somebody was faster"), pytest.param(FOR_EVER, "warning", id="it is refused")],
)
async def test_a_pass_that_fails_is_done_again(scene: Scene, refusal: tuple[int, str], level: str) -> None:
    """Later and later, until one succeeds."""
    scene.caches.validations.put(PreflightValidation(metadata=meta("p")))
    scene.refused = {"status": refusal, "p": refusal}
    arguments = (scene.executor, scene.asking, scene.runners)
    for number in (1, 2):
        with capture_logs() as logs:
            await scene.controller.handle("p", *arguments)
        assert scene.queue.failures("p") == number
        assert level in [line["log_level"] for line in logs]
        if level == "debug":
            assert [line["event"] for line in logs if line["log_level"] == level] == ["decided on an old version"]
    scene.refused = {}
    await scene.controller.handle("p", *arguments)
    assert scene.queue.failures("p") == 0
    with capture_logs() as logs:
        await scene.controller.handle("p", scene.executor, None, scene.runners)  # type: ignore[arg-type]
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["the pass failed"]
    assert scene.queue.failures("p") == 1


async def test_nothing_is_decided_before_all_is_listed(scene: Scene) -> None:
    """A request counts from then on."""
    scene.controller.on_request()
    scene.caches.nodes.synced = False
    await scene.handle()
    scene.asking.ask([ReleaseQuestion("r")])
    await eventually(lambda: scene.asking.known.known)
    await scene.handle()
    assert scene.asking.known.known, "a request is not forgotten, nor is it heard yet"
    scene.caches.nodes.synced = True
    await scene.handle()
    assert scene.asking.known.known == {}
    scene.asking.ask([ReleaseQuestion("r")])
    await eventually(lambda: scene.asking.known.known)
    await scene.handle()
    assert scene.asking.known.known, "one request drops answers once"


async def test_a_change_without_a_name_is_nobody_s(scene: Scene) -> None:
    """A pod that no validation made."""
    scene.controller.on_change("")
    assert scene.queue.due == {}
    scene.controller.on_change("p")
    assert scene.queue.due == {"p": 0.1}


async def test_what_is_observed(scene: Scene) -> None:
    """Kinds that are not listed are unknown, and partial lists are reported."""
    caches = scene.caches
    caches.modules.replace([Module(metadata=meta("m"))], "1", incomplete=("a", "b"))
    found = scene.controller.observe("p", scene.asking, scene.runners)
    assert ([each.metadata.name for each in found.modules or ()], found.incomplete) == (["m"], "a; b")
    assert (found.nodes, found.runner, found.modules_problem) == ((), Runner.JOBS, "")
    caches.modules.synced = caches.nodes.synced = caches.jobs.synced = False
    caches.modules.fail("forbidden")
    found = scene.controller.observe("p", scene.asking, scene.runners)
    assert (found.modules, found.nodes, found.runner, found.modules_problem) == (None, None, None, "forbidden")


def entry(**changes: str) -> dict[str, str]:
    """What a status says about a Module."""
    said = {"namespace": "drivers", "name": "m", "verificationStatus": "InProgress", "verificationStage": "Image"}
    return {**said, "statusReason": "r", **changes}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        pytest.param({}, 0, id="as before"),
        pytest.param({"verificationStatus": "Success"}, 1, id="another status"),
        pytest.param({"runningStage": "Build"}, 1, id="another stage"),
        pytest.param({"statusReason": "s"}, 1, id="another reason"),
        pytest.param({"name": "n"}, 1, id="another Module"),
        pytest.param({"namespace": "other"}, 1, id="its namesake elsewhere"),
    ],
)
@pytest.mark.parametrize("kind", [PreflightValidation, PreflightValidationOCP])
async def test_each_transition_is_one_line(scene: Scene, kind: Any, changes: dict[str, str], lines: int) -> None:
    """Against what the object of that kind said before."""
    known = ModuleStatus(
        namespace="drivers",
        name="m",
        verification_status="InProgress",
        verification_stage="Image",
        status_reason="r",
        last_transition_time=NOON,
    )
    before = kind(metadata=meta("p"), status=PreflightValidationStatus(modules=(known,)))
    observed = Observed(name="p", **{"validation" if kind is PreflightValidation else "ocp": before})
    patch = PatchStatus(
        resource=resource_of(kind),
        key=NamespacedName("", "p"),
        fields={"modules": [entry(**changes)]},
        gone=(),
        resource_version="1",
    )
    with capture_logs() as logs:
        scene.controller.log_plan(observed, Plan((patch, job("a"))))
        assert len([line for line in logs if line["event"] == "module"]) == lines
        assert [line["object"] for line in logs if line["event"] == "applying"] == ["drivers/a"]
        scene.controller.log_plan(Observed(name="p"), Plan((patch,)))
    assert len([line for line in logs if line["event"] == "module"]) == lines + 1


REFUSED = (registry_errors.Unauthorized("no"), registry_errors.ImageNotFound("no"), registry_errors.FileNotFound("no"))


@pytest.mark.parametrize(
    ("error", "note", "outcome"),
    [
        *((error, "", ExaminationOutcome.FAILED) for error in REFUSED),
        *((error, "the pull secret a/b could not be read: no", ExaminationOutcome.UNKNOWN) for error in REFUSED),
        *((error, "the pull secret a/b is not there", ExaminationOutcome.FAILED) for error in REFUSED),
        (registry_errors.Unreachable("no"), "", ExaminationOutcome.UNKNOWN),
        (registry_errors.BeyondLimits("no"), "", ExaminationOutcome.UNKNOWN),
        (registry_errors.BadImage("no"), "the pull secret a/b could not be read: no", ExaminationOutcome.FAILED),
    ],
)
def test_what_an_error_says_of_an_image(
    error: registry_errors.OciError, note: str, outcome: ExaminationOutcome
) -> None:
    """Nothing where its registry is away, or where a login that may exist could not be read."""
    assert outcome_of_error(error, ["another note", note] if note else []) is outcome


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("", ""),
        ("a", "a"),
        ("abc", "a, b, c"),
        ("abcd", "a, b, c and 1 more"),
        ("abcdefg", "a, b, c and 4 more"),
    ],
)
def test_three_paths_are_named(paths: str, said: str) -> None:
    """And how many there are besides."""
    assert first_paths_text(list(paths)) == said


def question(**tls: bool) -> ImageQuestion:
    """An image, as its Module says how its registry is asked."""
    return ImageQuestion(
        image="registry.example/a:1",
        kernel="6.1",
        dir_name="/opt",
        module_names=("a",),
        tls=TLSOptions(**tls),
        namespace="drivers",
    )


def test_whose_certificate_is_not_looked_at() -> None:
    """That of the registry of which the Module says so, besides those that are named already."""
    access, reference = Access(unchecked=frozenset({"other"})), parse("registry.example/a:1")
    assert with_options(access, reference, question()) == access
    found = with_options(access, reference, question(insecure_skip_tls_verify=True))
    assert found.unchecked == {"other", "registry.example"}


def test_limits_that_are_promised() -> None:
    """Ten minutes for an image, five for a release's file, ten seconds for one wait; eight questions at a time."""
    assert (image_stage.WITHIN_S, kernels.WITHIN_S, registries.ANSWER_S) == (600, 300, 10)
    assert (MAX_CONCURRENT_QUESTIONS, ANSWER_TTL.total_seconds(), image_stage.LONGEST_REASON) == (8, 3600, 2048)
    assert (AGAIN_S, AFTER_ERROR_S, kernels.AGAIN_S, process.LONGEST_BACKOFF_S) == (600, 5, 60, 30)


async def test_an_answer_is_kept_for_an_hour() -> None:
    """To the second, whoever asks for something else."""
    clock = ManualClock(NOON)

    async def answer(_: Question) -> AnswerValue:
        return Image(verified=True)

    asking = AnswerCache(answer, clock, lambda: None)
    for after_s, expected in ((0, {"a"}), (3600, {"a", "b"}), (1, {"b", "c"})):
        clock.jump(after_s)
        name = "abc"[len(expected) if after_s == 1 else len(expected) - 1]
        asking.ask([ReleaseQuestion(name)])
        await eventually(lambda: not asking.under_way)
        assert {each.image for each in asking.known.known} == expected  # type: ignore[union-attr]


@dataclass
class Unclear:
    """Registries of a cluster whose answer nobody can read, or that was not read in time."""

    error: Exception

    async def access(self, _namespace: str, _secret: str, notes: list[str], *, cluster: bool = True) -> Access:
        """See `Registries.access`."""
        assert cluster
        notes.append("a note")
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(codec.DecodeError("half"), "the cluster's answer is not clear: half", id="half an answer"),
        pytest.param(TimeoutError(), "it was not read within ", id="no answer"),
        pytest.param(registry_errors.Unreachable("away"), "away (a note)", id="a registry that is away"),
    ],
)
async def test_a_cluster_that_does_not_say_is_no_verdict(error: Exception, said: str) -> None:
    """Of an image nothing is known, and a release is asked for again after a minute."""
    found = await image_stage.verify_image(question(), Unclear(error), within_s=7)
    assert (found.outcome, found.fetched_bytes) == (ExaminationOutcome.UNKNOWN, 0)
    assert found.message.startswith("image registry.example/a:1 inaccessible or does not exists: ")
    assert said in found.message
    with pytest.raises(Waiting) as caught:
        await kernels.toolkit_of_release("r.example/release:1", Unclear(error))
    assert caught.value.message.startswith("failed to get image spec from image r.example/release:1: ")
    assert said in caught.value.message
    assert "(a note)" in caught.value.message
    assert (caught.value.retry_after_s, caught.value.reason) == (60, "ReleaseUnreadable")


async def test_whose_kernel_is_not_known_is_told_where_there_are_several() -> None:
    """By its kind; a single one needs no name."""
    broken = Unclear(registry_errors.BadImage("no"))
    one = await kernels.kernels_of(ReleaseQuestion("r.example/release:1"), broken)
    assert one.problem.startswith("failed to get image spec")
    flavours = (Flavour("arm64"), Flavour("amd64"))
    two = await kernels.kernels_of(ReleaseQuestion("r.example/release:1", flavours), broken)
    assert two.problem.startswith("arm64: failed to get image spec")
    single = await kernels.kernels_of(ReleaseQuestion("r.example/release:1", flavours[:1]), broken)
    assert single.problem == one.problem


async def test_an_error_that_cannot_be_mended_by_waiting_is_final() -> None:
    """What a registry says about an image itself."""
    with pytest.raises(Terminal) as caught:
        await kernels.toolkit_at("r.example/dtk:1", Unclear(registry_errors.BadImage("no")))
    assert caught.value.reason == "ReleaseUnreadable"
    assert not isinstance(caught.value, Waiting)


async def test_who_is_left_behind_in_a_thread_waits_no_longer() -> None:
    """Whoever asked has gone: between two attempts nothing is waited for any more."""
    waits: list[Callable[[float], Any]] = []

    def what(client: RegistryClient) -> str:
        waits.append(client.access.wait)
        return "read"

    await image_stage.ask_registry(parse("registry.example/a:1"), Access(), what, within_s=60)
    assert [wait(0) for wait in waits] == [True]


async def test_plain_http_is_tried_where_tls_is_not_to_be_had() -> None:
    """TLS first and once; plain HTTP where that was said, at once where it was said about the registry before."""
    reference, tried = parse("registry.example/a:1"), list[tuple[bool, int]]()
    access = Access(attempts=3)

    def what(client: RegistryClient) -> str:
        plain = client.access.is_plain("registry.example")
        tried.append((plain, client.access.attempts))
        if not plain:
            raise registry_errors.Unreachable("no TLS")
        return "read"

    assert await image_stage.ask_registry(reference, access, what, within_s=60, plain_too=True) == "read"
    assert tried == [(False, 1), (True, 3)]
    tried.clear()
    with pytest.raises(registry_errors.Unreachable):
        await image_stage.ask_registry(reference, access, what, within_s=60)
    assert tried == [(False, 3)]
    tried.clear()
    known = Access(attempts=3, plain_http=frozenset({"registry.example"}))
    assert await image_stage.ask_registry(reference, known, what, within_s=60, plain_too=True) == "read"
    assert tried == [(True, 3)]


@pytest.mark.parametrize(
    ("references", "names"),
    [
        pytest.param([{"name": "a"}, {"name": "b"}], ["a", "b"], id="two"),
        pytest.param([{"name": ""}, {"name": 7}, {}, "x", None], [], id="what names none"),
        pytest.param({"name": "a"}, [], id="no list"),
        pytest.param(None, [], id="nothing"),
    ],
)
def test_which_pull_secrets_an_account_names(references: Any, names: list[str]) -> None:
    """Those that are named by text."""
    assert list(names_of(references)) == names


ACCOUNT = "/api/v1/namespaces/drivers/serviceaccounts/builder"
SECRETS = "/api/v1/namespaces/drivers/secrets"
LOGINS = "eyJhdXRocyI6IHsiciI6IHsiYXV0aCI6ICJZVHBpIn19fQ=="


def login(name: str) -> Answers:
    """A pull secret with a login."""
    held = {".dockerconfigjson": LOGINS}
    return {f"{SECRETS}/{name}": (200, {"metadata": {"name": name}, "data": held})}


@pytest.mark.parametrize(
    ("answers", "namespace", "secret", "files", "notes"),
    [
        pytest.param(login("mine"), "drivers", "mine", 1, [], id="the Module's own"),
        pytest.param({}, "drivers", "mine", 0, ["the pull secret drivers/mine is not there"], id="which is not there"),
        pytest.param(
            {f"{SECRETS}/mine": FORBIDDEN},
            "drivers",
            "mine",
            0,
            ["the pull secret drivers/mine could not be read: you may not"],
            id="which may not be read",
        ),
        pytest.param(
            {f"{SECRETS}/mine": (200, {"data": {".dockerconfigjson": "?"}})},
            "drivers",
            "mine",
            0,
            ["Secret drivers/mine: .dockerconfigjson is not base64"],
            id="which cannot be used",
        ),
        pytest.param(
            {ACCOUNT: (200, {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "a"}]})}
            | login("a")
            | login("b"),
            "drivers",
            "",
            2,
            [],
            id="the builder's, each once",
        ),
        pytest.param({}, "drivers", "", 0, [], id="no builder"),
        pytest.param(
            {ACCOUNT: FORBIDDEN},
            "drivers",
            "",
            0,
            ["the ServiceAccount drivers/builder could not be read: you may not"],
            id="a builder that may not be read",
        ),
        pytest.param(login("mine"), "", "mine", 0, [], id="one of the cluster's images"),
    ],
)
async def test_whose_logins_are_used(
    answers: Answers, namespace: str, secret: str, files: int, notes: list[str]
) -> None:
    """And what is noted where they cannot be had; one wait is short, whatever was said."""
    reported: list[str] = []
    async with cluster(answers) as client:
        for given_s, waits_s in ((1.0, 1.0), (60.0, 10.0)):
            reported.clear()
            also = Access(timeout_s=given_s)
            found = await ClusterRegistries(client, also).access(namespace, secret, reported)
            assert (len(found.credentials.files), reported, found.timeout_s) == (files, notes, waits_s)


@pytest.mark.parametrize(
    ("answer", "found", "again_s"),
    [
        pytest.param(
            reply({"resources": [{"name": "builds", "kind": "Build"}]}), Runner.BUILDS, 600, id="it has Builds"
        ),
        pytest.param(
            reply({"resources": [{"name": "others", "kind": "Other"}]}), Runner.JOBS, 600, id="others of the group"
        ),
        pytest.param(failure(404, "NotFound"), Runner.JOBS, 600, id="nothing of it"),
        pytest.param(failure(403, "Forbidden"), None, 5, id="nobody may know"),
        pytest.param(reply([]), None, 5, id="an answer that nobody can read"),
    ],
)
async def test_by_what_a_cluster_builds(answer: Callable[..., Any], found: Runner | None, again_s: float) -> None:
    """Known once the runs that there are have been listed; asked again after ten minutes, or soon."""
    clock, caches, reported = ManualClock(NOON), Caches(), list[int]()
    async with scripted_api() as api:
        api.answers(answer, failure(403, "Forbidden"))
        async with Client(ClusterConfig(server=api.url), clock=ManualClock(NOON)) as client:
            runners = Runners(client, caches, clock, lambda: reported.append(1), builds=True)
            running = asyncio.create_task(runners.run())
            await eventually(lambda: again_s in [round(each) for each in clock.sleeping])
            assert (runners.current, len(reported)) == (None, 0 if found is None else 1)
            (caches.builds if found is Runner.BUILDS else caches.jobs).replace([], "1")
            assert runners.current is found
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            jobs = Runners(client, caches, clock, lambda: None, builds=False)
            caches.jobs.replace([], "1")
            assert jobs.current is Runner.JOBS
            await jobs.run()


async def test_the_toolkits_of_architectures() -> None:
    """In order; why one is not known, and whether asking again helps."""

    async def read(architecture: str) -> Toolkit:
        if architecture == "amd64":
            return Toolkit("dtk", "6.1")
        if architecture == "arm64":
            raise Terminal("none for it", reason="R")
        raise Waiting("away", reason="R", retry_after_s=1)

    assert await toolkits_of(["amd64", "arm64", "s390x"], read) == {
        "amd64": Toolkit("dtk", "6.1"),
        "arm64": ToolkitUnknown("none for it", final=True),
        "s390x": ToolkitUnknown("away", final=False),
    }


def module(name: str, container: dict[str, Any] | None) -> Module:
    """A Module with that container."""
    loader = None if container is None else {"container": {"modprobe": {"moduleName": name}, **container}}
    spec = {"selector": {}, **({"moduleLoader": loader} if loader else {})}
    return codec.convert(Module, {"metadata": {"name": name, "namespace": "drivers"}, "spec": spec})


async def test_what_there_is_is_counted() -> None:
    """Modules, those that build or sign anywhere, and preflights, of which one that another made is none."""
    metrics = Metrics()

    def value(series: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(series, labels)

    build, sign = {"dockerfileConfigMap": {"name": "d"}}, {"keySecret": {"name": "k"}, "certSecret": {"name": "c"}}
    mapping = {"regexp": ".", "containerImage": "i"}
    modules = [
        module("plain", {"kernelMappings": [mapping]}),
        module("whole", {"build": build, "kernelMappings": [mapping]}),
        module("part", {"kernelMappings": [mapping, {**mapping, "build": build, "sign": sign}]}),
        module("none", None),
    ]
    done = ModuleStatus(
        namespace="d", name="m", verification_status="Success", verification_stage="Done", last_transition_time=NOON
    )
    bad = ModuleStatus(
        namespace="d", name="n", verification_status="InProgress", verification_stage="Image", last_transition_time=NOON
    )
    one = PreflightValidation(metadata=meta("p", owner="p"), status=PreflightValidationStatus(modules=(done, bad)))
    alone = PreflightValidation(metadata=meta("q", owner="r", controller=False))
    releases = [PreflightValidationOCP(metadata=meta(name)) for name in ("p", "r")]
    metrics.see(modules, [one, alone], releases)
    assert [value(f"kmm_{name}") for name in ("module_num", "in_cluster_build_num", "in_cluster_sign_num")] == [4, 2, 1]
    assert value("kmm_preflight_num") == 3
    known = {"preflight": "p", "namespace": "d"}
    assert value("kmm_preflight_module_status", **known, name="m", status="Success") == 1
    assert value("kmm_preflight_module_status", **known, name="n", status="InProgress") == 1
    metrics.see([], [alone], releases[:1])
    assert value("kmm_preflight_num") == 2, "one of each"
    metrics.see([], [], [])
    assert value("kmm_preflight_module_status", **known, name="m", status="Success") is None
    assert (value("kmm_module_num"), value("kmm_preflight_num")) == (0, 0)


async def test_how_long_an_answer_took_is_measured() -> None:
    """By the kind of its question, also where it fails."""
    clock, metrics = ManualClock(NOON), Metrics()

    async def slow(asked: Question) -> AnswerValue:
        clock.jump(7)
        if isinstance(asked, ReleaseQuestion):
            raise ValueError("it broke")
        return Image(verified=True)

    timed = metrics.timed(slow, clock)
    assert await timed(question()) == Image(verified=True)
    with pytest.raises(ValueError, match="it broke"):
        await timed(ReleaseQuestion("r"))
    for kind in ("image", "release"):
        found = metrics.registry.get_sample_value("kernel_module_preflight_answer_seconds_sum", {"question": kind})
        assert found == 7


async def test_a_process_says_what_it_waits_for() -> None:
    """The probe's answer names the kind."""
    made = Process(ClusterConfig(server="http://127.0.0.1:9"), Options())
    assert made.not_ready() == "PreflightValidationOCP is not listed yet"
    for cache in made.caches.all():
        cache.replace([], "1")
    assert made.not_ready() == ""
    made.caches.ocps.synced = made.caches.validations.synced = False
    made.caches.ocps.fail("not allowed to list them")
    made.caches.validations.fail("nor these")
    assert made.not_ready() == "no validation can be read: not allowed to list them"
    made.stop()
    assert made.stopping.is_set()


async def test_a_process_that_is_stopped_leaves_nothing_behind() -> None:
    """It says that it starts; what follows the cluster, and what is asked, ends with it."""
    made = Process(ClusterConfig(server="http://127.0.0.1:9"), Options(leader_elect=False), clock=ManualClock(NOON))
    before = asyncio.all_tasks()
    with capture_logs() as logs:
        running = asyncio.create_task(made.run())
        await eventually(lambda: made.caches.nodes.error is not None)
        made.stop()
        await asyncio.wait_for(running, 90)
    assert asyncio.all_tasks() == before
    assert [(line["event"], line["namespace"]) for line in logs if "namespace" in line] == [
        ("starting", "openshift-kernel-module-preflight")
    ]
