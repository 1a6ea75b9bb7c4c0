"""The target's process by a clock that stands: when it writes, how long it waits, what it asks for again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.factories import cluster_version, context, node, snapshot
from tests.kubekit.kube.apiscript import eventually, failure, reply, scripted_api, status
from tests.preflight.control.test_target import Log

from kubekit.api.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Namespace,
    Node,
    Pod,
    PodStatus,
)
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import ServerError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import Allowance
from kubekit.lang.version import Version
from runup.checks.catalogue.olm.shared.installed_operators import PACKAGES
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.declarative import declared_check
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Check, Context, Finding, Snapshot
from runup.checks.decide.target_manifests import manifests_of_files
from runup.evaluation.request import Request
from runup.facts import watched_kinds as polled_objects
from runup.facts.target_release import TargetRelease
from runup.facts.watched_kinds import Lookups, WatchedKinds
from runup.preflight.decide import container_check_pods
from runup.preflight.decide.stored_reports import same_findings
from runup.process.read_only_client import ReadOnlyClient
from runup.report.report import FORMAT, Report, ReportedCheck, read
from runup.target import container_checks as shell
from runup.target.check_runner import LIMIT_S, Runner
from runup.target.container_checks import Containers, names_waiting
from runup.target.process import (
    PreflightTarget,
    TargetRequest,
    Timing,
    kinds_with_risks,
    raise_if_over,
    running_version,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODES = resource_of(Node)


@dataclass
class Kept:
    """A report's place that is a list; `broken` is how often it cannot be written."""

    clock: ManualClock
    written: list[tuple[float, Report]] = field(default_factory=list)
    broken: int = 0

    def write(self, data: bytes) -> None:
        """Keep it."""
        if self.broken:
            self.broken -= 1
            raise OSError(28, "No space left on device")
        self.written.append((self.clock.monotonic(), read(data)))


@pytest.fixture
async def target() -> AsyncIterator[PreflightTarget]:
    """One that asks nobody."""
    async with ReadOnlyClient(ClusterConfig(server="http://127.0.0.1:9"), namespace="ns") as client:
        clock = ManualClock(NOON)
        yield PreflightTarget(
            client=client,
            request=TargetRequest(target_version="5.2.0", source_version="5.0.0"),
            release=TargetRelease(),
            sink=Kept(clock),
            clock=clock,
            log=Log(),
        )


def kept(target: PreflightTarget) -> Kept:
    """Where its reports are."""
    assert isinstance(target.sink, Kept)
    return target.sink


def clock(target: PreflightTarget) -> ManualClock:
    """Its clock."""
    assert isinstance(target.clock, ManualClock)
    return target.clock


def report(status: str = "completed", **changes: Any) -> Report:
    """What a target writes."""
    said = {"format": FORMAT, "target_version": "5.2.0", "execution_status": status, "observed_time": NOON}
    return Report(**said | changes)  # type: ignore[arg-type]


async def test_the_same_report_is_written_again_as_a_heartbeat(target: PreflightTarget) -> None:
    """After twenty seconds, with when it was looked at; another one at once."""
    await target.write(report())
    for after_s, written in ((0, 1), (19.5, 1), (0.5, 2)):
        clock(target).jump(after_s)
        await target.write(report(observed_time=NOON + timedelta(hours=1), completion_time=NOON))
        assert len(kept(target).written) == written
    _, beat = kept(target).written[-1]
    assert (beat.observed_time, beat.completion_time) == (NOON + timedelta(hours=1), None)
    await target.write(report(message="else"))
    assert len(kept(target).written) == 3


async def test_once_only_a_whole_report_is_written(target: PreflightTarget) -> None:
    """And one that cannot be is an error of the command."""
    target.once = True
    await target.write(report("running"))
    assert kept(target).written == []
    kept(target).broken = 1
    with pytest.raises(OSError, match="No space left"):
        await target.write(report())
    await target.write(report())
    assert len(kept(target).written) == 1


async def test_a_report_that_was_written_is_logged(target: PreflightTarget) -> None:
    """One that was not is an error in the log, and no more."""
    kept(target).broken = 1
    await target.write(report("running"))
    assert target.log.lines == ["the report could not be written; the last one stays"]
    await target.write(report("running"))
    assert target.log.lines[1:] == ["report written"]


