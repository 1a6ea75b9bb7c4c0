"""Three clusters and their hub: real agents of Open Cluster Management take what the clusters find to a real server.

Each cluster is a sandbox, which runs the Job that the add-on brings. What is typed is what docs/how-to/fleets.md types.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import yaml
from tests.controlplane.build import Unavailable
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import programs
from tests.journeys.conftest import COMMAND_S, RUNUP, START_S, Done, Sandbox, sandbox_in
from tests.ocm import programs as ocm
from tests.ocm.hub import CLUSTERS, Hub
from tests.preflight.decide.test_newest_report import noise
from tests.servers import eventually

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import CronJob, Job
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.api.hub_v1 import ManifestWork
from runup.fleet.decide import hub_addon, status_schedule
from runup.fleet.decide.hub_clusters import SILENT
from runup.preflight.decide import newest_report
from runup.preflight.decide.cluster_run import CONFIG_MAP, JOB, NAMESPACE
from runup.preflight.decide.schedule import NAME
from runup.report.report import FORMAT, MAX_RISKS, Report, ReportedRisk

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(2400), pytest.mark.xdist_group("ocm")]

JSON = dict[str, Any]
DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "fleets.md"
NAMES = ("harbour", "island", "lighthouse")
GROUP = "cluster.open-cluster-management.io"
CLUSTER_SETS = Resource(
    group=GROUP, version="v1beta2", kind="ManagedClusterSet", plural="managedclustersets", namespaced=False
)
BINDINGS = Resource(
    group=GROUP, version="v1beta2", kind="ManagedClusterSetBinding", plural="managedclustersetbindings", namespaced=True
)
PLACEMENTS = Resource(group=GROUP, version="v1beta1", kind="Placement", plural="placements", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
ADDONS = Resource(
    group="addon.open-cluster-management.io",
    version="v1alpha1",
    kind="ManagedClusterAddOn",
    plural="managedclusteraddons",
    namespaced=True,
)
CLAIMS = Resource(group=GROUP, version="v1alpha1", kind="ClusterClaim", plural="clusterclaims", namespaced=False)
WORKS = resource_of(ManifestWork)
CORDONED = "NodeCordoned"


@dataclass
class Fleet:
    """The hub, its clusters by name, and how many Jobs each was given."""

    hub: Hub
    clusters: dict[str, Sandbox]
    folder: Path
    started: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)

    def run(self, *words: str) -> Done:
        """`runup` as its user types it, whose kubeconfig has the hub alone, as context `hub`."""
        done = subprocess.run(
            [*RUNUP, "--kubeconfig", str(self.folder / "kubeconfig"), *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def preflight(self, *words: str) -> JSON:
        """`runup fleet preflight --hub hub -o json`, decoded."""
        done = self.run("fleet", "preflight", "--hub", "hub", "-o", "json", *words)
        assert done.out, done.err
        found: JSON = json.loads(done.out)
        return found

    def states(self, risk: str, *words: str) -> dict[str, str]:
        """In which clusters the risk is found, and as what."""
        return {
            one["cluster"]: each["applies"]
            for one in self.preflight(*words)["clusters"]
            for each in one["risks"]
            if each["name"] == risk
        }

    def observed(self) -> dict[str, str]:
        """Of when the report of each cluster is that the hub has, empty for none."""
        return {one["cluster"]: one.get("observedTime") or "" for one in self.preflight()["clusters"]}

    def check(self, *names: str) -> None:
        """Let clusters check themselves now, as their CronJob would at its time, and wait until they have."""
        jobs = [(name, self.begin(name)) for name in names]
        for name, job in jobs:
            eventually(lambda name=name, job=job: self.ended(name, job), f"{name} has checked itself")

    def report_status(self, *names: str) -> None:
        """Let clusters show how their update goes, as their other CronJob would, and wait until they have."""
        jobs = [(name, self.begin(name, status_schedule.NAME)) for name in names]
        for name, job in jobs:
            eventually(lambda name=name, job=job: self.ended(name, job), f"{name} has told its status")

    def status(self, *words: str) -> dict[str, JSON]:
        """`runup fleet status --hub hub -o json`, by cluster."""
        done = self.run("fleet", "status", "--hub", "hub", "-o", "json", *words)
        assert done.out, done.err
        return {each["cluster"]: each for each in json.loads(done.out)["clusters"]}

    def begin(self, name: str, cron_job: str = NAME) -> str:
        """Start the CronJob's Job as its controller does; its name."""
        started = self.started if cron_job == NAME else self.statuses
        started[name] = started.get(name, 0) + 1
        client = self.clusters[name].client
        template = client.send(calls.get_raw(resource_of(CronJob), cron_job, NAMESPACE))["spec"]["jobTemplate"]
        metadata = {
            "name": f"{cron_job}-{started[name]}",
            "namespace": NAMESPACE,
            "labels": template["metadata"]["labels"],
        }
        client.send(calls.create(JOB, {"metadata": metadata, "spec": template["spec"]}))
        return str(metadata["name"])

    def ended(self, name: str, job: str) -> bool:
        """Whether a Job has, well or not."""
        conditions = self.clusters[name].client.send(calls.get(Job, job, NAMESPACE)).status.conditions
        return any(each.type in ("Complete", "Failed") and each.status == "True" for each in conditions)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A hub with three clusters that have checked themselves once; harbour is in the set `canary`."""
    try:
        program = ocm.build()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("ocm")
    with ExitStack() as stack:
        hub = stack.enter_context(Hub(folder / "hub", programs(), program))
        _write_kubeconfig(hub, folder / "kubeconfig")
        clusters = {}
        for name in NAMES:
            sandbox = stack.enter_context(contextmanager(sandbox_in)(folder / name, "clean"))
            labels = {f"{GROUP}/clusterset": "canary" if name == "harbour" else "main", "env": "test", "name": name}
            hub.join(name, sandbox.kubeconfig, labels)
            clusters[name] = sandbox
        made = Fleet(hub, clusters, folder)
        _add_on(made)
        made.check(*NAMES)
        eventually(lambda: all(made.observed().values()), "the reports of all have travelled")
        yield made


def _write_kubeconfig(hub: Hub, file: Path) -> None:
    content = json.loads(hub.kubeconfig.read_text())
    content["contexts"][0]["name"] = content["current-context"] = "hub"
    file.write_text(json.dumps(content))


def _add_on(fleet: Fleet) -> None:
    """Does what docs/how-to/fleets.md asks of the hub's administrator; otherwise no cluster is checked."""
    nobody = fleet.run("fleet", "preflight", "--hub", "hub")
    assert nobody.code == 1
    assert f"{', '.join(NAMES)}: no preflight is scheduled there" in nobody.out
    with fleet.hub.client as client:
        _put(client, NAMESPACES, {}, "fleet")
        for name in ("canary", "main"):
            _put_set(client, name)
        _put(client, PLACEMENTS, obj={"spec": {"clusterSets": ["canary", "main"]}}, name="all", namespace="fleet")
        for name in NAMES:
            # A sandbox runs images of its own registry alone, so each cluster gets another one by its own template.
            image = fleet.clusters[name].cluster_version().status.desired.image
            typed = ("--placement", "fleet/all", "--every", "30m", "--image", image)
            printed = fleet.run("fleet", "addon", *typed)
            assert printed.code == 0, printed.err
            template, addon = yaml.safe_load_all(printed.out)
            if name == NAMES[0]:
                _put(client, hub_addon.TEMPLATE, template)
                _put(client, hub_addon.ADDON, addon)
            _put(client, hub_addon.TEMPLATE, template | {"metadata": {"name": f"preflight-of-{name}"}})
            eventually(lambda name=name: _with_own_template(client, name), f"{name} has the add-on")
    for name in NAMES:
        eventually(lambda name=name: _has_cron_job(fleet.clusters[name]), f"{name} has its CronJob")
    # The agent tries again what it could not apply at first.
    eventually(lambda: _waits_for_reports(fleet), "each cluster's schedule is applied, and none has a report")


