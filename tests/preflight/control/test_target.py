"""The target's process against an API server: what it reports, when, and that it never writes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from tests.factories import node

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace, Node
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError, Terminal
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig, load
from kubesandbox.apiserver.server import ApiServer
from runup.checks.catalogue.nodes import node_health
from runup.checks.decide.model import Check, Container, Context, Finding, Snapshot
from runup.evaluation.request import parse_version
from runup.facts.target_release import TargetRelease
from runup.facts.watched_kinds import WatchedKinds
from runup.preflight.decide.outcome import STALE_AFTER_S
from runup.process.read_only_client import ReadOnlyClient, WriteRefused
from runup.report.report import Report, read
from runup.target.process import PreflightTarget, TargetRequest, Timing, reading_text
from runup.target.report_sinks import ConfigMapSink, FileSink

NAMESPACE = "openshift-cluster-version-operator"
DEADLINE_S = 90
QUICK = Timing(quiet_s=0.01, longest_s=0.1, check_limit_s=5, retry_s=0.05)


class Log:
    """Remembers what was logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.happened = asyncio.Event()

    def _add(self, event: str, **_details: Any) -> None:
        self.lines.append(event)
        self.happened.set()

    info = warning = error = _add

    async def until(self, text: str) -> None:
        """Wait for a line that holds `text`."""
        async with asyncio.timeout(DEADLINE_S):
            while not any(text in line for line in self.lines):
                self.happened.clear()
                await self.happened.wait()


class Reports(FileSink):
    """A file that says when it was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.count = 0
        self.statuses: list[str] = []
        self.broken = False
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()

    def write(self, data: bytes) -> None:
        if self.broken:
            raise OSError(28, "No space left on device")
        super().write(data)
        self.count += 1
        self.statuses.append(read(data).execution_status)
        self._loop.call_soon_threadsafe(self._written.set)

    async def until(self, wanted: Any) -> Report:
        """The first report for which `wanted(report)` holds."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self._written.clear()
                if self.path.exists() and wanted(report := read(self.path.read_bytes())):
                    return report
                await self._written.wait()


def has(*names: str) -> Any:
    """Whether a report is complete and has exactly these risks."""
    return lambda report: report.execution_status == "completed" and {r.name for r in report.risks} == set(names)


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[ClusterConfig]:
    """An empty cluster."""
    async with ApiServer(tmp_path / "data") as server:
        yield load(str(server.kubeconfig))


@pytest.fixture
async def admin(config: ClusterConfig) -> AsyncIterator[Client]:
    """A client that may do everything."""
    async with Client(config) as client:
        yield client


async def put(admin: Client, *objects: Object) -> None:
    """Create objects, status included."""
    for obj in objects:
        resource = resource_of(type(obj))
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **codec.to_dict(obj)}
        await admin.send(calls.create(resource, body))
        status = {"status": body["status"]}
        await admin.send(calls.merge_patch(resource, obj.metadata.name, status, subresource="status"))


async def change(admin: Client, name: str, patch: dict[str, Any]) -> None:
    """Change a node."""
    await admin.send(calls.merge_patch(resource_of(Node), name, patch))


CORDON = {"spec": {"unschedulable": True}}
READY_IN_SMALL_LETTERS = {"status": {"conditions": [{"type": "Ready", "status": "true"}]}}
UNCORDON = {"spec": {"unschedulable": False}}


class Running:
    """A target's process in a task."""

    def __init__(self, config: ClusterConfig, sink: FileSink, *, checks: Iterable[Check], **changes: Any) -> None:
        self.log = Log()
        self.client = ReadOnlyClient(config, namespace=NAMESPACE)
        self.target = PreflightTarget(
            client=self.client,
            request=changes.pop(
                "request",
                TargetRequest(target_version="5.2.0", source_version="5.0.0", preflight_id="p1", namespace=NAMESPACE),
            ),
            release=changes.pop("release", TargetRelease(version="5.2.0", kubernetes="1.38.0")),
            sink=sink,
            clock=changes.pop("clock", None) or SystemClock(),
            log=self.log,
            builtin=tuple(checks),
            timing=changes.pop("timing", QUICK),
            **changes,
        )

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.target.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.client.close()