async def test_a_report_that_cannot_be_written_is_tried_again_later_and_later(target: PreflightTarget) -> None:
    """Up to ten seconds between two attempts; one of many on the way is not."""
    kept(target).broken = 7
    await target.write(report("running"))
    assert (kept(target).broken, clock(target).sleeping, kept(target).written) == (6, (), [])
    writing = asyncio.create_task(target.write(report()))
    waits = []
    for _ in range(6):
        await clock(target).until_sleeping(deadline_s=90)
        waits.append(clock(target).sleeping[0])
        await clock(target).advance(waits[-1])
    await writing
    assert waits == [1, 2, 4, 8, 10, 10]
    assert [at for at, _ in kept(target).written] == [35]
    assert target.log.lines.count("the report could not be written; the last one stays") == 7


async def test_a_beat_is_written_where_nothing_else_was_for_half_a_minute(target: PreflightTarget) -> None:
    """With its own time; nothing before there is a report, nor where one report is all that is wanted."""
    beating = asyncio.create_task(target.beat())
    await clock(target).advance(100)
    assert kept(target).written == []
    await target.write(report())
    began = clock(target).monotonic()
    await clock(target).advance(29.5)
    assert len(kept(target).written) == 1
    await clock(target).advance(1)
    await eventually(lambda: len(kept(target).written) == 2)
    at, beat = kept(target).written[-1]
    assert began + 30 <= at <= began + 30.5
    assert beat.heartbeat_time is not None
    assert replace(beat, heartbeat_time=None) == report()
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_a_beat_that_cannot_be_written_is_tried_again_after_a_second(target: PreflightTarget) -> None:
    """And not at once, over and over."""
    await target.write(report())
    kept(target).broken = 1
    clock(target).jump(30)
    beating = asyncio.create_task(target.beat())
    await clock(target).until_sleeping(deadline_s=90)
    assert (clock(target).sleeping, kept(target).broken) == ((1,), 0)
    await clock(target).advance(1)
    await eventually(lambda: len(kept(target).written) == 2)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


@pytest.mark.parametrize(
    ("evaluated", "since_s", "shows"),
    [
        pytest.param(False, 0.2, True, id="a fifth of a second after the last"),
        pytest.param(False, 0.1, False, id="not sooner"),
        pytest.param(True, 5, False, id="not once there was a whole report"),
    ],
)
async def test_how_often_it_says_how_far_it_is(
    target: PreflightTarget, evaluated: bool, since_s: float, shows: bool
) -> None:
    """A reader needs no more than a few reports a second."""
    await target.write(report("running"))
    target.evaluated = evaluated
    clock(target).jump(since_s)
    assert target.shows_progress() is shows


async def test_what_follows_the_cluster_may_end_by_a_bug_alone(target: PreflightTarget) -> None:
    """Which must not look like a cluster in which nothing happens."""

    async def fails() -> None:
        raise ValueError("it broke")

    async def ends() -> None:
        return

    going, broken, ended = (asyncio.create_task(work) for work in (asyncio.Event().wait(), fails(), ends()))
    await asyncio.gather(broken, ended, return_exceptions=True)
    raise_if_over(going)  # type: ignore[arg-type]
    raise_if_over(ended)
    with pytest.raises(ValueError, match="it broke"):
        raise_if_over(broken)
    going.cancel()


@pytest.mark.parametrize(
    ("timing", "changed", "soon"),
    [
        pytest.param(Timing(heartbeat_s=0.01), False, 1, id="nothing changes: the next heartbeat"),
        pytest.param(Timing(first_s=0.01, quiet_s=3600), True, 1, id="one of the first changes after a calm"),
        pytest.param(Timing(first_s=3600, quiet_s=0.01), True, 0, id="a change after these"),
        pytest.param(Timing(first_s=3600, quiet_s=0.01), True, 1, id="the first never wait longer than the others"),
    ],
)
async def test_when_a_change_is_looked_at(target: PreflightTarget, timing: Timing, changed: bool, soon: int) -> None:
    """After a quiet moment, which is shorter after a calm."""
    target.timing, target.soon = timing, Allowance(soon, 1)
    if changed:
        target.changed.set()
    await asyncio.wait_for(target.until_changed(), 90)


