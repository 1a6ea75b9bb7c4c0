"""`runup upgrade status` against a server: from live objects, from the controller's object, and what goes wrong."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.cli.commands import Run
from tests.documents import document
from tests.servers import CRD, Server, api_server, eventually

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace, Node, Pod, ServiceAccount
from kubekit.api.meta_v1 import Status
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Lease, PodDisruptionBudget
from kubekit.error_types import InputError
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Forbidden, KubeError, NotFound, ServerError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock, ManualClock
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.update_v1alpha1 import UpdateStatus
from runup.cli.updatestatus import watch_command as status_watch
from runup.dump.documents import objects_in
from runup.rehearse.decide.drain_inputs import KINDS
from runup.sandbox import crds
from runup.updatestatus.control import live_status as read_cluster
from runup.updatestatus.control import live_status as status_live
from runup.updatestatus.control import status_reading as compute_status
from runup.updatestatus.control.status_files import mock
from runup.updatestatus.control.status_reading import parse_moment
from runup.updatestatus.control.status_reads import READS
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.freshness import CONFIRMED_AT, LEASE, NAMESPACE
from runup.updatestatus.decide.read_status import report as read_report

JSON = dict[str, Any]
CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status"
CASE = "4.14.1-degraded"
NOW = "2023-11-03T17:26:54.000368975Z"
STATUSES = resource_of(UpdateStatus)
LEASES = resource_of(Lease)
PARTS: dict[str, type[Any]] = {
    "cv": ClusterVersion,
    "co": ClusterOperator,
    "mcp": MachineConfigPool,
    "mc": MachineConfig,
    "node": Node,
}

pytestmark = [
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of oc's cases is not beside this checkout"),
    # One server for all of them, and not one for each worker.
    pytest.mark.xdist_group("live-status"),
]


def create(client: SyncClient, resource: Resource, obj: JSON) -> None:
    """Create an object with its status."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "uid")}
    made = client.send(calls.create(resource, {**obj, "metadata": metadata}))
    if "status" in obj and resource.kind != "MachineConfig":
        client.send(calls.replace(resource, {**made, "status": obj["status"]}, subresource="status"))


def is_served(client: SyncClient, kind: type[Any]) -> bool:
    """Whether the server knows the kind by now."""
    try:
        client.send(calls.list_raw(resource_of(kind)))
    except NotFound:
        return False
    return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the objects of the case, and the kind UpdateStatus without an object."""
    with (
        api_server(tmp_path_factory.mktemp("status")) as kubeconfig,
        SyncClient(config.load(str(kubeconfig))) as client,
    ):
        for file in crds.definition_files(generally_available=True):
            client.send(calls.create(CRD, document(file)))
        for part, kind in PARTS.items():
            eventually(lambda kind=kind: is_served(client, kind), f"{kind.__name__} is served")
            for obj in objects_in(CORPUS / f"{CASE}-{part}.yaml"):
                create(client, resource_of(kind), obj)
        eventually(lambda: is_served(client, UpdateStatus), "UpdateStatus is served")
        client.send(calls.create(resource_of(Namespace), {"metadata": {"name": NAMESPACE}}))
        yield Server(kubeconfig, client)


def keep(client: SyncClient, at: str, *, duration_s: int = 137, holder: str = "vm_1", confirmed: str = "") -> None:
    """The Lease of a controller that renewed it at a time, and no time of the server's, which is another year's."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration_s, "renewTime": f"{at[:19]}.000000Z"}
    metadata = {"annotations": {CONFIRMED_AT: confirmed or at}, "managedFields": [{}]}
    client.send(calls.merge_patch(LEASES, LEASE, {"metadata": metadata, "spec": spec}, NAMESPACE))


