"""Scenario folders: what is read, what is merged, what is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario.folder import ScenarioError

RELEASES = "title: t\ncluster: {version: 5.0.0}\nreleases: [{version: 5.0.0}, {version: 5.1.0}]\n"


def folder(where: Path, text: str) -> Path:
    """A scenario's folder."""
    (where / "cluster").mkdir(parents=True)
    (where / "scenario.yaml").write_text(text)
    return where


@pytest.mark.parametrize("name", scenario.names())
def test_bundled_scenarios_can_be_read(name: str) -> None:
    """Each has a title, and runs one of its releases, or rolls out a version of Kubernetes."""
    found = scenario.load(scenario.find(name))
    assert found.title
    if found.rollout is None:
        assert found.release(found.cluster.version).version == found.cluster.version


def test_the_default_comes_first() -> None:
    """And `common` is none."""
    assert scenario.names()[0] == scenario.DEFAULT
    assert "common" not in scenario.names()


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    """The error is the way out."""
    with pytest.raises(ScenarioError) as refused:
        scenario.find("typo")
    assert all(name in refused.value.message for name in scenario.names())


@pytest.mark.parametrize("name", ["./mine", "mine", "{}/mine", "mine/../mine"])
def test_finds_a_scenario_by_a_path_from_another_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox's process has another working directory than the command that starts it."""
    shutil.copytree(scenario.BUNDLED / "clean", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    given = scenario.absolute(name.format(tmp_path))
    monkeypatch.chdir("/")
    assert scenario.find(given).resolve() == tmp_path / "mine"


@pytest.mark.parametrize("name", ["clean", "typo", "./typo", ""])
def test_keeps_a_name_that_is_no_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundled scenario wins over a folder of the same name; an unknown name stays as it was typed."""
    shutil.copytree(scenario.BUNDLED / "clean", tmp_path / "clean")
    monkeypatch.chdir(tmp_path)
    assert scenario.absolute(name) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(RELEASES + "colour: red\n", "colour", id="a key that nobody knows"),
        pytest.param(
            RELEASES + "graph: {edges: [[5.0.0, 5.9.0]]}\n",
            "names 5.9.0, which is not one of the scenario's releases",
            id="an edge",
        ),
        pytest.param(RELEASES.replace("5.1.0", "5.0.0"), "5.0.0 is listed twice", id="a release twice"),
        pytest.param(RELEASES.replace("5.1.0", "five"), "'five' is not a semantic version", id="no version"),
        pytest.param(RELEASES.replace("{version: 5.0.0}\n", "{version: 4.1.0}\n"), "runs 4.1.0", id="no such release"),
        pytest.param(
            RELEASES + "rollout: {by: kubeadm, to: v1.34.0}\n", "(rollout) has no releases", id="a rollout of releases"
        ),
        pytest.param(RELEASES + "base: nowhere\n", "no base folder 'nowhere'", id="no base"),
        pytest.param("title: [", "scenario.yaml", id="no YAML"),
    ],
)
def test_bad_scenarios_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and the fault."""
    with pytest.raises(ScenarioError) as refused:
        scenario.load(folder(tmp_path / "s", text))
    assert message in refused.value.message
    assert "scenario.yaml" in refused.value.message


def test_objects_are_merged_over_those_of_the_base(tmp_path: Path) -> None:
    """The scenario wins, null removes a member, `$delete` an object; values are filled in."""
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
    base = folder(tmp_path / "base", RELEASES)
    (base / "cluster" / "a.yaml").write_text(head % "a" + "data: {x: '1', y: '2'}\n---\n" + head % "b")
    top = folder(tmp_path / "top", RELEASES + "base: base\nvalues: {colour: red}\n")
    (top / "cluster" / "a.yaml").write_text(
        head % "a" + "data: {x: '${colour}', y: null}\n---\n" + head % "b" + "$delete: true\n"
    )
    (only,) = scenario.load(top).objects
    assert only["data"] == {"x": "red"}