async def test_a_fix_right_after_what_was_written_of_the_first_report_is_looked_at_at_once(
    target: PreflightTarget,
) -> None:
    """Three changes are, and one more for each second that has passed; the others wait for a quiet moment."""
    target.timing = replace(target.timing, quiet_s=3600, longest_s=1000, heartbeat_s=3600)
    target.soon = Allowance(Timing().soon, 1000)
    for _ in range(3):
        target.changed.set()
        await asyncio.wait_for(target.until_changed(), 90)
    target.changed.set()
    looking = asyncio.create_task(target.until_changed())
    await clock(target).advance(999)
    assert not looking.done()
    clock(target).jump(1)
    target.changed.set()
    await asyncio.wait_for(looking, 90)
    target.changed.set()
    await asyncio.wait_for(target.until_changed(), 90)


async def test_changes_in_a_row_are_looked_at_after_a_while(target: PreflightTarget) -> None:
    """However little quiet there is between them, from the first one on."""
    target.timing = Timing(first_s=3600, quiet_s=3600, longest_s=1000, heartbeat_s=3600)
    target.soon = Allowance(0, 1000)
    looking = asyncio.create_task(target.until_changed())
    for seconds in (0, 300, 300, 300):
        clock(target).jump(seconds)
        target.changed.set()
        await clock(target).advance(0)
        assert not looking.done()
    clock(target).jump(100)
    target.changed.set()
    await asyncio.wait_for(looking, 90)


def test_what_is_watched_first() -> None:
    """What a check with a risk reads: that is what somebody fixes."""
    clear, risky = (
        Check(name=name, component="tests", reads=(resource_of(kind),), run=lambda _s, _c: ())
        for name, kind in (("A", Pod), ("B", Node))
    )
    outcomes = [
        CheckOutcome(check=clear, result="Clear"),
        CheckOutcome(check=risky, result="Applies", findings=(Finding(name="B", message="it is so"),)),
    ]
    assert kinds_with_risks(outcomes) == {NODES}


def test_what_is_the_same_report() -> None:
    """Whatever its times, and however long its checks took."""
    one = report(checks=(ReportedCheck(name="A", result="Clear", duration_seconds=1),))
    other = replace(one, checks=(ReportedCheck(name="A", result="Clear", duration_seconds=2),), heartbeat_time=NOON)
    assert same_findings(one, other)
    assert not same_findings(one, replace(one, message="else"))
    assert not same_findings(one, replace(one, checks=(ReportedCheck(name="A", result="Unknown"),)))


def test_whose_version_is_the_source() -> None:
    """What the cluster is on its way to; nobody's where that cannot be read."""
    assert running_version(cluster_version()) == "5.0.0"
    assert running_version(None) == ""
    assert (Timing().heartbeat_s, Timing().latest_s, Timing().progress_s, LIMIT_S) == (20, 30, 0.2, 10)


class Cluster:
    """An API server with a ClusterVersion and a FeatureGate; `away` is how often it does not answer first."""

    def __init__(self) -> None:
        self.away = 0
        self.refusal: tuple[int, str] | None = None

        self.script: list[tuple[int, dict[str, Any]]] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """One of them, or what is next in the script."""
        if self.script:
            code, answer = self.script.pop(0)
            return web.json_response(answer, status=code)
        if self.away:
            self.away -= 1
            return web.json_response(status(503, "ServiceUnavailable", "away"), status=503)
        if self.refusal is not None:
            code, reason = self.refusal
            return web.json_response(status(code, reason) | {"details": {"name": "x"}}, status=code)
        body: dict[str, Any] = {
            "metadata": {"name": "version"},
            "status": {"desired": {"version": "5.0.7", "image": "i"}},
        }
        body["spec"] = {"clusterID": "4f1a"}
        return web.json_response(body if "clusterversions" in request.path else {"metadata": {"name": "cluster"}})


async def prepared(
    cluster: Cluster, waits: list[float], release: TargetRelease | None = None, **changes: Any
) -> tuple[PreflightTarget, Request]:
    """What it begins with, and how long it waited for it."""
    async with scripted_api() as api:
        api.answers(cluster.answer)
        made = ManualClock(NOON)
        async with ReadOnlyClient(ClusterConfig(server=api.url), namespace="ns") as client:
            request = TargetRequest(**{"target_version": "5.2.0", **changes})
            target = PreflightTarget(
                client=client,
                request=request,
                release=release or TargetRelease(),
                sink=Kept(made),
                clock=made,
                log=Log(),
            )
            preparing = asyncio.create_task(target.prepare())
            while not preparing.done():
                await asyncio.wait({preparing}, timeout=0.01)
                if made.sleeping:
                    waits.append(made.sleeping[0])
                    await made.advance(waits[-1])
            request, _ = await preparing
            return target, request


