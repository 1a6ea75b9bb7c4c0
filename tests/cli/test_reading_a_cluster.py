"""What commands read of a cluster and how they change it: versions, its name, records, a change that others cross."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.answering import answering
from tests.cli.commands import Run, Server, cluster

import runup
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion, Infrastructure
from runup.preflight.control import cluster_records
from runup.preflight.decide.stored_reports import NAME
from runup.process import clusterversion_client as clusters
from runup.process.connection import Connection
from runup.process.names import operator_namespace

VERSION = calls.path_of(resource_of(ClusterVersion), "", "version")
CLUSTER = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
KNOWN = {**CLUSTER, "spec": {"clusterID": "c0ffee"}, "status": {"desired": {"version": "5.0.0"}}}
INFRASTRUCTURE = calls.path_of(resource_of(Infrastructure), "", "cluster")


@pytest.mark.parametrize(
    ("answers", "cluster", "kubernetes"),
    [
        pytest.param({"/version": {"gitVersion": "v1.34.2"}, VERSION: KNOWN}, "5.0.0", "v1.34.2", id="both"),
        pytest.param(
            {"/version": {"gitVersion": "v1.34.2"}},
            "none (this cluster has no ClusterVersion)",
            "v1.34.2",
            id="of others",
        ),
        pytest.param({"/version": {}, VERSION: KNOWN}, "5.0.0", "", id="a server that does not tell its own"),
    ],
)
def test_versions_of_a_cluster(
    answers: dict[str, Any], cluster: str, kubernetes: str, run: Run, tmp_path: Path
) -> None:
    """Three lines, or three fields."""
    with answering(tmp_path, answers) as kubeconfig:
        ran = run("version", "--server", "--kubeconfig", kubeconfig)
        shown = run("version", "--server", "-o", "json", "--kubeconfig", kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"Client Version: {runup.__version__}\nCluster Version: {cluster}\nKubernetes Version: {kubernetes}\n"
    )
    assert json.loads(shown.out) == {
        "clientVersion": runup.__version__,
        "clusterVersion": cluster,
        "kubernetesVersion": kubernetes,
    }


def test_the_own_version_alone(run: Run) -> None:
    """Nobody is asked."""
    assert run("version").out == f"Client Version: {runup.__version__}\n"
    assert run("version", "-o", "yaml").out == f"clientVersion: {runup.__version__}\n"


def test_versions_of_a_cluster_that_may_not_be_read(run: Run, tmp_path: Path) -> None:
    """Forbidden is not none."""
    with answering(tmp_path, {"/version": {"gitVersion": "v1"}, VERSION: 403}) as kubeconfig:
        ran = run("version", "--server", "--kubeconfig", kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert "does not allow access" in ran.err


NAMED = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"infrastructureName": "prod-x7k2p", "apiServerURL": "https://api.prod.example:6443"},
}


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        pytest.param(
            {INFRASTRUCTURE: NAMED, VERSION: KNOWN}, "prod-x7k2p (api.prod.example)", id="its infrastructure's"
        ),
        pytest.param({VERSION: KNOWN}, "c0ffee", id="its ID"),
        pytest.param({INFRASTRUCTURE: 403, VERSION: KNOWN}, "c0ffee", id="its infrastructure may not be read"),
        pytest.param({INFRASTRUCTURE: {"status": 7}, VERSION: KNOWN}, "c0ffee", id="it is not what it should be"),
        pytest.param({INFRASTRUCTURE: 403, VERSION: 403}, "a cluster without a name", id="nothing may be read"),
        pytest.param({VERSION: {"spec": 7}}, "a cluster without a name", id="its ClusterVersion is none"),
    ],
)
def test_the_name_of_a_cluster(answers: dict[str, Any], name: str, tmp_path: Path) -> None:
    """An unreadable entry names nothing and is not an error; the page's reader sees the text."""
    with answering(tmp_path, answers) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert clusters.name_of(client) == name


def test_a_cluster_that_was_read_is_not_read_again(tmp_path: Path) -> None:
    """It has its ID."""
    with answering(tmp_path, {}) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert clusters.name_of(client, cluster({"spec": {"clusterID": "beef"}})) == "beef"


def test_no_cluster_version(tmp_path: Path) -> None:
    """The words of oc, which differ a little from command to command; what is there is there as it was sent."""
    words = "cluster version information available - you must be connected to an OpenShift"
    with answering(tmp_path, {}) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        asked: list[tuple[Callable[[], object], str]] = [
            (lambda: clusters.read(client), f"No {words} version 4 server"),
            (lambda: clusters.read(client, no="no", server=""), f"no {words} server"),
            (lambda: clusters.read_raw(client), f"No {words} version 4 server"),
            (lambda: clusters.read_raw(client, no="no"), f"no {words} version 4 server"),
        ]
        for read, start in asked:
            with pytest.raises(InputError) as caught:
                read()
            assert caught.value.message == f"{start} to fetch the current version"
    with answering(tmp_path, {VERSION: KNOWN}) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert clusters.read_raw(client) == KNOWN
        assert clusters.read(client).spec.cluster_id == "c0ffee"