@pytest.fixture
def kept(server: Server) -> Iterator[SyncClient]:
    """The Lease, held by nobody."""
    client = server.client
    client.send(calls.create(LEASES, {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": {}}))
    yield client
    client.send(calls.delete(LEASES, LEASE, NAMESPACE))


@pytest.fixture
def report(server: Server, kept: SyncClient) -> Iterator[JSON]:
    """The controller's object for the case, stored, and its Lease: at all times of the tests it is held."""
    keep(kept, "2023-11-03T17:26:44Z", duration_s=3 * 3600)
    found = mock(str(CORPUS / f"{CASE}-cv.yaml"), datetime(2026, 1, 1, tzinfo=UTC)).obj
    client = server.client
    bare = {key: value for key, value in found.items() if key != "status"}
    made = client.send(calls.create(STATUSES, bare))
    client.send(calls.replace(STATUSES, {**made, "status": found["status"]}, subresource="status"))
    yield found
    client.send(calls.delete(STATUSES, "cluster"))


def expected(suffix: str = "output") -> str:
    """What oc prints of the case."""
    return (CORPUS / f"{CASE}.{suffix}").read_text()


@pytest.mark.slow
def test_from_live_objects(server: Server, run: Run) -> None:
    """Without the controller's object the command reads the cluster; the bytes are the same."""
    words = ("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
    ran = run(*words)
    assert (ran.code, ran.out) == (0, expected())
    assert ran.err == (
        "Unable to fetch alerts, ignoring alerts in 'Update Health':  no token is currently in use for this session\n"
    )
    assert run(*words, "--details=all").out == expected("detailed-output")


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["computed", "the controller's object"])
def test_a_collected_dump_reports_the_same(
    server: Server, run: Run, tmp_path: Path, stored: bool, request: pytest.FixtureRequest
) -> None:
    """In the middle of an update, with a component that cannot act; `dump collect` takes all that is read."""
    if stored:
        request.getfixturevalue("report")
    namespace, name = "openshift-machine-config-operator", "machine-config-controller-1"
    client, pods = server.client, resource_of(Pod)
    client.send(calls.apply(resource_of(Namespace), {"metadata": {"name": namespace}}, field_manager="t", force=True))
    account = {"metadata": {"name": "default", "namespace": namespace}}
    client.send(calls.apply(resource_of(ServiceAccount), account, field_manager="t", force=True))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    container = {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 9, "state": waiting}
    spec = {"containers": [{"name": "c", "image": "x"}]}
    status = {"phase": "Running", "containerStatuses": [container]}
    create(client, pods, {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status})
    try:
        words = ("--mock-now", NOW, "--details=all")
        live = run("upgrade", "status", "--kubeconfig", server.kubeconfig, *words)
        run("dump", "collect", tmp_path / "mine", "--kubeconfig", server.kubeconfig)
    finally:
        client.send(calls.delete(pods, name, namespace))
    dumped = run("upgrade", "status", "--dump", tmp_path / "mine", *words)
    assert (dumped.code, dumped.out) == (0, live.out)
    assert ("machine-config-controller cannot act" in live.out) is not stored
    configs = json.loads((tmp_path / "mine" / "machineconfigs.machineconfiguration.openshift.io.json").read_text())
    assert {key for item in configs["items"] for key in item} <= {"apiVersion", "kind", "metadata"}
    collected = {row["resource"] for row in json.loads((tmp_path / "mine" / "runup-dump.json").read_text())["kinds"]}
    assert {resource.name for resource, _ in READS} | {kind.resource.name for kind in KINDS} <= collected


@pytest.mark.usefixtures("report")
def test_from_the_controllers_object(server: Server, run: Run) -> None:
    """The bytes are the same."""
    words = ("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
    assert run(*words).out == expected()
    assert run(*words, "--details=all").out == expected("detailed-output")


def test_the_machine_forms_are_the_object(server: Server, run: Run, report: JSON) -> None:
    """As the server has it."""
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        ran = run("upgrade", "status", "-o", form, "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
        found = read(ran.out)
        assert (found["kind"], found["apiVersion"]) == ("UpdateStatus", "update.openshift.io/v1alpha1")
        # YAML has times of its own; what is reported of them is the same.
        assert [pool["name"] for pool in found["status"]["workerPools"]] == ["worker"]
        assert found["metadata"]["resourceVersion"]


def test_the_machine_form_of_live_objects_is_an_object_of_the_same_kind(server: Server, run: Run) -> None:
    """So programs need not care who made it."""
    found = json.loads(run("upgrade", "status", "-o", "json", "--kubeconfig", server.kubeconfig).out)
    assert codec.convert(UpdateStatus, found).status is not None
    assert found["metadata"]["name"] == "cluster"


def test_a_page(server: Server, run: Run) -> None:
    """One HTML file."""
    ran = run("upgrade", "status", "-o", "html", "--kubeconfig", server.kubeconfig)
    assert ran.out.startswith("<!DOCTYPE html>")
    assert "4.14.1" in ran.out


def test_a_page_names_the_cluster_and_no_folder(run: Run, tmp_path: Path) -> None:
    """It is sent to others: whose cluster it is they know by its ID, where the files lay is nobody's business."""
    path = case(tmp_path)
    page = run("upgrade", "status", "--mock-clusterversion", path, "-o", "html").out
    assert "open x-alerts.json: no such file or directory" in page
    for text in (page, run("upgrade", "status", "--dump", must_gather(tmp_path), "-o", "html").out):
        assert "<!DOCTYPE html>" in text
        assert str(tmp_path) not in text
        assert "fb4b77e5-f288-49ad-b9e6-dfd20426e470" in text


def test_a_report_that_leaves_nodes_out_is_not_enough_for_those_who_want_them_all(
    server: Server, run: Run, report: JSON
) -> None:
    """Then the cluster itself is read."""
    stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
    for pool in stored["status"]["workerPools"]:
        for informer in pool["informers"]:
            informer["insights"] = [each for each in informer["insights"] if each["type"] != "Node"]
        pool["omitted"] = {"nodes": 3}
    for condition in stored["status"]["conditions"]:
        if condition["type"] == "Complete":
            condition.update(status="False", reason="InsightsOmitted")
    server.client.send(calls.replace(STATUSES, stored, subresource="status"))
    words = ("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
    assert "Omitted additional 3 Total, 0 Completed, 3 Available" in run(*words).out
    assert run(*words, "--details=all").out == expected("detailed-output")
    assert "Omitted additional" not in run(*words, "--details=nodes").out
    assert "Omitted additional 3 Total" in run(*words, "--details=health").out


def test_an_object_that_was_never_written_is_as_good_as_none(server: Server, run: Run) -> None:
    """The controller has only begun."""
    client = server.client
    identity = {"apiVersion": STATUSES.api_version, "kind": "UpdateStatus", "metadata": {"name": "cluster"}}
    client.send(calls.create(STATUSES, {**identity, "spec": {}}))
    try:
        ran = run("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
        assert ran.out == expected()
    finally:
        client.send(calls.delete(STATUSES, "cluster"))


class Scripted:
    """A client whose answers a test gives by resource; others go to the real server."""

    def __init__(self, real: SyncClient, refused: dict[str, KubeError]) -> None:
        self.config = real.config
        self._real = real
        self._refused = refused

    def send(self, call: Any) -> Any:
        """The real answer, or the refusal for that resource."""
        for name, error in self._refused.items():
            if f"/{name}" in call.request.path:
                raise error
        return self._real.send(call)

    def listing(self, kind: type[Any], *args: Any, **options: Any) -> Any:
        """As `send`."""
        if error := self._refused.get((options.get("resource") or resource_of(kind)).plural):
            raise error
        return self._real.listing(kind, *args, **options)


def as_nobody(server: Server) -> KubeError:
    """A user without rights sees the reason."""
    from msgspec.structs import replace

    nobody = replace(server.client.config, headers=(("Impersonate-User", "nobody"),))
    with SyncClient(nobody) as client, pytest.raises(KubeError) as refused:
        client.send(calls.list_raw(resource_of(Node)))
    return refused.value


def test_what_may_not_be_read_is_a_line_of_the_report(server: Server) -> None:
    """With the server's words; the control plane is reported all the same."""
    from runup.cli.updatestatus.render import status_text as rendered
    from runup.updatestatus.decide import read_status as read

    forbidden = as_nobody(server)
    client: Any = Scripted(server.client, {"nodes": forbidden, "poddisruptionbudgets": forbidden})
    now = datetime.fromisoformat("2023-11-03T17:26:54+00:00")
    found = status_live.read(client, lambda: now)
    text = rendered.render(read.report(found.obj), found.now_ns, rendered.details("health"))
    assert "Completion:      97% (32 operators updated, 1 updating, 0 waiting)" in text
    assert "Worker Upgrade" not in text
    assert "Message: Nodes could not be read, so part of the status is unknown\n" in text
    assert 'Description: nodes is forbidden: User "nobody" cannot list resource "nodes"' in text


def test_trouble_with_one_kind_is_a_line_of_the_report(server: Server) -> None:
    """A watching user asks again, because an unreadable moment does not end the update."""
    from runup.cli.updatestatus.render import status_text as rendered
    from runup.updatestatus.decide import read_status as read

    broken = ServerError(
        Status(message="etcdserver: request timed out", code=500), calls.list_raw(resource_of(Node)).request
    )
    client: Any = Scripted(server.client, {"updatestatuses": broken, "nodes": broken})
    now = datetime.fromisoformat("2023-11-03T17:26:54+00:00")
    found = status_live.read(client, lambda: now)
    text = rendered.render(read.report(found.obj), found.now_ns, rendered.details("health"))
    assert "Completion:      97% (32 operators updated, 1 updating, 0 waiting)" in text
    assert "Message: Nodes could not be read, so part of the status is unknown\n" in text
    assert "Description: etcdserver: request timed out" in text
    with pytest.raises(ServerError):
        status_live.read(client, lambda: now, following=True)


def test_one_node_that_cannot_be_read_is_a_line_of_the_report(server: Server) -> None:
    """It is named; the report has all the others."""
    from runup.cli.updatestatus.render import status_text as rendered
    from runup.updatestatus.decide import read_status as read

    nodes = sorted(node.metadata.name for node in server.client.list_all(Node)[0])
    good = server.client.send(calls.get_raw(resource_of(Node), nodes[0]))
    conditions = {"conditions": [{"type": "Ready", "status": "true"}]}
    status = resource_of(Node), nodes[0]
    server.client.send(calls.merge_patch(*status, {"status": conditions}, subresource="status"))
    try:
        snapshot = read_cluster.observe(server.client, datetime(2026, 1, 1, tzinfo=UTC), (Forbidden, NotFound))
        found = status_live.read(server.client, lambda: datetime.fromisoformat("2023-11-03T17:26:54+00:00"))
    finally:
        server.client.send(calls.merge_patch(*status, {"status": good["status"]}, subresource="status"))
    assert isinstance(snapshot.nodes, tuple)
    assert [node.metadata.name for node in snapshot.nodes] == nodes[1:]
    text = rendered.render(read.report(found.obj), found.now_ns, rendered.details("health"))
    assert f"Message: Node {nodes[0]} could not be read, so part of the status is unknown\n" in text
    assert "Description: Invalid enum value 'true' - at `$.status.conditions[0].status`" in text


def test_reports_the_version_of_a_cluster_without_nodes(run: Run, tmp_path: Path) -> None:
    """Without a ClusterVersion the API server says which Kubernetes it is; without nodes the rest is not known."""
    with api_server(tmp_path / "empty") as kubeconfig:
        ran = run("upgrade", "status", "--kubeconfig", kubeconfig)
        assert ran.code == 0
        assert ran.out.startswith("Could not determine whether the cluster is updating.\n")
        assert "API Servers:     1 of 1 updated (kube-apiserver v1." in ran.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["extra"], "error: positional arguments given\nSee 'runup upgrade status -h' for help and examples\n"),
        (
            ["--details=most"],
            "error: invalid value for --details: most (must be one of none, all, nodes, health, operators)\n",
        ),
        (
            ["--mock-clusterversion", "no.yaml"],
            "error: --mock-clusterversion must name a file NAME-cv.yaml, not no.yaml: its siblings are read too\n",
        ),
        (["--mock-clusterversion", "no-cv.yaml"], "error: open no-cv.yaml: no such file or directory\n"),
        (
            ["--dump", "/nowhere"],
            "error: there is no folder /nowhere, and no nowhere-cv.yaml in /\n",
        ),
        (
            ["--dump", ".", "--mock-clusterversion", "a-cv.yaml"],
            "error: --dump and --mock-clusterversion both name files to read; give one of them\n",
        ),
        (["--mock-now", "noon"], 'error: --mock-now must be a time such as 2026-01-02T03:04:05Z, not "noon"\n'),
        *(
            (["--watch", *more], "error: --watch follows a live cluster and prints text; leave out --dump and -o\n")
            for more in (["-o", "json"], ["--dump", "."], ["--mock-clusterversion", "a-cv.yaml"])
        ),
    ],
)
def test_what_cannot_be_asked_for(words: list[str], error: str, run: Run) -> None:
    """One clear line, and exit code 1."""
    ran = run("upgrade", "status", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", error)


def test_a_folder_of_several_cases_names_them(run: Run) -> None:
    """Which of them is asked for."""
    ran = run("upgrade", "status", "--dump", CORPUS)
    assert ran.code == 1
    assert f"\n  {CORPUS / CASE}\n" in ran.err


def case(folder: Path, **changes: Any) -> Path:
    """A copy of the case with some files changed; None leaves one out."""
    for part in PARTS:
        text: Any = (CORPUS / f"{CASE}-{part}.yaml").read_text()
        text = changes.get(part, text)
        if text is not None:
            (folder / f"x-{part}.yaml").write_text(text)
    return folder / "x-cv.yaml"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"co": None}, "open {}-co.yaml: no such file or directory", id="a missing file"),
        pytest.param({"node": "a: [1"}, "{}-node.yaml", id="a file that is no YAML"),
        pytest.param(
            {"co": "apiVersion: v1\nkind: List\nitems: []\n"},
            "no cluster operator information available - you must be connected to an OpenShift version 4 server",
            id="no operators",
        ),
        pytest.param(
            {"cv": "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\n"},
            "no current Progressing info, see `oc describe clusterversion` for more details.",
            id="no Progressing condition",
        ),
        pytest.param(
            {"cv": "apiVersion: v1\nkind: List\nitems: []\n"}, "{}-cv.yaml holds no ClusterVersion", id="none at all"
        ),
        pytest.param({"mcp": "metadata: 7\n"}, "{}-mcp.yaml: not a MachineConfigPool: ", id="another type"),
    ],
)
def test_files_that_cannot_be_used(changes: JSON, error: str, tmp_path: Path, run: Run) -> None:
    """The error names the file."""
    ran = run("upgrade", "status", "--mock-clusterversion", case(tmp_path, **changes))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: " + error.format(tmp_path / "x"))


@pytest.mark.parametrize("status", ["Maybe", None, 1], ids=["a word that is none", "none", "a number"])
def test_a_status_that_is_none_counts_as_unknown(status: Any, tmp_path: Path, run: Run) -> None:
    """Neither True nor False, and no reason to refuse all the files."""

    def printed_status(value: Any) -> str:
        operators = document(CORPUS / f"{CASE}-co.yaml")
        (etcd,) = [each for each in operators["items"] if each["metadata"]["name"] == "etcd"]
        (available,) = [each for each in etcd["status"]["conditions"] if each["type"] == "Available"]
        available["status"] = value
        if value is None:
            del available["status"]
        ran = run("upgrade", "status", "--mock-clusterversion", case(tmp_path, co=json.dumps(operators)))
        assert ran.code == 0
        return str(ran.out)

    assert printed_status(status) == printed_status("Unknown") != printed_status("True")


ALERT = {
    "labels": {"alertname": "Bad", "severity": "critical", "namespace": "ns"},
    "annotations": {"summary": "It is bad.", "description": "d", "runbook_url": "https://example.com/r"},
    "state": "firing",
    "activeAt": "2023-11-03T17:00:00.123456789Z",
}


def test_alerts_of_a_file(tmp_path: Path, run: Run) -> None:
    """Read next to the others, and reported first if critical."""
    path = case(tmp_path)
    (tmp_path / "x-alerts.json").write_text(json.dumps({"status": "success", "data": {"alerts": [ALERT]}}))
    ran = run("upgrade", "status", "--mock-clusterversion", path, "--details=health")
    assert ran.err == ""
    assert ran.out.partition("= Update Health =\n")[2].startswith(
        "Message: Alert is firing: It is bad.\n"
        "  Since:       26m53s\n"
        "  Level:       Critical\n"
        "  Impact:      Unknown\n"
        "  Reference:   https://example.com/r\n"
        "  Resources:\n"
        "    alerts.config.openshift.io: ns/Bad\n"
        "  Description: Alert started firing during the update. The alert description is: d\n"
    )


def test_a_file_of_alerts_that_is_none(tmp_path: Path, run: Run) -> None:
    """oc's line, its slip included, and the report without alerts."""
    path = case(tmp_path)
    (tmp_path / "x-alerts.json").write_text("nonsense")
    ran = run("upgrade", "status", "--mock-clusterversion", path)
    assert ran.out == expected()
    assert ran.err.startswith("Ignoring alerts in 'Update Health'. Error unmarshaling alerts: %w ")


def test_a_deployment_of_a_file(tmp_path: Path, run: Run) -> None:
    """Its image is what machine-config has to report; here it already does, so nothing else is left."""
    operators = (CORPUS / f"{CASE}-co.yaml").read_text()
    path = case(tmp_path, co=operators)
    (tmp_path / "x-mco-deployment.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: machine-config-operator}\n"
        "spec: {template: {spec: {containers: [{name: machine-config-operator, image: example.com/mco}]}}}\n"
    )
    assert run("upgrade", "status", "--mock-clusterversion", path).out == expected()


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1970-01-01t00:00:02z", 2_000_000_000),
        ("1969-12-31T23:00:00.25-01:30", 1800_250_000_000),
        (NOW, 1699032414_000368975),
    ],
)
def test_times_of_the_flag(text: str, ns: int) -> None:
    """To the nanosecond."""
    assert parse_moment(text) == ns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", 'must be a time such as 2026-01-02T03:04:05Z, not "yesterday"'),
        ("2026-13-01T00:00:00Z", "--mock-now 2026-13-01T00:00:00Z: month must be in 1..12"),
    ],
    ids=["no time", "no month"],
)
def test_moments_that_are_none(text: str, said: str) -> None:
    """An error that has what was typed."""
    with pytest.raises(InputError) as refused:
        parse_moment(text)
    assert said in refused.value.message