async def test_an_api_server_that_is_away_is_waited_for() -> None:
    """Later and later, up to ten seconds; each time the report says so, and the log once a minute."""
    cluster, waits = Cluster(), list[float]()
    cluster.away = 12
    target, request = await prepared(cluster, waits)
    assert waits == [1, 2, 4, 8, *[10] * 8]
    assert target.log.lines.count("the API server did not answer; check its address and certificate") == 2
    assert (str(request.source), target.cluster_id) == ("5.0.7", "4f1a")
    (_, shown), *_ = kept(target).written
    assert shown.message.startswith("waiting for the API server: ")


NOT_FOUND = (404, status(404, "NotFound") | {"details": {"name": "version"}})
FORBIDDEN = (403, status(403, "Forbidden") | {"details": {"name": "version"}})
AWAY = (503, status(503, "ServiceUnavailable", "away"))


async def test_an_api_server_that_goes_away_before_its_version_is_known_is_waited_for() -> None:
    """Without a ClusterVersion the source is what the server says it is."""
    cluster, waits = Cluster(), list[float]()
    cluster.script = [NOT_FOUND, NOT_FOUND, AWAY, NOT_FOUND, NOT_FOUND, (200, {"gitVersion": "v1.34.2+k3s1"})]
    target, request = await prepared(cluster, waits, target_version="1.35.0")
    assert (str(request.source), target.kind, waits) == ("1.34.2", ClusterKind.KUBERNETES, [1])


async def test_what_was_missing_before_the_server_went_away_is_asked_again() -> None:
    """A ClusterVersion that may not be read may be there."""
    cluster, waits = Cluster(), list[float]()
    cluster.script = [NOT_FOUND, AWAY, FORBIDDEN, FORBIDDEN]
    target, request = await prepared(cluster, waits, target_version="1.35.0", source_version="1.34.0")
    assert (str(request.source), target.kind, waits) == ("1.34.0", ClusterKind.OPENSHIFT, [1])


async def test_which_manifests_checks_judge_by() -> None:
    """Those of the release that this cluster gets; where it has none that is not known."""
    files = [("release-manifests/a.yaml", CATALOG.replace("NAME", "mine")), ("release-manifests/b.yaml", CATALOG)]
    _, request = await prepared(Cluster(), [], TargetRelease(manifests=manifests_of_files(files)), profile="NAME")
    assert [each["metadata"]["name"] for each in request.manifests or ()] == ["NAME"]
    _, request = await prepared(Cluster(), [])
    assert request.manifests is None


CATALOG = """\
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: NAME
  namespace: openshift-marketplace
  annotations: {include.release.openshift.io/NAME: "true"}
"""


async def test_once_nobody_waits() -> None:
    """Whoever types a command wants to know."""
    async with scripted_api() as api:
        api.answers(failure(503, "ServiceUnavailable"))
        made = ManualClock(NOON)
        async with ReadOnlyClient(ClusterConfig(server=api.url), namespace="ns") as client:
            target = PreflightTarget(
                client=client,
                request=TargetRequest(target_version="5.2.0"),
                release=TargetRelease(),
                sink=Kept(made),
                clock=made,
                log=Log(),
            )
            target.once = True
            with pytest.raises(ServerError):
                await target.prepare()


@pytest.mark.parametrize("refusal", [(404, "NotFound"), (403, "Forbidden")])
async def test_what_may_not_be_read_holds_nobody_up(refusal: tuple[int, str]) -> None:
    """The version is then to be typed."""
    cluster = Cluster()
    cluster.refusal = refusal
    target, request = await prepared(cluster, [], source_version="5.0.3")
    assert (str(request.source), target.cluster_id) == ("5.0.3", "")
    assert [line.partition(" ")[0] for line in target.log.lines] == ["ClusterVersion", "FeatureGate"]
    with pytest.raises(Terminal, match="give it with --from"):
        await prepared(cluster, [])