def _put(client: SyncClient, resource: Resource, obj: JSON, name: str = "", namespace: str = "") -> None:
    metadata = obj.get("metadata", {"name": name, **({"namespace": namespace} if namespace else {})})
    client.send(calls.apply(resource, obj | {"metadata": metadata}, field_manager="tests"))


def _put_set(client: SyncClient, name: str) -> None:
    """A set of clusters that Placements of namespace `fleet` may choose from."""
    _put(client, CLUSTER_SETS, {"spec": {}}, name)
    _put(client, BINDINGS, obj={"spec": {"clusterSet": name}}, name=name, namespace="fleet")


def _with_own_template(client: SyncClient, name: str) -> bool:
    """Whether the cluster has the add-on, to which its template is given."""
    template = {"group": hub_addon.TEMPLATE.group, "resource": hub_addon.TEMPLATE.plural}
    patch = {"spec": {"configs": [template | {"name": f"preflight-of-{name}"}]}}
    try:
        client.send(calls.merge_patch(ADDONS, hub_addon.NAMES["openshift"], patch, name))
    except NotFound:
        return False
    return True


def _waits_for_reports(fleet: Fleet) -> bool:
    waiting = fleet.run("fleet", "preflight", "--hub", "hub")
    return (waiting.code, f"{', '.join(NAMES)}: it has no report yet" in waiting.out) == (1, True)