NAMESPACED = (("apps", "deployments", "Deployment"), ("core", "pods", "Pod"))


def namespaces(*names: str) -> str:
    """A list of all namespaces, as the API server answers."""
    items = "".join(f"- metadata: {{name: {name}}}\n" for name in names)
    return f"apiVersion: v1\nkind: NamespaceList\nmetadata: {{resourceVersion: '7'}}\nitems:\n{items}"


def must_gather(folder: Path) -> Path:
    """The case in the layout of must-gather, with large configurations and logs that are not to be read."""
    scoped = folder / "must-gather.local.1" / "image" / "cluster-scoped-resources"
    places = {
        "cv": ("config.openshift.io", "clusterversions"),
        "co": ("config.openshift.io", "clusteroperators"),
        "mcp": ("machineconfiguration.openshift.io", "machineconfigpools"),
        "mc": ("machineconfiguration.openshift.io", "machineconfigs"),
        "node": ("core", "nodes"),
    }
    for part, (group, plural) in places.items():
        for obj in objects_in(CORPUS / f"{CASE}-{part}.yaml"):
            where = scoped / group / plural
            where.mkdir(parents=True, exist_ok=True)
            if part == "mc":
                obj["spec"] = {"config": {"files": ["x" * 70_000]}}
            ordered = {key: obj[key] for key in ("apiVersion", "kind", "metadata", "spec", "status") if key in obj}
            text = yaml.dump(ordered, Dumper=yaml.CSafeDumper, sort_keys=False)
            (where / f"{obj['metadata']['name']}.yaml").write_text(text)
    (scoped / "core" / "secrets.yaml").write_text("not: [read")
    operator = folder / "must-gather.local.1" / "image" / "namespaces" / "openshift-machine-config-operator"
    (scoped / "core" / "namespaces.yaml").write_text(namespaces(operator.name))
    for group, plural, kind in NAMESPACED:
        (operator / group).mkdir(parents=True, exist_ok=True)
        listed = (
            f"kind: {kind}List\nitems:\n- metadata: {{name: machine-config-operator, namespace: {operator.name}}}\n"
        )
        version = "v1" if group == "core" else f"{group}/v1"
        (operator / group / f"{plural}.yaml").write_text(f"apiVersion: {version}\n{listed}")
    (folder / "must-gather.local.1" / "timestamp").write_text(
        "2023-11-03 17:20:00.5 +0000 UTC m=+0.1\n2023-11-03 17:26:54.5 +0000 UTC m=+400.1\n"
    )
    return folder / "must-gather.local.1"