def record(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap of the operator."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize("answer", [404, 403])
def test_records_that_are_not_there_add_nothing(answer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor those that may not be read."""
    monkeypatch.setenv("CVO_NAMESPACE", "ns")
    maps = resource_of(ConfigMap)
    answers = {calls.path_of(maps, "ns", name): answer for name in (NAME, clusters.ACCEPTED)}
    with answering(tmp_path, answers) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert cluster_records.read_history(client, "ns").reports == ()
        assert clusters.read_record(client, clusters.ACCEPTED) is None


def test_what_is_accepted_is_read_with_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the namespace of the operator; a cluster that accepts nothing is asked for none."""
    monkeypatch.setenv("CVO_NAMESPACE", "ns")
    kept = record(clusters.ACCEPTED, A='{"name": "A", "reason": "why"}')
    accepting = cluster({"spec": {"clusterID": "x", "desiredUpdate": {"acceptRisks": [{"name": "A"}, {"name": "B"}]}}})
    answers = {calls.path_of(resource_of(ConfigMap), "ns", clusters.ACCEPTED): kept}
    with answering(tmp_path, answers) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert clusters.read_record(client, clusters.ACCEPTED) == kept
        accepted = cluster_records.read_accepted(client, accepting)
        assert {name: each.reason for name, each in accepted.items()} == {"A": "why", "B": ""}
    with answering(tmp_path, {}) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        assert set(cluster_records.read_accepted(client, accepting)) == {"A", "B"}
    with SyncClient(config.load(str(kubeconfig))) as client:  # whose server has ended
        assert cluster_records.read_accepted(client, cluster({"spec": {"clusterID": "x"}})) == {}


@pytest.mark.parametrize(("shown", "namespace"), [("", "openshift-cluster-version-operator"), ("ns", "ns")])
def test_the_operators_namespace(shown: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable moves nothing."""
    monkeypatch.setenv("CVO_NAMESPACE", shown)
    assert operator_namespace() == namespace


@pytest.fixture
def client(server: Server) -> Iterator[SyncClient]:
    """A command's own, of a cluster with a channel."""
    server.set_cluster_version(spec={"channel": "stable-5.0"})
    with SyncClient(config.load(str(server.kubeconfig))) as client:
        yield client


def crossed(server: Server, times: int) -> Callable[[], None]:
    """Somebody else who writes so many times."""
    left = iter(range(times))

    def write() -> None:
        place = next(left, None)
        if place is not None:
            server.patch_spec(channel=f"crossed-{place}")

    return write


@pytest.mark.parametrize("times", [0, 1, 7])
def test_a_change_that_is_crossed_is_decided_anew(times: int, server: Server, client: SyncClient) -> None:
    """On what the other one wrote; eight attempts are made."""
    cross, seen = crossed(server, times), []

    def decide(found: ClusterVersion) -> dict[str, Any]:
        seen.append(found.spec.channel)
        cross()
        return {"spec": {"channel": f"{found.spec.channel}-and-mine"}}

    before, after = clusters.change(
        client, clusters.read(client), decide, send=lambda body: clusters.patch(client, body)
    )
    assert after is not None
    assert seen == ["stable-5.0", *(f"crossed-{place}" for place in range(times))]
    assert (before.spec.channel, after.spec.channel) == (seen[-1], f"{seen[-1]}-and-mine")
    assert server.cluster_version()["spec"]["channel"] == f"{seen[-1]}-and-mine"


def test_a_change_that_is_always_crossed_fails(server: Server, client: SyncClient) -> None:
    """After the eighth attempt; what the others wrote stands."""
    cross = crossed(server, 9)
    attempts: list[str] = []

    def decide(found: ClusterVersion) -> dict[str, Any]:
        attempts.append(found.spec.channel)
        cross()
        return {"spec": {"channel": "mine"}}

    with pytest.raises(Conflict):
        clusters.change(client, clusters.read(client), decide, send=lambda body: clusters.patch(client, body))
    assert len(attempts) == 8
    assert server.cluster_version()["spec"]["channel"] == "crossed-7"


@pytest.mark.parametrize("times", [0, 7])
def test_where_nothing_is_to_be_done_nothing_is_sent(times: int, server: Server, client: SyncClient) -> None:
    """Whether at the first look or at the last."""
    cross = crossed(server, times)

    def decide(found: ClusterVersion) -> dict[str, Any] | None:
        if found.spec.channel == ("stable-5.0" if not times else "crossed-6"):
            return None
        cross()
        return {"spec": {"channel": "mine"}}

    before, after = clusters.change(
        client, clusters.read(client), decide, send=lambda body: clusters.patch(client, body)
    )
    assert after is None
    assert before.spec.channel == server.cluster_version()["spec"]["channel"] != "mine"


def test_a_patch_that_is_only_tried(server: Server, client: SyncClient) -> None:
    """The answer is what would be; unknown fields are an error where they are asked to be."""
    tried = clusters.patch(client, {"spec": {"channel": "other"}}, dry_run=True)
    assert tried.spec.channel == "other"
    assert server.cluster_version()["spec"]["channel"] == "stable-5.0"
    assert clusters.patch(client, {"spec": {"nonsense": "x"}}).spec.channel == "stable-5.0"
    with pytest.raises(KubeError, match="nonsense"):
        clusters.patch(client, {"spec": {"nonsense": "x"}}, strict=True)
    clusters.patch(client, {"spec": {"channel": "other"}})
    managers = [each["manager"] for each in server.cluster_version()["metadata"]["managedFields"]]
    assert "runup" in managers


@pytest.mark.parametrize(
    ("user", "groups", "headers"),
    [
        (None, (), ()),
        ("me", (), (("Impersonate-User", "me"),)),
        ("me", ("a", "b"), (("Impersonate-User", "me"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))),
    ],
    ids=["nobody else", "a user", "a user of groups"],
)
def test_whom_a_command_acts_as(
    user: str | None, groups: tuple[str, ...], headers: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    """The last kubeconfig and context given; groups need a user."""
    with answering(tmp_path, {}) as kubeconfig:
        connection = Connection(str(kubeconfig), "c")
        connection.as_user, connection.as_group = user, groups
        assert connection.config().headers == headers
        connection.as_user, connection.as_group = None, ("a",)
        with pytest.raises(InputError, match="--as-group needs --as: groups are added to a user"):
            connection.config()