def _has_cron_job(sandbox: Sandbox) -> bool:
    """Whether the cluster has the CronJob, with an image that its node may run."""
    image = sandbox.cluster_version().status.desired.image
    return image in json.dumps(sandbox.client.listing_raw(resource_of(CronJob), NAMESPACE).items)


def test_a_line_for_each_cluster(fleet: Fleet) -> None:
    """All that the hub has, those of a set, those with labels, and those whose report is about a version."""
    done = fleet.run("fleet", "preflight", "--hub", "hub")
    assert done.out.startswith("Preflight of 3 clusters"), done.err
    assert [each["cluster"] for each in fleet.preflight("--clusterset", "canary")["clusters"]] == ["harbour"]
    assert [each["cluster"] for each in fleet.preflight("-l", "env=test")["clusters"]] == list(NAMES)
    assert {each["target"] for each in fleet.preflight("--to", "5.1.0")["clusters"]} == {"5.1.0"}
    other = fleet.preflight("--to", "5.2.0")
    assert (other["exitCode"], [each["cluster"] for each in other["notJudged"]]) == (1, list(NAMES))
    wrong = fleet.run("fleet", "preflight", "--hub", "hub", "--clusterset", "production")
    assert (wrong.code, wrong.out) == (1, "")
    assert "has no such ManagedClusterSet; there is canary, default, global, main" in wrong.err


def test_what_travels_is_what_the_cluster_has_found(fleet: Fleet) -> None:
    """The same risks, steps and time as the cluster's own record has."""
    of_hub = {each["cluster"]: each for each in fleet.preflight()["clusters"]}
    for name, sandbox in fleet.clusters.items():
        shown = json.loads(sandbox.run("preflight", "show", "5.1.0", "--in-cluster", "-o", "json").out)
        for part in ("source", "target", "observedTime"):
            assert of_hub[name][part] == shown[part]
        found, kept = ({each["name"]: each["applies"] for each in one["risks"]} for one in (of_hub[name], shown))
        assert found == kept


def _direct(fleet: Fleet, command: str) -> dict[str, JSON]:
    """What a command about a fleet says of the clusters by their own kubeconfigs, which a hub's user does not have."""
    folder = fleet.folder / "kubeconfigs"
    folder.mkdir(exist_ok=True)
    for name, sandbox in fleet.clusters.items():
        (folder / f"{name}.kubeconfig").write_bytes(sandbox.kubeconfig.read_bytes())
    done = fleet.run("fleet", command, "--kubeconfigs", str(folder), "-o", "json")
    return {each["cluster"]: each for each in json.loads(done.out)["clusters"]}


STATUS_FIELDS = ("updating", "target", "operatorsUpdated", "operators", "poolsUpdated", "pools", "problem")
ADVICE_FIELDS = ("version", "newestRecommended", "problem")


def _part(found: dict[str, JSON], fields: tuple[str, ...]) -> dict[str, JSON]:
    return {name: {field: each[field] for field in fields} for name, each in found.items()}


