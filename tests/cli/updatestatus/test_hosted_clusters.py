"""`upgrade status --hosted-clusters`: the dump of a management cluster, with the hosted side of one of its clusters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.commands import Ran, Run
from tests.factories import node_json
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.hosted import hosted_objects as h

Show = Callable[..., Ran]
STATUS = ("upgrade", "status", "--mock-now=2026-03-01T12:00:00Z", "--dump")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """The clusters `prod`, which is being updated, and `test`, which is not."""
    done = h.hosted(state="Completed", started=60)
    test = replace(done, metadata=replace(done.metadata, name="test"))
    objects = [h.hosted(), test, h.pool(h.updating()), *h.MACHINES, h.component("kube-apiserver"), h.WAITS]
    operators = [b.operator("dns", h.NEW), b.operator("network", h.OLD, degraded=b.cond("Degraded", "True", "Why"))]
    for folder, found in ((tmp_path, objects), (tmp_path / "hostedcluster-prod", operators)):
        folder.mkdir(exist_ok=True)
        for number, each in enumerate(found):
            (folder / f"{number}.json").write_text(json.dumps(h.document(each)))
    return tmp_path


@pytest.fixture
def show(run: Run, dump: Path) -> Show:
    """Runs the command about that dump."""
    return lambda *words: run(*STATUS, dump, *words)


def test_reports_every_hosted_cluster(show: Show) -> None:
    """Each has a heading and its own report."""
    result = show("--hosted-clusters")
    assert result.code == 0, result.err
    for line in (
        "Hosted cluster clusters/prod",
        "Assessment:      Progressing",
        "Target Version:  4.19.5 (from 4.18.20)",
        "Completion:      50%",
        "prod-a        Progressing   33% (1/3)    3 Available, 1 Progressing, 1 Draining",
        "Hosted cluster clusters/test",
        "The cluster is not updating.",
    ):
        assert line in result.out.splitlines()


def test_reports_the_operators_of_the_hosted_side(show: Show) -> None:
    """They are in a separate folder, and say on which side they are."""
    result = show("--hosted-cluster=clusters/prod", "-o", "json")
    document = json.loads(result.out)
    assert (document["kind"], document["metadata"]) == (
        "HostedClusterUpdateStatus",
        {"namespace": "clusters", "name": "prod"},
    )
    [informer] = document["status"]["controlPlane"]["informers"]
    operators = [each["clusterOperator"] for each in informer["insights"] if each["type"] == "ClusterOperator"]
    assert {each["name"]: each["resource"]["cluster"] for each in operators} == {"dns": "Hosted", "network": "Hosted"}
    assert "Cluster Operator network is degraded (Why)" in show("--hosted-cluster=prod").out


def test_lists_the_objects_of_all_clusters(show: Show) -> None:
    """A List, as the API returns it."""
    document = json.loads(show("--hosted-clusters", "-o", "json").out)
    assert (document["kind"], [item["metadata"]["name"] for item in document["items"]]) == ("List", ["prod", "test"])


def test_writes_a_page_of_one_cluster(show: Show) -> None:
    """The page names it."""
    result = show("--hosted-cluster=prod", "-o", "html")
    assert result.code == 0, result.err
    for text in ("clusters/prod", "prod-a", "a-2", "4.19.5"):
        assert text in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("--hosted-cluster=nope",),
            "there is no HostedCluster nope; there are: clusters/prod, clusters/test",
            id="an unknown name",
        ),
        pytest.param(("--hosted-clusters", "-o", "html"), "a page is about one cluster", id="a page of all"),
        pytest.param(("--hosted-clusters", "--hosted-cluster=prod"), "give one of them", id="one and all"),
    ],
)
def test_refuses_what_it_cannot_show(show: Show, words: tuple[str, ...], message: str) -> None:
    """One clear error."""
    result = show(*words)
    assert result.code == 1
    assert message in result.err


def test_watches_one_cluster_only(run: Run) -> None:
    """All clusters at once do not fit a screen."""
    result = run("upgrade", "status", "--watch", "--hosted-clusters")
    assert result.code == 1
    assert "--watch follows one cluster: name it with --hosted-cluster" in result.err


def test_refuses_a_dump_without_hosted_clusters(run: Run, tmp_path: Path) -> None:
    """It is not of a management cluster."""
    (tmp_path / "pool.json").write_text(json.dumps(h.document(h.pool())))
    result = run(*STATUS, tmp_path, "--hosted-clusters")
    assert result.code == 1
    assert "only a management cluster of HyperShift has them" in result.err


def test_a_fleet_shows_hosted_clusters_after_their_management_cluster(run: Run, dump: Path, tmp_path: Path) -> None:
    """Each is named after both."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    for name in ("hub", "plain"):
        items = [node_json("worker-1", kubelet="v1.34.2")]
        nodes = {"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": items}
        (folder / name).mkdir()
        (folder / name / "nodes.json").write_text(json.dumps(nodes))
        (folder / name / "version.json").write_text(json.dumps({"serverVersion": {"gitVersion": "v1.34.2"}}))
    for file in dump.glob("*.json"):
        (folder / "hub" / file.name).write_text(file.read_text())
    result = run("fleet", "status", "--dumps", folder, "--hosted-clusters")
    assert result.code == 0, result.err
    rows = {
        line.split()[0]: line.split()[1:3] for line in result.out.splitlines() if "4.19.5" in line or "v1.34" in line
    }
    assert rows == {
        "hub/clusters/prod": ["yes", "4.19.5"],
        "hub/clusters/test": ["no", "4.19.5"],
        "hub": ["no", "v1.34.2"],
        "plain": ["no", "v1.34.2"],
    }
    assert "hub/clusters/prod" not in run("fleet", "status", "--dumps", folder).out
