"""`runup fleet rehearse` as it is typed: which clusters a release breaks, and how one cluster costs itself alone."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.cli.commands import Run, Server
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, STATUS

ROOT = Path(__file__).parents[3]
RELEASE = ("--release-dir", "release")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a release and the dumps of two clusters, in which everything is typed."""
    example = ROOT / "examples" / "rehearsal"
    shutil.copytree(example / "release", tmp_path / "release")
    shutil.copytree(example / "cluster", tmp_path / "dumps" / "lighthouse")
    shutil.copytree(ROOT / "examples" / "plain-kubernetes", tmp_path / "dumps" / "orchard")
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path


def test_a_cluster_costs_itself_alone(run: Run, folder: Path) -> None:
    """A cluster that no release updates is not evaluated; the other has its findings, and no copy is left."""
    ran = run("fleet", "rehearse", "--dumps", "dumps", *RELEASE, "-o", "json")
    data = json.loads(ran.out)
    assert (ran.code, data["exitCode"]) == (1, 1)
    (failed,) = data["notJudged"]
    assert failed["cluster"] == "orchard"
    assert "has no ClusterVersion, so no release updates it" in failed["why"]
    refused = {each["name"]: each["applies"] for each in data["risks"] if each["severity"] == "critical"}
    assert refused == {
        "RehearsalImmutableField-Deployment-openshift-example-web": ["lighthouse"],
        "RehearsalRefusedByPolicy-owned": ["lighthouse"],
    }
    assert list((folder / "scratch").iterdir()) == []


def test_what_is_known_already(run: Run, folder: Path) -> None:
    """With an earlier result as the baseline only what is new counts."""
    shutil.rmtree(folder / "dumps" / "orchard")
    first = run("fleet", "rehearse", "--dumps", "dumps", *RELEASE, "-o", "json=first.json")
    again = run("fleet", "rehearse", "--dumps", "dumps", *RELEASE, "--baseline", "first.json")
    assert (first.code, again.code) == (2, 0), again.out


def test_a_live_cluster(run: Run, server: Server) -> None:
    """A live cluster is read by its context, and has separate findings."""
    server.set_cluster_version(spec=CLUSTER_VERSION["spec"], status=STATUS)
    ran = run("fleet", "rehearse", "--contexts", "all", "--kubeconfig", server.kubeconfig, *RELEASE, "-o", "json")
    assert ran.code in (2, 3), ran.err
    (one,) = json.loads(ran.out)["clusters"]
    assert one["risks"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param((), "--to-image or --release-dir", id="no release"),
        pytest.param((*RELEASE, "--to-image", "oci:x"), "--to-image or --release-dir", id="two releases"),
        pytest.param(("--release-dir", "nowhere"), "--release-dir nowhere: there is no such folder", id="no folder"),
        pytest.param((*RELEASE, "--to", "5.2.0"), "the release is 5.1.0", id="another version"),
        pytest.param((*RELEASE, "--operators", "stuck:x"), "has no ClusterOperator x", id="unknown operator"),
    ],
)
def test_errors_name_the_way_out(words: tuple[str, ...], shown: str, run: Run) -> None:
    """A release that cannot be rehearsed is refused once, before any cluster is read."""
    ran = run("fleet", "rehearse", "--dumps", "dumps", *words)
    assert (ran.code, shown in ran.err) == (1, True), ran.err