def test_the_status_and_the_updates_of_each(fleet: Fleet) -> None:
    """Nothing is known before a cluster has told it; then the hub knows what the clusters say themselves."""
    before = fleet.run("fleet", "status", "--hub", "hub")
    assert (before.code, f"{', '.join(NAMES)}: it has no status yet" in before.out) == (1, True)

    def advised() -> bool:
        return all(each["newestRecommended"] for each in _direct(fleet, "recommend").values())

    eventually(advised, "the update service of each cluster has answered")
    fleet.report_status(*NAMES)
    words = ("fleet", "status", "--hub", "hub")
    eventually(lambda: _with_code(fleet.run(*words), 0), "the statuses of all have travelled")
    assert _part(fleet.status(), STATUS_FIELDS) == _part(_direct(fleet, "status"), STATUS_FIELDS)
    assert all(each["operators"] and each["updating"] == "False" for each in fleet.status().values())
    unreadable = [
        insight
        for each in fleet.status().values()
        for insight in json.dumps(each["updateStatus"]).split('"')
        if insight == "InputUnreadable"
    ]
    assert unreadable == []
    done = fleet.run("fleet", "recommend", "--hub", "hub", "-o", "json")
    advice = {each["cluster"]: each for each in json.loads(done.out)["clusters"]}
    assert _part(advice, ADVICE_FIELDS) == _part(_direct(fleet, "recommend"), ADVICE_FIELDS)
    assert all(each["newestRecommended"] for each in advice.values())