def test_a_must_gather(tmp_path: Path, run: Run) -> None:
    """At the time at which it ended."""
    ran = run("upgrade", "status", "--dump", must_gather(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == expected()


def test_a_packed_must_gather(tmp_path: Path, run: Run) -> None:
    """The same, with an object that is no node named next to it."""
    folder = must_gather(tmp_path)
    nodes = folder / "image" / "cluster-scoped-resources" / "core" / "nodes"
    (nodes / "none.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: odd}\nspec: {unschedulable: [maybe]}\n"
    )
    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    ran = run("upgrade", "status", "--dump", tmp_path / "m.tar.gz")
    assert (ran.code, ran.out) == (0, expected())
    assert "warning: left out: odd: not a Node: " in ran.err


def test_a_must_gather_with_a_report(tmp_path: Path, run: Run) -> None:
    """The controller's own object is what is shown; whether anybody kept it until the end is not known, and is said."""
    folder = must_gather(tmp_path)
    obj = mock(str(CORPUS / "4.14.1-paused-worker-pool-cv.yaml"), datetime(2026, 1, 1, tzinfo=UTC)).obj
    where = folder / "image" / "cluster-scoped-resources" / "update.openshift.io" / "updatestatuses"
    where.mkdir(parents=True)
    (where / "cluster.yaml").write_text(yaml.safe_dump(json.loads(codec.encode(obj))))
    ran = run("upgrade", "status", "--dump", folder)
    assert "worker        Excluded     0% (0/3)" in ran.out
    seen = "the age of the update status controller's report is unknown: the dump has no Lease, which would show it"
    assert ran.err.endswith(f"warning: {seen}\n")
    current, _ = current_of(run("upgrade", "status", "--dump", folder, "-o", "json").out)
    assert (current["status"], current["reason"]) == ("Unknown", "CannotDetermine")


def test_a_must_gather_with_pods_of_one_namespace_says_so(tmp_path: Path, run: Run) -> None:
    """Whether others wait for something is not known; all else is as ever."""
    folder = must_gather(tmp_path)
    image = folder / "image"
    listed = image / "cluster-scoped-resources" / "core" / "namespaces.yaml"
    own = "openshift-machine-config-operator"
    listed.write_text(namespaces("openshift-dns", own, "shop"))
    (image / "namespaces" / own / "core" / "pods.yaml").unlink()
    pods = image / "namespaces" / "openshift-dns" / "core" / "pods.yaml"
    pods.parent.mkdir(parents=True)
    pods.write_text(
        "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: dns, namespace: openshift-dns}\n"
        "  status: {phase: Running}\n"
    )
    ran = run("upgrade", "status", "--dump", folder, "--details=health")
    assert "Pending Pods are known in part, so part of the status is unknown" in ran.out
    assert "of pods the dump has only the namespace openshift-dns: whether there were others is not known" in ran.out
    listed.write_text(namespaces("openshift-dns"))
    assert "known in part" not in run("upgrade", "status", "--dump", folder, "--details=health").out


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        pytest.param(
            "apps/deployments.yaml", "The Deployment machine-config-operator could not be read", id="Deployments"
        ),
        pytest.param("core/pods.yaml", "Pending Pods could not be read", id="pods"),
    ],
)
def test_a_must_gather_that_lacks_a_kind_says_so(tmp_path: Path, run: Run, missing: str, said: str) -> None:
    """During an update, unreadable inputs are unknown, not absent."""
    folder = must_gather(tmp_path)
    (folder / "image" / "namespaces" / "openshift-machine-config-operator" / missing).unlink()
    ran = run("upgrade", "status", "--dump", folder, "--details=health")
    assert ran.code == 0
    assert said in ran.out
    assert "the dump holds none" in ran.out