async def test_a_change_is_in_the_next_report(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """A risk appears with what causes it and goes with it; the report echoes what was asked."""
    reports = Reports(tmp_path / "reports" / "p1" / "report.json")
    await put(admin, node("a"))
    async with Running(config, reports, checks=[node_health.CHECK]):
        report = await reports.until(has())
        assert (report.preflight_id, report.source_version, report.target_version) == ("p1", "5.0.0", "5.2.0")
        assert [(check.name, check.result) for check in report.checks] == [("NodeHealth", "Clear")]
        await change(admin, "a", CORDON)
        assert (await reports.until(has("NodeCordoned"))).risks[0].resources[0].name == "a"
        await change(admin, "a", UNCORDON)
        await reports.until(has())
    assert [path.name for path in reports.path.parent.iterdir()] == ["report.json"]


async def test_one_bad_node_costs_one_answer_until_it_is_good(
    config: ClusterConfig, admin: Client, tmp_path: Path
) -> None:
    """It is named with the field, the others are answered; put right, it is answered too, by itself."""
    reports = Reports(tmp_path / "reports" / "p1" / "report.json")
    await put(admin, node("a"), node("b", unschedulable=True))
    status = calls.merge_patch(resource_of(Node), "a", READY_IN_SMALL_LETTERS, subresource="status")
    await admin.send(status)
    async with Running(config, reports, checks=[node_health.CHECK]):
        report = await reports.until(has("NodeCordoned", "NodeHealthUnknown"))
        unknown = next(risk for risk in report.risks if risk.name == "NodeHealthUnknown")
        assert (
            "Node a cannot be read: Invalid enum value 'true' - at `$.status.conditions[0].status`" in unknown.message
        )
        assert [(item.kind, item.name) for item in unknown.resources] == [("Node", "a")]
        assert (unknown.applies, unknown.reason) == ("Unknown", "PreflightPartial")
        good = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await admin.send(calls.merge_patch(resource_of(Node), "a", good, subresource="status"))
        await reports.until(has("NodeCordoned"))
        await admin.send(status)
        await reports.until(has("NodeCordoned", "NodeHealthUnknown"))


async def test_nothing_is_written_when_nothing_changed(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """A change that matters to no check leaves the file as it is."""
    reports = Reports(tmp_path / "report.json")
    await put(admin, node("a"))
    evaluated = asyncio.Event()
    loop = asyncio.get_running_loop()

    def counts(snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        if any("seen" in found.metadata.labels for found in snapshot.all(Node)):
            loop.call_soon_threadsafe(evaluated.set)
        return ()

    async with Running(
        config, reports, checks=[Check(name="Example", component="tests", reads=(resource_of(Node),), run=counts)]
    ):
        await reports.until(has())
        written = reports.count
        await change(admin, "a", {"metadata": {"labels": {"seen": "yes"}}})
        async with asyncio.timeout(DEADLINE_S):
            await evaluated.wait()
    assert written == reports.count


async def test_the_first_change_after_a_calm_is_looked_at_at_once(
    config: ClusterConfig, admin: Client, tmp_path: Path
) -> None:
    """However long a row of changes would be waited for."""
    reports, clock = Reports(tmp_path / "report.json"), ManualClock()
    await put(admin, node("a"))
    long_s = 10 * DEADLINE_S
    timing = Timing(quiet_s=long_s, longest_s=long_s, heartbeat_s=10 * long_s)
    async with Running(config, reports, checks=[node_health.CHECK], timing=timing, clock=clock):
        await reports.until(has())
        clock.jump(long_s)
        await change(admin, "a", CORDON)
        await reports.until(has("NodeCordoned"))


async def test_a_change_is_judged_by_those_that_read_it(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """And, since time passes for the others too, by all of them once in a while."""
    reports, clock = Reports(tmp_path / "report.json"), ManualClock()
    await put(admin, node("a"))
    ran: list[str] = []

    def of(kind: type[Object]) -> Check:
        def run(snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
            ran.append(kind.__name__)
            return [
                Finding(name=f"{kind.__name__}Seen", message=str(len(snapshot.all(kind))), resources=()),
                *_labels(snapshot, kind),
            ]

        return Check(name=f"Of{kind.__name__}", component="tests", reads=(resource_of(kind),), run=run)

    timing = Timing(quiet_s=0.01, longest_s=0.1, heartbeat_s=1000.0)
    async with Running(config, reports, checks=[of(Node), of(Namespace)], timing=timing, clock=clock):
        await reports.until(has("NodeSeen", "NamespaceSeen"))
        assert ran == ["Node", "Namespace"]
        await change(admin, "a", {"metadata": {"labels": {"Second": "x"}}})
        await reports.until(has("NodeSeen", "NamespaceSeen", "Second"))
        assert ran == ["Node", "Namespace", "Node"]
        clock.jump(1000.0)
        await change(admin, "a", {"metadata": {"labels": {"Third": "x"}}})
        await reports.until(has("NodeSeen", "NamespaceSeen", "Second", "Third"))
        assert ran == ["Node", "Namespace", "Node", "Node", "Namespace"]


def _labels(snapshot: Snapshot, kind: type[Object]) -> list[Finding]:
    """A finding for each label that begins with a capital letter."""
    found = {label for obj in snapshot.all(kind) for label in obj.metadata.labels}
    return [Finding(name=label, message="It has that label.") for label in sorted(found) if label[0].isupper()]


async def test_a_heartbeat_moves_the_time_alone(config: ClusterConfig, tmp_path: Path) -> None:
    """A reader can tell a process that looks from one that hangs."""
    reports = Reports(tmp_path / "report.json")
    async with Running(config, reports, checks=[node_health.CHECK], timing=Timing(heartbeat_s=0.05)):
        first = await reports.until(has())
        written = reports.count
        later = await reports.until(lambda _report: reports.count > written + 1)
    assert codec.to_dict(later) | {"observedTime": ""} == codec.to_dict(first) | {"observedTime": ""}


async def test_a_hanging_check_is_unknown_and_started_once(
    config: ClusterConfig, admin: Client, tmp_path: Path
) -> None:
    """The others are answered, changes still count, and the thread that hangs stays the only one."""
    reports = Reports(tmp_path / "report.json")
    release, starts = threading.Event(), []

    def hangs(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        starts.append(1)
        release.wait(DEADLINE_S)
        return ()

    hanging = Check(name="Hanging", component="tests", reads=(resource_of(Node),), run=hangs)
    timing = Timing(quiet_s=0.01, longest_s=0.1, check_limit_s=0.05)
    try:
        async with Running(config, reports, checks=[hanging, node_health.CHECK], timing=timing):
            report = await reports.until(has("Hanging"))
            assert report.checks[0].message == "did not finish in 0.05 s."
            assert report.risks[0].applies == "Unknown"
            await put(admin, node("a", unschedulable=True))
            report = await reports.until(has("Hanging", "NodeCordoned"))
            assert report.checks[0].message == "did not finish in 0.05 s, and still runs."
            assert len(starts) == 1
            release.set()
    finally:
        release.set()


async def test_a_long_evaluation_does_not_look_dead(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """While a check takes its time the last report is written again: its time moves, that of the findings not."""
    reports = Reports(tmp_path / "report.json")
    release, busy = threading.Event(), threading.Event()

    def slow(snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        if any(found.spec.unschedulable for found in snapshot.all(Node)):
            busy.set()
            release.wait(DEADLINE_S)
        return ()

    check = Check(name="Slow", component="tests", reads=(resource_of(Node),), run=slow)
    timing = Timing(quiet_s=0.01, longest_s=0.1, check_limit_s=DEADLINE_S, progress_s=0.01, latest_s=0.05)
    try:
        async with Running(config, reports, checks=[check], timing=timing):
            first = await reports.until(has())
            await put(admin, node("a", unschedulable=True))
            await asyncio.to_thread(busy.wait, DEADLINE_S)
            written = reports.count
            later = await reports.until(lambda _report: reports.count > written + 2)
            release.set()
    finally:
        release.set()
    assert later.heartbeat_time is not None
    assert (later.execution_status, later.observed_time) == ("completed", first.observed_time)


async def test_the_first_evaluation_shows_how_far_it_is(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """Check by check until the report is complete; from then on a complete one stands until the next is."""
    reports = Reports(tmp_path / "report.json")
    release = threading.Event()

    def slow(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        release.wait(DEADLINE_S)
        return ()

    checks = [node_health.CHECK, Check(name="Slow", component="tests", reads=(resource_of(Node),), run=slow)]
    timing = Timing(quiet_s=0.01, longest_s=0.1, check_limit_s=DEADLINE_S, progress_s=0)
    try:
        async with Running(config, reports, checks=checks, timing=timing):
            report = await reports.until(lambda report: len(report.checks) == 1)
            assert (report.execution_status, report.checks[0].name) == ("running", node_health.CHECK.name)
            release.set()
            await reports.until(has())
            await put(admin, node("a", unschedulable=True))
            await reports.until(has("NodeCordoned"))
    finally:
        release.set()
    assert set(reports.statuses[reports.statuses.index("completed") :]) == {"completed"}


def test_the_report_is_a_heartbeat() -> None:
    """docs/decisions/0072 D24: written every 30 s at the latest; a reader waits for 90."""
    timing = Timing()
    assert timing.heartbeat_s <= timing.latest_s <= 30
    assert 3 * timing.latest_s <= STALE_AFTER_S


async def test_what_may_not_be_read_is_unknown_with_the_rule(config: ClusterConfig, tmp_path: Path) -> None:
    """An account without rights gets Unknown for each check, each naming the rule that it lacks."""
    reports = Reports(tmp_path / "report.json")
    kubeconfig = tmp_path / "poor.kubeconfig"
    kubeconfig.write_text(_acting_as(tmp_path / "data" / "admin.kubeconfig", f"system:serviceaccount:{NAMESPACE}:poor"))
    async with Running(load(str(kubeconfig)), reports, checks=[node_health.CHECK]):
        report = await reports.until(has("NodeHealthUnknown"))
    assert "not allowed to list nodes in API group" in report.risks[0].message
    assert f"system:serviceaccount:{NAMESPACE}:poor" in report.risks[0].message


async def test_an_api_that_the_cluster_lacks_is_unknown(config: ClusterConfig, tmp_path: Path) -> None:
    """A kind that is not served is named; it does not stop the others."""
    reports = Reports(tmp_path / "report.json")
    text = CHECK_YAML.replace("configmaps", "frobs").replace('group: ""', "group: example.com")
    release = TargetRelease(version="5.2.0", kubernetes="1.38.0", check_files={"preflight-checks/a.yaml": text})
    async with Running(config, reports, checks=[node_health.CHECK], release=release):
        report = await reports.until(has("LegacyCipher"))
    assert "the server has no API frobs.example.com/v1" in report.risks[0].message
    assert [check.result for check in report.checks] == ["Clear", "Unknown"]


CHECK_YAML = """\
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: legacy-cipher
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  component: ingress
  sources: "<5.2.0"
  reads:
  - name: maps
    group: ""
    version: v1
    resource: configmaps
    fields: [data]
  for: maps
  when: has(object.data)
  expression: object.data.exists(key, object.data[key].contains("RC4"))
  risk:
    name: LegacyCipher
    message: A cipher that 5.2 lacks is configured.
    messageExpression: object.metadata.namespace + "/" + object.metadata.name + " names RC4."
"""


async def test_a_check_of_the_release_sees_the_cluster(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """A YAML file of the release is read, filtered, evaluated, and follows changes."""
    reports = Reports(tmp_path / "report.json")
    await admin.send(
        calls.create(resource_of(Namespace), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    )
    files = {
        "preflight-checks/a.yaml": CHECK_YAML,
        "preflight-checks/b.yaml": CHECK_YAML.replace("self-managed-high-availability", "single-node-developer"),
    }
    async with Running(
        config, reports, checks=(), release=TargetRelease(version="5.2.0", kubernetes="", check_files=files)
    ):
        report = await reports.until(has())
        assert [check.name for check in report.checks] == ["legacy-cipher"]
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tls", "namespace": "shop"}}
        await admin.send(calls.create(resource_of(ConfigMap), config_map | {"data": {"ciphers": "AES,RC4"}}))
        report = await reports.until(has("LegacyCipher"))
        assert report.risks[0].message == "shop/tls names RC4."
        assert report.risks[0].resources[0].kind == "ConfigMap"


async def test_a_full_disk_keeps_the_last_report(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """The last good report stays whole, the trouble is logged, and the next one is written when there is room."""
    reports = Reports(tmp_path / "report.json")
    async with Running(config, reports, checks=[node_health.CHECK]) as running:
        await reports.until(has())
        good = reports.path.read_bytes()
        reports.broken = True
        await put(admin, node("a", unschedulable=True))
        await running.log.until("could not be written")
        assert good == reports.path.read_bytes()
        reports.broken = False
        await reports.until(has("NodeCordoned"))


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (set("abcde"), "reading the cluster: 0 of 5 kinds, not yet a, b, c and 2 more"),
        ({"e", "d"}, "reading the cluster: 3 of 5 kinds, not yet d, e"),
        ({"b"}, "reading the cluster: 4 of 5 kinds, not yet b"),
    ],
    ids=["nothing yet", "two are left", "one is left"],
)
def test_what_is_read_is_counted(missing: set[str], said: str) -> None:
    """So that who waits sees that it continues, and what it hangs on."""
    kinds = {f"{name}.example.io" for name in "abcde"}
    assert reading_text(kinds, {f"{name}.example.io" for name in missing}) == said


async def test_an_unreachable_server_is_waited_for(tmp_path: Path) -> None:
    """The first report precedes the server does, and says what is waited for."""
    reports = Reports(tmp_path / "report.json")
    server = ApiServer(tmp_path / "data")
    await server.start()
    config = load(str(server.kubeconfig))
    port = int(server.url.rpartition(":")[2])
    await server.stop()
    async with Running(config, reports, checks=[node_health.CHECK]):
        report = await reports.until(lambda found: found.message.startswith("waiting for the API server"))
        assert report.execution_status == "running"
        assert "could not reach" in report.message
        async with ApiServer(tmp_path / "data", port=port):
            await reports.until(has())


@pytest.mark.parametrize(("role", "flag"), [("source", "--from"), ("target", "--to")])
def test_names_the_flag_of_a_version_that_is_none(role: str, flag: str) -> None:
    """Each has its own (docs/reference/cli.md)."""
    with pytest.raises(InputError, match=f"^the {role} version is not known: .*; give it with {flag}$"):
        parse_version("next", role)


async def test_a_target_version_that_is_none_is_refused(config: ClusterConfig, tmp_path: Path) -> None:
    """Nothing is written for a request that cannot be evaluated."""
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        target = PreflightTarget(
            client=client,
            request=TargetRequest(target_version="next"),
            release=TargetRelease(),
            sink=FileSink(tmp_path / "r.json"),
            clock=SystemClock(),
            log=Log(),
        )
        with pytest.raises(Terminal, match="give it with --to"):
            await target.run(once=True)
    assert not (tmp_path / "r.json").exists()


async def test_a_source_version_that_is_none_fails_the_preflight(config: ClusterConfig, tmp_path: Path) -> None:
    """The operator reads why, since the report says so; the process ends with the same error."""
    file = tmp_path / "r.json"
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        request = TargetRequest(target_version="5.2.0", source_version="earlier")
        target = PreflightTarget(
            client=client, request=request, release=TargetRelease(), sink=FileSink(file), clock=SystemClock(), log=Log()
        )
        with pytest.raises(Terminal) as raised:
            await target.run(once=True)
    written = read(file.read_bytes())
    assert (written.execution_status, written.message) == ("failed", raised.value.message)
    assert "earlier" in written.message


async def test_a_preflight_writes_nothing(config: ClusterConfig, admin: Client, tmp_path: Path) -> None:
    """By the server's own audit log every request of the process is a get, list or watch."""
    reports = Reports(tmp_path / "report.json")
    await put(admin, node("a", unschedulable=True))
    audit = tmp_path / "data" / "audit.log"
    before = len(audit.read_text().splitlines())
    async with Running(config, reports, checks=[node_health.CHECK]):
        await reports.until(has("NodeCordoned"))
    verbs = {json.loads(line)["verb"] for line in audit.read_text().splitlines()[before:]}
    assert verbs <= {"get", "list", "watch"}
    assert "list" in verbs


async def test_what_is_no_read_is_refused_by_the_client_itself(config: ClusterConfig, admin: Client) -> None:
    """Whoever asks: a patch through the client does not leave it, as an answer or as a stream."""
    await put(admin, node("a"))
    patch = calls.merge_patch(resource_of(Node), "a", CORDON)
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        with pytest.raises(WriteRefused, match="PATCH /api/v1/nodes/a"):
            await client.send(patch)
        with pytest.raises(WriteRefused, match="PATCH /api/v1/nodes/a"):
            await anext(client.stream(patch))
        assert not (await client.send(calls.get(Node, "a"))).spec.unschedulable


async def test_a_report_in_a_config_map(config: ClusterConfig, admin: Client) -> None:
    """Where host paths are forbidden the report is a ConfigMap next to the operator, under the preflight's id."""
    await admin.send(
        calls.create(resource_of(Namespace), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    )
    sink = ConfigMapSink(config, NAMESPACE, "p1")
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        request = TargetRequest(target_version="5.2.0", source_version="5.0.0", preflight_id="p1", namespace=NAMESPACE)
        target = PreflightTarget(
            client=client,
            request=request,
            release=TargetRelease(version="5.2.0"),
            sink=sink,
            clock=SystemClock(),
            log=Log(),
            builtin=(node_health.CHECK,),
        )
        await target.run(once=True)
    found = await admin.send(calls.get(ConfigMap, "preflight-report-p1", NAMESPACE))
    assert read(found.data["report.json"].encode()).execution_status == "completed"


async def test_once_waits_for_no_container(config: ClusterConfig, tmp_path: Path) -> None:
    """Nobody makes the pods of a process that ends after one evaluation: the check is Unknown at once, and says so."""
    widgets = Container("widgets", 300)
    check = Check(
        name="asks-a-container",
        component="widgets",
        reads=(),
        run=lambda _s, _c: (),
        unknown_risk="Widgets",
        container=widgets,
    )
    path = tmp_path / "report.json"
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        request = TargetRequest(target_version="5.2.0", source_version="5.0.0", preflight_id="p1", namespace=NAMESPACE)
        release = TargetRelease(version="5.2.0", images={"widgets": "i@sha256:" + "1" * 64})
        target = PreflightTarget(
            client=client,
            request=request,
            release=release,
            sink=FileSink(path),
            clock=SystemClock(),
            log=Log(),
            builtin=(check,),
        )
        await target.run(once=True)
    report = read(path.read_bytes())
    assert [(each.name, each.result) for each in report.checks] == [("asks-a-container", "Unknown")]
    assert "run in a cluster that its operator preflights" in report.checks[0].message
    assert report.containers == ()


async def test_a_config_map_that_cannot_be_written(config: ClusterConfig) -> None:
    """A namespace that is not there is an error of the sink, not a crash of another kind."""
    with pytest.raises(OSError, match="openshift-cluster-version-operator/preflight-report-p1"):
        await asyncio.to_thread(ConfigMapSink(config, NAMESPACE, "p1").write, b"{}")


def _acting_as(kubeconfig: Path, user: str) -> str:
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"]["as"] = user
    return yaml.safe_dump(document)


async def test_every_change_of_what_is_read_is_told(config: ClusterConfig, admin: Client) -> None:
    """By the watch, and not by the next look."""
    shown = asyncio.Event()
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        reads = WatchedKinds(client, [resource_of(Node)], clock=SystemClock(), changed=shown.set)
        running = asyncio.create_task(reads.run())
        async with asyncio.timeout(DEADLINE_S):
            while reads.waiting:
                shown.clear()
                await shown.wait()
            for act in (put(admin, node("shown")), change(admin, "shown", CORDON)):
                shown.clear()
                await act
                await shown.wait()
        running.cancel()