def check(said: list[str], result: str = "Clear", *, of: type[Any] = Node) -> Check:
    """A check that notes that it ran."""

    def run(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        said.append("ran")
        return ()

    return Check(name="Example", component="tests", reads=(resource_of(of),), run=run)


@pytest.mark.parametrize(
    ("after_s", "news", "changes", "runs"),
    [
        pytest.param(0, {}, {}, 1, id="nothing changed"),
        pytest.param(17.5, {}, {}, 1, id="nothing changed for a while"),
        pytest.param(18, {}, {}, 2, id="time passes for checks, too"),
        pytest.param(0, {NODES: 1}, {}, 2, id="what it reads changed"),
        pytest.param(0, {resource_of(Namespace): 1}, {}, 1, id="what others read changed"),
        pytest.param(0, {}, {"now": NOON}, 1, id="the time is another"),
        pytest.param(0, {}, {"target": Version("5.3.0")}, 2, id="the update is another"),
    ],
)
async def test_when_a_check_is_asked_again(
    after_s: float, news: dict[Resource, int], changes: dict[str, Any], runs: int
) -> None:
    """Where it might say something else."""
    said: list[str] = []
    made = ManualClock(NOON)
    runner, one = Runner(made, keep_s=18), check(said)
    first = await runner.outcome_of(one, snapshot(), context(), {})
    made.jump(after_s)
    again = await runner.outcome_of(one, snapshot(), replace(context(), **changes), news)
    assert (len(said), first.result, again.result) == (runs, "Clear", "Clear")


async def test_another_check_of_the_same_name_is_asked() -> None:
    """What its namesake said is nothing of its own."""
    said: list[str] = []
    runner = Runner(ManualClock(NOON), keep_s=18)
    for _ in range(2):
        await runner.outcome_of(check(said), snapshot(), context(), {})
    assert len(said) == 2
    zero = Runner(ManualClock(NOON))
    one = check(said)
    for _ in range(2):
        await zero.outcome_of(one, snapshot(), context(), {})
    assert len(said) == 4, "without a time nothing is kept"


async def test_a_check_that_was_left_behind_is_asked_again_once_it_has_ended() -> None:
    """Not while it still runs."""
    going, runner = threading.Event(), Runner(ManualClock(NOON), limit_s=0.05)

    def hangs(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        going.wait(90)
        return ()

    one = Check(name="Hanging", component="tests", reads=(), run=hangs)
    said = [await runner.run(one, snapshot(), context()) for _ in range(2)]
    assert [outcome.message for outcome in said] == [
        "did not finish in 0.05 s.",
        "did not finish in 0.05 s, and still runs.",
    ]
    going.set()
    async with asyncio.timeout(90):
        while (await runner.run(one, snapshot(), context())).result != "Clear":  # noqa: ASYNC110 -- no event tells it
            await asyncio.sleep(0.001)


async def test_how_long_a_check_took_is_told() -> None:
    """By the clock that is passed around."""
    made = ManualClock(NOON)

    def slow(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        made.jump(3)
        return ()

    outcome = await Runner(made).run(Check(name="Slow", component="tests", reads=(), run=slow), snapshot(), context())
    assert outcome.duration_seconds == 3


PINNED = {"tool": "registry.example/tool@sha256:" + "a" * 64}


def container_check(name: str = "widgets", timeout_s: int = 30) -> Check:
    """A check that is a container."""
    spec = {
        "component": "widgets",
        "targets": ">=5.2.0-0",
        "container": {"image": "tool", "timeoutSeconds": timeout_s},
        "risk": {"name": "WidgetsBroken", "message": "Widgets break."},
    }
    document = {"apiVersion": "preflight.runup.dev/v1alpha1", "kind": "PreflightCheck", "metadata": {"name": name}}
    return declared_check({**document, "spec": spec}, file="widgets.yaml")


UPDATE = Context(source=Version("5.0.0"), target=Version("5.2.0"), now=NOON)


class Pods:
    """The target's view of container checks, whose Pods the test plays."""

    def __init__(self, client: Client, *checks: Check) -> None:
        self.clock = ManualClock(NOON)
        self.checks = Containers(
            client,
            checks,
            preflight_id="p1",
            namespace="ns",
            images=PINNED,
            clock=self.clock,
            changed=lambda: None,
        )
        self.checks.pods.replace([], "1")

    async def look(self, after_s: float = 0) -> str | None:
        """What is said about the first check after a while."""
        self.clock.jump(after_s)
        found = await self.checks.look(UPDATE)
        outcome = found.get("widgets")
        return None if outcome is None else f"{outcome.result}: {outcome.message}"

    def add_pod(self, *, ended: bool) -> None:
        """There is one for the run that is wanted."""
        (wanted,) = self.checks.wanted
        metadata = ObjectMeta(name="c", namespace="ns", annotations={container_check_pods.RUN_ANNOTATION: _run(wanted)})
        state = ContainerState(terminated=ContainerStateTerminated(exit_code=0, reason="Completed")) if ended else None
        status_ = PodStatus(
            phase="Succeeded" if ended else "Running",
            container_statuses=(ContainerStatus(name=container_check_pods.CONTAINER, state=state or ContainerState()),),
        )
        self.checks.pods.put(Pod(metadata=metadata, status=status_))


def _run(wanted: Any) -> str:
    return container_check_pods.run_of("p1", wanted)


@pytest.mark.parametrize(
    ("made", "limit_s"),
    [pytest.param(False, 90, id="nobody makes it"), pytest.param(True, 180, id="it does not end")],
)
async def test_how_long_a_container_is_waited_for(made: bool, limit_s: float) -> None:
    """A minute and a half until it is there, then its own limit and a minute; to the second."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        pods = Pods(client, container_check())
        assert await pods.look() is None
        if made:
            pods.add_pod(ended=False)
        assert await pods.look(limit_s - 1) is None
        said = await pods.look(1)
        assert said is not None
        assert f"after {limit_s:.0f} s " in said


@pytest.mark.parametrize(
    ("log", "again_s"),
    [
        pytest.param(b"nonsense", 120, id="it could not tell"),
        pytest.param(
            json.dumps(
                {
                    "format": FORMAT,
                    "targetVersion": "5.2.0",
                    "executionStatus": "completed",
                    "checks": [{"name": "W", "result": "Clear"}],
                }
            ).encode(),
            600,
            id="it said something",
        ),
    ],
)
async def test_when_a_container_is_run_again(log: bytes, again_s: float) -> None:
    """Ten minutes after it ended, two where it could not tell; what it said counts meanwhile."""

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=log)

    async with scripted_api() as api:
        api.answers(answer)
        async with Client(ClusterConfig(server=api.url)) as client:
            pods = Pods(client, container_check())
            await pods.look()
            pods.add_pod(ended=True)
            said = await pods.look(10)
            assert said is not None
            assert await pods.look(again_s - 1) == said
            assert [each.run for each in pods.checks.wanted] == [1]
            assert await pods.look(1) == said
            assert [each.run for each in pods.checks.wanted] == [2]
            assert len(api.requests) == 1
    assert "tailLines=" in api.targets[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(failure(403, "Forbidden", "not you"), "not you", id="it may not be read"),
        pytest.param(failure(404, "NotFound", "no such pod"), None, id="it is not there just now"),
        pytest.param(failure(503, "ServiceUnavailable", "away"), None, id="its node is away"),
    ],
)
async def test_a_log_that_cannot_be_had(answer: Any, said: str | None) -> None:
    """Where waiting helps it is asked for again, until the time is over."""
    async with scripted_api() as api:
        api.answers(answer)
        async with Client(ClusterConfig(server=api.url)) as client:
            pods = Pods(client, container_check())
            await pods.look()
            pods.add_pod(ended=True)
            first = await pods.look()
            assert (first is None) is (said is None)
            if said is not None:
                assert said in (first or "")
                return
            over = await pods.look(180)
            assert over is not None
            assert "after 180 s " in over


async def test_pods_that_may_not_be_followed() -> None:
    """It is said at once, not after a minute and a half; another trouble is waited for."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        pods = Pods(client, container_check())
        pods.checks.pods.synced = False
        pods.checks.pods.fail("the server is away")
        assert await pods.look() is None
        pods.checks.pods.fail("not allowed to list pods")
        said = await pods.look()
        assert said is not None
        assert "its Pod cannot be followed: not allowed to list pods" in said


async def test_ten_containers_are_run_and_no_more() -> None:
    """The others are reported why they are not."""
    checks = [container_check(f"check-{number:02}") for number in range(12)]
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        pods = Pods(client, *checks)
        found = await pods.checks.look(UPDATE)
        again = await pods.checks.look(UPDATE)
    assert list(found) == list(again) == ["check-10", "check-11"]
    assert "it is one more than the 10 containers that are run for checks" in found["check-10"].message
    assert [each.check for each in pods.checks.wanted] == [f"check-{number:02}" for number in range(10)]
    assert names_waiting([*checks, check([])], found) == tuple(f"check-{number:02}" for number in range(10))
    assert (shell.MADE_WITHIN_S, shell.GRACE_S, shell.AGAIN_S, shell.AFTER_UNKNOWN_S) == (90, 60, 600, 120)


async def test_when_packages_are_asked_for_again() -> None:
    """After ten minutes, or half of one where they could not be had; at once where others are called for."""
    made = ManualClock(NOON)
    subscriptions = Cache(Node)
    cache: Cache[Any] = Cache(PACKAGES.type)
    async with scripted_api() as api:
        api.answers(reply({"metadata": {"resourceVersion": "1"}, "items": []}))
        async with Client(ClusterConfig(server=api.url)) as client:
            looked = Lookups(client, replace(PACKAGES, names=_names), subscriptions, cache, made)
            running = asyncio.create_task(looked.run())
            await made.advance(0)
            assert (made.sleeping, api.requests, cache.synced) == ((600,), [], False)
            subscriptions.replace([node("one")], "1")
            await eventually(lambda: cache.synced)
            await eventually(lambda: made.sleeping == (600,))
            assert len(api.requests) == 1
            subscriptions.put(node("nameless", labels={"skip": "yes"}))
            await made.advance(599)
            assert len(api.requests) == 1
            api.answers(failure(403, "Forbidden"))
            await made.advance(1)
            await eventually(lambda: cache.error is not None)
            await eventually(lambda: made.sleeping == (30,))
            api.answers(reply({"metadata": {"resourceVersion": "1"}, "items": []}))
            await made.advance(30)
            await eventually(lambda: cache.error is None)
            before = len(api.requests)
            subscriptions.fail("forbidden")
            await eventually(lambda: made.sleeping == (600,))
            assert len(api.requests) == before, "nothing is asked for where nobody knows what"
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert (polled_objects.AGAIN_S, polled_objects.RETRY_S) == (600, 30)


def _names(obj: Any) -> tuple[str, str]:
    return "ns", "" if "skip" in obj.metadata.labels else obj.metadata.name


async def test_what_is_known_of_reads() -> None:
    """Which are waited for, what keeps the first of them, what each lacks, and how often each changed."""
    shown: list[int] = []
    things = Resource(group="example.org", version="v1", kind="Thing", plural="things", namespaced=False)
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        made = WatchedKinds(
            client, [NODES, resource_of(Namespace), NODES, things], clock=ManualClock(), changed=lambda: shown.append(1)
        )
        assert made.waiting == (NODES, resource_of(Namespace))
        assert (made.kinds, made.trouble) == ({"nodes", "namespaces"}, "")
        nodes, namespaces = made.caches[NODES], made.caches[resource_of(Namespace)]
        namespaces.fail("the server is away")
        assert (made.trouble, len(made.waiting)) == ("the server is away", 2)
        namespaces.fail("not allowed to list namespaces")
        assert (made.trouble, made.waiting) == ("", (NODES,))
        nodes.replace([node("a", metadata={"resourceVersion": "1"})], "1")
        assert made.waiting == ()
        before, count = made.news, len(shown)
        nodes.put(node("a", metadata={"resourceVersion": "2"}))
        assert (made.news, len(shown)) == (before, count), "a heartbeat is no news"
        first = made.snapshot()
        nodes.put(node("b"))
        assert made.news[NODES] == before[NODES] + 1
        assert len(shown) == count + 1
        second = made.snapshot()
        assert (len(first.objects[NODES]), len(second.objects[NODES])) == (1, 2)
        assert second.unreadable == {
            resource_of(Namespace): "not allowed to list namespaces",
            things: "this release has no type for it",
        }
        assert second.absent == frozenset()
        nodes.remove(node("b"))
        nodes.fail("the server has no API nodes")
        third = made.snapshot()
        assert third.absent == {NODES}
        assert NODES not in third.objects
        namespaces.synced = False
        namespaces.recover()
        assert made.snapshot().unreadable[resource_of(Namespace)] == "it was not listed yet"