def test_a_live_server_that_knows_a_part_says_so(server: Server) -> None:
    """The report names its informer in the informer's words."""
    from kubesandbox.apiserver.access.collected import NAMESPACE, PARTLY_COLLECTED

    data = {"nodes": "some nodes are lost", "pods": "some pods are lost"}
    body = {"metadata": {"name": PARTLY_COLLECTED, "namespace": NAMESPACE}, "data": data}
    maps = resource_of(ConfigMap)
    server.client.send(calls.create(maps, body))
    try:
        found = read_cluster.observe(server.client, datetime(2026, 1, 1, tzinfo=UTC), (Forbidden, NotFound)).incomplete
    finally:
        server.client.send(calls.delete(maps, PARTLY_COLLECTED, NAMESPACE))
    assert found == {
        "nodes": data["nodes"],
        "pending_pods": data["pods"],
        "draining_pods": data["pods"],
    }


def test_a_must_gather_without_nodes_does_not_say_that_there_are_none(tmp_path: Path, run: Run) -> None:
    """A kind that the dump lacks is unknown."""
    import shutil

    folder = must_gather(tmp_path)
    shutil.rmtree(folder / "image" / "cluster-scoped-resources" / "core")
    ran = run("upgrade", "status", "--dump", folder)
    assert "Nodes could not be read, so part of the status is unknown" in ran.out