def test_a_new_risk_stops_a_rollout(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    """The gate before the next set is 0, and 2 once a risk appears that nobody has accepted."""
    assert fleet.run("fleet", "preflight", "--hub", "hub", "-o", "json=baseline.json").code in (0, 3)
    gates = {
        name: (
            "fleet",
            "preflight",
            "--hub",
            "hub",
            "--clusterset",
            name,
            "--to",
            "5.1.0",
            "--baseline",
            "baseline.json",
        )
        for name in ("canary", "main")
    }
    assert {name: fleet.run(*words).code for name, words in gates.items()} == {"canary": 0, "main": 0}
    client = fleet.clusters["harbour"].client
    node = client.list_all(Node)[0][0].metadata.name
    client.send(calls.merge_patch(resource_of(Node), node, {"spec": {"unschedulable": True}}))
    began = time.monotonic()
    fleet.check("harbour")
    checked = time.monotonic()
    stopped = eventually(lambda: _with_code(fleet.run(*gates["canary"]), 2), "the hub shows the risk")
    shown = time.monotonic()
    with capsys.disabled():
        print(f"\na Job took {checked - began:.1f} s, and the hub showed its risk {shown - checked:.1f} s later")
    assert CORDONED in stopped.out
    assert fleet.states(CORDONED) == {"harbour": "True"}
    assert fleet.run(*gates["main"]).code == 0
    client.send(calls.merge_patch(resource_of(Node), node, {"spec": {"unschedulable": None}}))
    fleet.check("harbour")
    eventually(lambda: _with_code(fleet.run(*gates["canary"]), 0), "the risk is gone from the hub")


def _with_code(done: Done, code: int) -> Done | None:
    return done if done.code == code else None


def test_killed_in_the_middle(fleet: Fleet) -> None:
    """An agent, the hub's controllers and its server, while all check themselves: all arrives, and counts once."""
    before = fleet.observed()
    jobs = {name: fleet.begin(name) for name in NAMES}
    fleet.hub.agents["island"].kill()
    for process in fleet.hub.controllers.values():
        process.kill()
    fleet.hub.plane.restart_server(SIGKILL)
    for name, job in jobs.items():
        eventually(lambda name=name, job=job: fleet.ended(name, job), f"{name} has checked itself")
    assert fleet.observed()["island"] == before["island"]
    for process in (fleet.hub.agents["island"], *fleet.hub.controllers.values()):
        process.start()
    eventually(lambda: all(fleet.observed()[name] > before[name] for name in NAMES), "all new reports have travelled")
    store = ("--store", "sqlite:reports.db")
    for _ in range(2):
        fleet.run("fleet", "preflight", "--hub", "hub", *store)
    history = json.loads(fleet.run("fleet", "history", *store, "-o", "json").out)
    assert sorted((each["cluster"], each["observedTime"]) for each in history) == sorted(fleet.observed().items())
    for name, sandbox in fleet.clusters.items():
        series = sandbox.run("fleet", "history", "--store", f"configmap:{NAMESPACE}/preflight-reports", "-o", "json")
        assert len(json.loads(series.out)) == fleet.started[name]


@contextmanager
def _cluster_down(fleet: Fleet) -> Iterator[None]:
    """The whole cluster ends, and begins again."""
    data = str(fleet.folder / "island")
    for words, inside in ((("stop", "--data", data), True), (("start", "--data", data), False)):
        done = subprocess.run([*RUNUP, "sandbox", *words], capture_output=True, text=True, check=False, timeout=START_S)
        assert done.returncode == 0, done.stderr
        if inside:
            yield


@contextmanager
def _agent_dead(fleet: Fleet) -> Iterator[None]:
    """Nobody renews the cluster's lease on the hub, of which five may be missed."""
    with fleet.hub.client as client:
        client.send(calls.merge_patch(CLUSTERS, "island", {"spec": {"leaseDurationSeconds": 2}}))
    fleet.hub.agents["island"].kill()
    yield
    fleet.hub.agents["island"].start()


@pytest.mark.parametrize("gone", [_cluster_down, _agent_dead], ids=["its cluster", "its agent"])
def test_what_is_known_of_a_cluster_that_is_gone(
    fleet: Fleet, gone: Callable[[Fleet], AbstractContextManager[None]]
) -> None:
    """Its last report stays; that nobody hears of it is reported, and is not accepted by a baseline that has it."""
    before = fleet.observed()
    with gone(fleet):
        eventually(lambda: fleet.states(SILENT) == {"island": "Unknown"}, "the hub says that it does not hear of it")
        fleet.run("fleet", "preflight", "--hub", "hub", "-o", "json=gone.json")
        again = fleet.run("fleet", "preflight", "--hub", "hub", "--baseline", "gone.json")
        assert again.code == 3
        assert SILENT in again.out
    # An agent that could not apply its work tries again after a time that grows.
    eventually(lambda: fleet.states(SILENT) == {} and fleet.observed() == before, "the hub hears of it again")


def test_the_largest_report_travels(fleet: Fleet) -> None:
    """As many risks as a report may have, in as many bytes as it may take to the hub."""
    risks = tuple(
        ReportedRisk(name=f"Risk{each}", applies="True", message=noise(each, 650)) for each in range(MAX_RISKS)
    )
    large = Report(
        format=FORMAT,
        source_version="5.0.0",
        target_version="5.1.0",
        execution_status="completed",
        observed_time=SystemClock().now().replace(microsecond=0),
        risks=risks,
    )
    patch = newest_report.with_report(large)
    assert len(patch["binaryData"]["report"]) > newest_report.MAX_BYTES
    client = fleet.clusters["lighthouse"].client
    client.send(calls.merge_patch(CONFIG_MAP, newest_report.NAME, patch, NAMESPACE))

    def travelled() -> bool:
        (found,) = fleet.preflight("--clusterset", "main", "-l", "name=lighthouse")["clusters"]
        return {each["name"] for each in found["risks"]} >= {each.name for each in risks}

    eventually(travelled, "all risks have travelled")
    before = fleet.observed()["lighthouse"]
    fleet.check("lighthouse")
    eventually(lambda: fleet.observed()["lighthouse"] > before, "the next report is in its place")


def test_names_a_report_of_another_cluster(fleet: Fleet) -> None:
    """A report with another ID than the ManagedCluster claims is not evaluated, until the cluster reports itself."""
    sandbox = fleet.clusters["lighthouse"]
    client = sandbox.client
    # The source of the ID differs by distribution: here it is the test, and the agent takes it to the hub.
    claim = {"metadata": {"name": "id.openshift.io"}, "spec": {"value": sandbox.cluster_version().spec.cluster_id}}
    client.send(calls.apply(CLAIMS, claim, field_manager="tests"))
    reported = Report(
        format=FORMAT,
        source_version="5.0.0",
        target_version="5.1.0",
        execution_status="completed",
        observed_time=SystemClock().now().replace(microsecond=0),
        cluster_id="00000000-0000-4000-8000-00000000f02e",
    )
    forged = newest_report.with_report(reported)
    client.send(calls.merge_patch(CONFIG_MAP, newest_report.NAME, forged, NAMESPACE))

    def is_named() -> bool:
        problems = {each["cluster"]: each["why"] for each in fleet.preflight()["notJudged"]}
        return set(problems) == {"lighthouse"} and "ManagedCluster lighthouse claims" in problems["lighthouse"]

    eventually(is_named, "the report of another cluster is named")
    fleet.check("lighthouse")
    eventually(lambda: not fleet.preflight()["notJudged"], "the cluster's own report is in its place")


def test_an_update_of_one_of_them(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    """The hub shows which cluster updates and to what, once its next status has travelled."""
    harbour = fleet.clusters["harbour"]
    requested = harbour.run("upgrade", "--to=5.1.0")
    assert requested.code == 0, requested.err
    harbour.until(lambda version: version.status.desired.version == "5.1.0", "the update has begun")
    began = time.monotonic()
    fleet.report_status("harbour")
    seen = time.monotonic()
    shown = eventually(
        lambda: (
            {name: each["target"] for name, each in fleet.status().items() if each["target"] != "5.0.0"}
            == {"harbour": "5.1.0"}
        ),
        "the hub shows the update",
    )
    assert shown
    ended = time.monotonic()
    with capsys.disabled():
        print(f"\na Job took {seen - began:.1f} s, and the hub showed the update {ended - seen:.1f} s later")
    # Not of island: its lease is short since its agent was killed, and it may be silent on a busy machine.
    updating = {name: each["updating"] for name, each in fleet.status("-l", "name!=island").items()}
    assert updating == {"harbour": "True", "lighthouse": "False"}
    canary = fleet.run("fleet", "status", "--hub", "hub", "--clusterset", "canary")
    assert canary.out.startswith("1 cluster: 1 updating"), canary.out


def test_the_page_types_the_same() -> None:
    """Types the commands of docs/how-to/fleets.md."""
    page = DOCS.read_text()
    for words in (
        "runup fleet addon --placement fleet/all --every",
        "runup fleet preflight --hub hub",
        "runup fleet status --hub hub",
        "runup fleet recommend --hub hub",
        "--clusterset canary --to 5.1.0 --baseline baseline.json",
        "-o json=baseline.json",
    ):
        assert words in page


def test_a_cluster_that_is_not_openshift(fleet: Fleet) -> None:
    """Its own add-on can be applied in full on a real server that has no namespace of OpenShift's, and goes again.

    The last test: this cluster stays, and has no node that could run the Job.
    """
    with ControlPlane(fleet.folder / "edge", programs()) as plane, fleet.hub.client as client:
        fleet.hub.join("edge", plane.kubeconfig, {f"{GROUP}/clusterset": "edge"})
        _put_set(client, "edge")
        _put(client, PLACEMENTS, obj={"spec": {"clusterSets": ["edge"]}}, name="edge", namespace="fleet")
        typed = ("--placement", "fleet/edge", "--every", "24h", "--platform", "kubernetes", "--to", "1.36")
        printed = fleet.run("fleet", "addon", *typed, "--image", "quay.io/example/runup:1")
        template, addon = yaml.safe_load_all(printed.out)
        _put(client, hub_addon.TEMPLATE, template)
        _put(client, hub_addon.ADDON, addon)
        words = ("fleet", "preflight", "--hub", "hub", "--clusterset", "edge")
        eventually(lambda: "edge: it has no report yet" in fleet.run(*words).out, "all of it is applied")
        status = fleet.run("fleet", "status", "--hub", "hub", "--clusterset", "edge")
        assert (status.code, "edge: it is not an OpenShift: the add-on reports no status" in status.out) == (1, True)
        with SyncClient(config.load(str(plane.kubeconfig))) as edge:
            assert edge.send(calls.get(CronJob, NAME, NAMESPACE)).metadata.name == NAME
            nobody = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"chosen": "no"}}}}
            chosen = {"spec": {"clusterSets": ["edge"], "predicates": [nobody]}}
            _put(client, PLACEMENTS, obj=chosen, name="edge", namespace="fleet")
            eventually(lambda: not client.listing_raw(ADDONS, "edge").items, "the add-on is gone")
            # The hub's garbage collector would: the work is the add-on's.
            (work,) = client.listing_raw(WORKS, "edge").items
            assert [each["kind"] for each in work["metadata"]["ownerReferences"]] == ["ManagedClusterAddOn"]
            client.send(calls.delete(WORKS, work["metadata"]["name"], "edge"))
            eventually(lambda: not edge.list_all(CronJob, NAMESPACE)[0], "the CronJob is gone")
            eventually(lambda: "no preflight is scheduled there" in fleet.run(*words).out, "the hub says so")
            kept = {each.metadata.name for each in edge.list_all(ConfigMap, NAMESPACE)[0]}
            assert {"preflight-history", "preflight-reports"} <= kept
        fleet.hub.agents["edge"].kill()