def test_a_report_that_nobody_keeps_is_not_believed(server: Server, run: Run, report: JSON) -> None:
    """It says another update than ClusterVersion, which has been so for hours."""
    stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
    stored["status"]["controlPlane"]["conditions"][0].update(status="False", reason="ClusterVersionNotProgressing")
    stored["status"]["workerPools"] = []
    server.client.send(calls.replace(STATUSES, stored, subresource="status"))
    ran = run("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
    assert ran.out == expected()
    assert (
        "warning: the update status controller's report was last confirmed at 2023-11-03T17:26:44Z (10 s ago): it is "
        "older than ClusterVersion. So the cluster itself was read; see whether the controller runs in "
        "openshift-update-status-controller\n"
    ) in ran.err
    # Half a minute after the update began the controller may just be behind.
    ran = run("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", "2023-11-03T15:28:34Z")
    assert ran.out == "The cluster is not updating.\n"


def current_of(out: str) -> tuple[JSON, JSON]:
    """Conditions Current and Available of a printed object."""
    conditions = {each["type"]: each for each in json.loads(out)["status"]["conditions"]}
    return conditions["Current"], conditions["Available"]


CONFIRMED = "the update status controller's report was last confirmed at 2023-11-03T17:26:44Z"
HELD = f"its Lease {NAMESPACE}/{LEASE} was last renewed at 2023-11-03T17:26:50Z"


@pytest.mark.parametrize(
    ("later", "warning"),
    [
        pytest.param("2023-11-03T17:27:20Z", "", id="30 seconds"),
        pytest.param("2023-11-03T17:29:50Z", f"warning: {CONFIRMED} (3 min ago): {HELD}. ", id="3 minutes"),
        pytest.param("2023-11-03T18:26:50Z", f"warning: {CONFIRMED} (60 min ago): {HELD}. ", id="an hour"),
    ],
)
def test_a_controller_that_was_killed(server: Server, run: Run, report: JSON, later: str, warning: str) -> None:
    """As long as its Lease holds its report is believed; then the cluster is read, and that is said in every form."""
    keep(server.client, "2023-11-03T17:26:50Z", confirmed="2023-11-03T17:26:44Z")
    stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
    stored["status"]["controlPlane"]["informers"][0]["insights"].append(STALE)
    server.client.send(calls.replace(STATUSES, stored, subresource="status"))
    words = ("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", later)
    text, machine, page = run(*words), run(*words, "-o", "json"), run(*words, "-o", "html")
    believed = not warning
    assert [warning in ran.err for ran in (text, machine, page)] == [True] * 3
    assert [STALE["health"]["impact"]["summary"] in ran.out for ran in (text, machine, page)] == [believed] * 3
    current, available = current_of(machine.out)
    assert (current["status"], available["status"]) == ("True", "True")
    assert current["reason"] == ("AsExpected" if believed else "ReadFromCluster")
    assert current["message"][:14] in page.out
    if believed:
        assert current["message"] == "Confirmed at 2023-11-03T17:26:44Z, 36 s before it was read."
        assert "report" not in text.err


def test_an_old_report_still_tells_since_when(server: Server, report: JSON) -> None:
    """A condition that still holds keeps its start; it is unrelated to another update."""

    def first_observed(began: str) -> set[Any]:
        stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
        insights = stored["status"]["controlPlane"]["informers"][0]["insights"]
        insights[0]["clusterVersion"]["startedAt"] = began
        server.client.send(calls.replace(STATUSES, stored, subresource="status"))
        found = status_live.read(server.client, lambda: later).obj
        return {
            each["health"]["firstObservedAt"]
            for each in found["status"]["controlPlane"]["informers"][0]["insights"]
            if each["type"] == "Health"
        }

    keep(server.client, "2023-11-03T17:26:50Z")
    later = datetime(2023, 11, 3, 18, 26, 50, tzinfo=UTC)
    began = report["status"]["controlPlane"]["informers"][0]["insights"][0]["clusterVersion"]["startedAt"]
    assert first_observed(str(began)) == {"2023-11-03T17:26:54Z"}
    assert first_observed("2023-11-02T15:00:00Z") == {"2023-11-03T18:26:50Z"}


STALE: JSON = {
    "uid": "health-stale",
    "acquiredAt": "2023-11-03T17:00:00Z",
    "type": "Health",
    "health": {
        "scope": {"type": "ControlPlane"},
        "impact": {"level": "Error", "type": "Update Stalled", "summary": "Node x is degraded"},
        "remediation": {"reference": "https://example.com"},
        "startedAt": "2023-11-03T17:00:00Z",
        "firstObservedAt": "2023-11-03T17:00:00Z",
    },
}


def test_an_old_report_is_marked_where_the_cluster_may_not_be_read(server: Server, report: JSON) -> None:
    """It is all there is; nobody answers for it, and that is said."""
    from runup.cli.updatestatus.command import html_page

    client: Any = Scripted(server.client, {"clusterversions": as_nobody(server), "clusteroperators": as_nobody(server)})
    keep(server.client, "2023-11-03T17:26:50Z")
    later = datetime(2023, 11, 3, 18, 26, 50, tzinfo=UTC)
    found = status_live.read(client, lambda: later)
    assert "The cluster itself may not be read (" in found.notes[0]
    assert found.notes[0].endswith("so the old report is shown\n")
    current, available = current_of(json.dumps(found.obj))
    assert (current["status"], current["reason"]) == ("False", "NotConfirmed")
    assert current["message"].startswith(
        "The update status controller's report was last confirmed at 2023-11-03T17:26:50Z (60 min ago): its Lease "
    )
    assert (available["status"], available["reason"]) == ("Unknown", "NotConfirmed")
    assert "(60 min ago)" in html_page(found)


@pytest.mark.parametrize(
    ("refused", "err"),
    [
        pytest.param(
            True,
            f"warning: the age of the update status controller's report is unknown: Lease {NAMESPACE}/{LEASE} "
            "could not be read: ",
            id="may not be read",
        ),
        pytest.param(
            False,
            f"warning: the update status controller's report may be old: there is no Lease {NAMESPACE}/{LEASE}, so no "
            "controller is known to keep it. So the cluster itself was read",
            id="is not there",
        ),
    ],
)
def test_a_lease_that_tells_nothing(server: Server, report: JSON, refused: bool, err: str) -> None:
    """An unknown age is not current, and is reported; without a current report the cluster is read directly."""
    absent = NotFound(Status(message="not found", code=404), calls.list_raw(LEASES).request)
    client: Any = Scripted(server.client, {"leases": as_nobody(server) if refused else absent})
    found = status_live.read(client, lambda: datetime(2023, 11, 3, 17, 27, tzinfo=UTC))
    assert found.notes[0].startswith(err)
    current, available = current_of(json.dumps(found.obj))
    assert (current["status"], available["status"]) == (("Unknown", "True") if refused else ("True", "True"))


def test_watching_a_controller_go_and_come_back(server: Server, report: JSON) -> None:
    """A line when its report is old, one when it is current again, none in between."""
    client = server.client
    keep(client, "2023-11-03T15:26:30Z")

    def finish() -> None:
        keep(client, "2023-11-03T15:28:40Z")
        stored = client.send(calls.get_raw(STATUSES, "cluster"))
        stored["status"]["controlPlane"]["conditions"][0].update(status="False", reason="X")
        stored["status"]["workerPools"] = []
        client.send(calls.replace(STATUSES, stored, subresource="status"))

    stream = io.StringIO()
    clock: Clock = Steps([lambda: None] * 9 + [finish])
    status_watch.show_until_over(client, "none", clock, stream)
    lines = [line for line in stream.getvalue().splitlines() if "report" in line or "not updating" in line]
    assert lines == [
        "15:28:48Z Warning: the update status controller's report was last confirmed at 2023-11-03T15:26:30Z: its "
        f"Lease {NAMESPACE}/{LEASE} was last renewed at 2023-11-03T15:26:30Z. So the cluster itself was read; see "
        f"whether the controller runs in {NAMESPACE}",
        "15:28:54Z The update status controller's report is current again.",
        "15:28:54Z The cluster is not updating.",
    ]


class Steps(ManualClock):
    """A clock whose every pause changes the cluster; half a minute after the update began, so no report is old."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__(datetime(2023, 11, 3, 15, 28, 34, tzinfo=UTC))
        self._steps = steps

    def pause(self, seconds: float) -> None:
        """Do the next step instead of waiting."""
        super().pause(seconds)
        self._steps.pop(0)()


def test_watching_in_a_pipe(server: Server, report: JSON) -> None:
    """How it stands, one line a change, and the end with the update."""

    def change(edit: Any) -> None:
        stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
        edit(stored["status"])
        server.client.send(calls.replace(STATUSES, stored, subresource="status"))

    def operator(status: JSON) -> None:
        insight = next(i for i in status["controlPlane"]["informers"][0]["insights"] if i["uid"] == "co-machine-config")
        for condition in insight["clusterOperator"]["conditions"]:
            if condition["type"] == "Updating":
                condition.update(status="False", reason="Updated")

    def finish(status: JSON) -> None:
        status["controlPlane"]["conditions"][0].update(status="False", reason="ClusterVersionNotProgressing")
        status["workerPools"] = []

    clock: Clock = Steps([lambda: None, lambda: change(operator), lambda: change(finish)])
    stream = io.StringIO()
    status_watch.show_until_over(server.client, "none", clock, stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == (
        "15:28:34Z Update to 4.14.1 (from 4.14.0-rc.3): control plane 32 of 33 operators updated, "
        "pool master 0 of 3 nodes, pool worker 0 of 3 nodes"
    )
    assert lines[1].startswith("15:28:34Z Error: Cluster Operator kube-apiserver is degraded")
    assert lines[7:] == [
        "15:28:38Z Cluster Operator machine-config is updated (33 of 33)",
        "15:28:38Z Control plane is updated to 4.14.1",
        "15:28:40Z The cluster is not updating.",
    ]


def test_watching_outlives_a_server_that_is_away(server: Server) -> None:
    """For two minutes; then it is an error, as anywhere."""
    from kubekit.kube.api_errors import Unreachable

    away = Unreachable("https://x", "x:1", "connection refused", refused=True)
    client: Any = Scripted(server.client, {"updatestatuses": away})
    clock, stream = ManualClock(), io.StringIO()
    began = clock.monotonic()
    with pytest.raises(InputError, match="has not answered for 120 s: could not reach https://x: connection refused"):
        status_watch.show_until_over(client, "none", clock, stream)
    # At two minutes it is asked once more.
    assert clock.monotonic() - began == 122
    assert stream.getvalue() == (
        "The API server does not answer: could not reach https://x: connection refused. It is asked again, for 120 s "
        "at most; the update continues.\n"
    )


def test_watching_takes_trouble_with_one_kind_for_trouble(server: Server) -> None:
    """An unreachable server could look like the end; it is queried again, and reported once."""
    call = calls.list_raw(resource_of(Node)).request
    broken = ServerError(Status(message="etcdserver: request timed out", code=500), call)
    client: Any = Scripted(server.client, {"nodes": broken})
    stream = io.StringIO()
    with pytest.raises(InputError, match="has not answered for 120 s: etcdserver: request timed out"):
        status_watch.show_until_over(client, "none", ManualClock(), stream)
    assert stream.getvalue().startswith("The API server does not answer: etcdserver: request timed out. ")
    assert len(stream.getvalue().splitlines()) == 1


def test_whoever_ends_the_watching_is_told_what_goes_on(
    server: Server, report: JSON, capfd: pytest.CaptureFixture[str]
) -> None:
    """And the interrupt continues to anybody who ends the program."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        status_watch.show_until_over(server.client, "none", Steps([interrupt]), io.StringIO())
    assert capfd.readouterr().err == (
        "\nNo longer watching; an update continues without it. Follow it again with `runup upgrade status --watch`.\n"
    )


def test_what_a_line_says_of_the_time(server: Server, report: JSON) -> None:
    """Shows the last successful look; before the first one there is nothing to show."""
    from kubekit.kube.api_errors import Unreachable

    away: dict[str, KubeError] = {"updatestatuses": Unreachable("https://x", "x:1", "connection refused", refused=True)}
    refused = {**away}
    client: Any = Scripted(server.client, refused)

    def finish() -> None:
        refused.clear()
        stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
        stored["status"]["controlPlane"]["conditions"][0].update(status="False", reason="X")
        stored["status"]["workerPools"] = []
        server.client.send(calls.replace(STATUSES, stored, subresource="status"))

    stream = io.StringIO()
    clock: Clock = Steps([refused.clear, lambda: refused.update(away), finish])
    status_watch.show_until_over(client, "none", clock, stream)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("The API server does not answer: ")
    assert lines[1] == "15:28:36Z The API server answers again."
    assert lines[2].startswith("15:28:36Z Update to 4.14.1 ")
    assert [line.partition(":")[0] for line in lines[-3:]] == ["15", "15", "15"]
    assert lines[-3].startswith("15:28:36Z The API server does not answer: ")
    assert lines[-2] == "15:28:40Z The API server answers again."
    assert lines[-1] == "15:28:40Z The cluster is not updating."


@pytest.mark.parametrize(("seconds", "outdated"), [(59, False), (60, True)], ids=["less than a minute", "a minute"])
def test_when_a_report_is_old(server: Server, report: JSON, seconds: int, outdated: bool) -> None:
    """A controller that is restarted is a few seconds behind."""
    report["status"]["controlPlane"]["conditions"][0].update(status="False", reason="X")
    progressing = datetime(2023, 11, 3, 15, 28, 4, tzinfo=UTC)
    assert (
        status_live.is_outdated(server.client, read_report(report), progressing + timedelta(seconds=seconds))
        is outdated
    )


@pytest.mark.parametrize(
    ("progressing_since_s", "started_since_s", "outdated"),
    [
        pytest.param(3600, 59, False, id="another target, less than a minute ago"),
        pytest.param(3600, 60, True, id="another target, a minute ago"),
        pytest.param(59, 3600, False, id="Progressing changed less than a minute ago"),
        pytest.param(60, 3600, True, id="Progressing changed a minute ago"),
    ],
)
def test_a_report_is_old_a_minute_after_the_last_change(
    server: Server, report: JSON, progressing_since_s: int, started_since_s: int, outdated: bool
) -> None:
    """During an update another target is a new entry of the history, while Progressing stays as it is."""
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def ago(seconds: int) -> str:
        return f"{now - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"

    class Changed(Scripted):
        def send(self, call: Any) -> Any:
            answer = super().send(call)
            if "/clusterversions/" in call.request.path:
                progressing = next(row for row in answer["status"]["conditions"] if row["type"] == "Progressing")
                progressing["lastTransitionTime"] = ago(progressing_since_s)
                history = answer["status"]["history"]
                history.insert(0, {**history[0], "startedTime": ago(started_since_s)})
            return answer

    client: Any = Changed(server.client, {})
    assert status_live.is_outdated(client, read_report(report), now) is outdated


def test_a_report_of_another_update_is_old(server: Server, report: JSON) -> None:
    """Another beginning is another update; the same one hours later is the same."""
    late = datetime(2026, 1, 1, tzinfo=UTC)
    assert not status_live.is_outdated(server.client, read_report(report), late)
    for informer in report["status"]["controlPlane"]["informers"]:
        for insight in informer["insights"]:
            if insight["type"] == "ClusterVersion":
                insight["clusterVersion"]["startedAt"] = "2023-11-03T15:00:00Z"
    assert status_live.is_outdated(server.client, read_report(report), late)
    assert not status_live.is_outdated(server.client, read_report({"status": {}}), late)


def test_who_may_not_read_the_cluster_version_believes_the_report(server: Server, report: JSON) -> None:
    """There is nothing to compare it with."""
    report["status"]["controlPlane"]["conditions"][0].update(status="False", reason="X")
    client: Any = Scripted(server.client, {"clusterversions": as_nobody(server)})
    assert not status_live.is_outdated(client, read_report(report), datetime(2026, 1, 1, tzinfo=UTC))


def test_a_cluster_version_that_cannot_be_read_is_named(server: Server, report: JSON) -> None:
    """Next to a report, too: whether that is about the cluster as it is would not be known."""

    class Odd(Scripted):
        def send(self, call: Any) -> Any:
            return {"status": {"history": 7}} if "/clusterversions/" in call.request.path else super().send(call)

    client: Any = Odd(server.client, {})
    with pytest.raises(codec.DecodeError, match=r"^ClusterVersion version cannot be read: .*history"):
        status_live.read(client, lambda: datetime(2023, 11, 3, 17, 26, 54, tzinfo=UTC))


ALERTS_NOTE = "Unable to fetch alerts, ignoring alerts in 'Update Health':  {}\n"


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        pytest.param({"status": "False", "message": "no route"}, ALERTS_NOTE.format("no route"), id="not reached"),
        pytest.param({"status": "Unknown", "message": "asking"}, ALERTS_NOTE.format("asking"), id="not known"),
        pytest.param({"status": "True", "message": "m"}, "", id="reached"),
        pytest.param({"status": "Unknown", "reason": "NotAsked", "message": "m"}, "", id="not asked for"),
        pytest.param(None, "", id="nothing is said"),
    ],
)
def test_alerts_that_the_controller_could_not_have(
    server: Server, run: Run, report: JSON, condition: JSON | None, note: str
) -> None:
    """The text is the command's own."""
    stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
    others = [each for each in stored["status"]["conditions"] if each["type"] != "AlertsReachable"]
    seen = {"type": "AlertsReachable", "reason": "R", "lastTransitionTime": "2023-11-03T17:26:54Z", **(condition or {})}
    stored["status"]["conditions"] = [*others, seen] if condition else others
    server.client.send(calls.replace(STATUSES, stored, subresource="status"))
    ran = run("upgrade", "status", "--kubeconfig", server.kubeconfig, "--mock-now", NOW)
    assert (ran.code, ran.out, ran.err) == (0, expected(), note)


@pytest.mark.parametrize("no_color", ["", "1"], ids=["in colour", "without"])
def test_watching_on_a_terminal(server: Server, report: JSON, no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole report in place, not lines; in colour where that is wanted."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def finish() -> None:
        stored = server.client.send(calls.get_raw(STATUSES, "cluster"))
        stored["status"]["controlPlane"]["conditions"][0].update(status="False", reason="X")
        stored["status"]["workerPools"] = []
        server.client.send(calls.replace(STATUSES, stored, subresource="status"))

    stream = Terminal()
    status_watch.show_until_over(server.client, "none", Steps([finish]), stream)
    shown = stream.getvalue()
    assert "= Control Plane =" in shown
    assert "Completion:      97% (32 operators updated, 1 updating, 0 waiting)" in shown
    assert "The cluster is not updating." in shown
    assert bool(re.search("\\x1b\\[[0-9;]*3[0-7]m", shown)) is not bool(no_color)


def test_a_deployment_that_may_not_be_read_is_told(server: Server) -> None:
    """The error quotes the server; a missing object is not an error."""
    forbidden = as_nobody(server)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    client: Any = Scripted(server.client, {"deployments": forbidden})
    assert read_cluster.observe(client, now, (Forbidden, NotFound)).machine_config_operator == Unreadable(
        str(forbidden)
    )
    assert read_cluster.observe(server.client, now, (Forbidden, NotFound)).machine_config_operator is None


def test_operators_that_may_not_be_read_are_not_none(server: Server, report: JSON) -> None:
    """A cluster without ClusterOperators is not OpenShift, and an error; if they are refused, all else is shown."""
    now = datetime(2023, 11, 3, 17, 27, tzinfo=UTC)
    snapshot = read_cluster.observe(server.client, now, (Forbidden, NotFound))
    lacking = replace(snapshot, cluster_operators=Unreadable("may not be listed"))
    seen = compute_status.complete_status(lacking, int(now.timestamp()) * 10**9)["status"]
    assert "may not be listed" in json.dumps(seen)
    with pytest.raises(InputError, match="no cluster operator information available"):
        compute_status.complete_status(replace(snapshot, cluster_operators=()), 0)


def test_only_pods_of_nodes_that_are_drained_are_read(server: Server) -> None:
    """Of each of them, and their budgets; what waits for a node is read as ever."""
    client = server.client
    nodes = [node.metadata.name for node in client.list_all(Node)[0]][:3]
    namespace, pods = resource_of(Namespace), resource_of(Pod)
    client.send(calls.create(namespace, {"metadata": {"name": "shop"}}))
    client.send(calls.create(resource_of(ServiceAccount), {"metadata": {"name": "default", "namespace": "shop"}}))

    def drain(node: str, action: str | None) -> None:
        annotations = {"machineconfiguration.openshift.io/desiredDrain": action}
        client.send(calls.merge_patch(resource_of(Node), node, {"metadata": {"annotations": annotations}}))

    budget = {"metadata": {"name": "all", "namespace": "shop"}, "spec": {"maxUnavailable": 0}}
    client.send(calls.create(resource_of(PodDisruptionBudget), budget))
    before = {n: client.send(calls.get_raw(resource_of(Node), n))["metadata"].get("annotations", {}) for n in nodes}
    try:
        for node in nodes:
            spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}
            body = {"metadata": {"name": f"on-{node}".replace(".", "-"), "namespace": "shop"}, "spec": spec}
            made = client.send(calls.create(pods, body))
            client.send(calls.replace(pods, {**made, "status": {"phase": "Running"}}, subresource="status"))
        for node in nodes[:2]:
            drain(node, "drain-rendered-x")
        found = read_cluster.observe(client, datetime(2026, 1, 1, tzinfo=UTC), (Forbidden, NotFound))
    finally:
        for node, annotations in before.items():
            drain(node, annotations.get("machineconfiguration.openshift.io/desiredDrain"))
        client.send(calls.delete(namespace, "shop"))
    assert [pod.spec.node_name for pod in found.draining_pods] == nodes[:2]
    assert [each.metadata.name for each in found.pod_disruption_budgets] == ["all"]
    assert found.pending_pods == ()


def test_a_cluster_without_drains_is_not_asked_for_budgets(server: Server) -> None:
    """A large cluster has thousands of pods; only those of nodes that are being drained are read."""
    found = read_cluster.observe(server.client, datetime(2026, 1, 1, tzinfo=UTC), (Forbidden, NotFound))
    assert (found.draining_pods, found.pod_disruption_budgets, found.pending_pods) == ((), (), ())
