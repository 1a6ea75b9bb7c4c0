"""Dumps: which layouts are recognised, what is read from them, what becomes of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runup.dump import dump_files, load
from runup.dump.dump_files import BadDump
from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario import from_dump

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(
    ("path", "style", "files"),
    [
        pytest.param("inspect", "inspect", 2, id="a tree of oc adm inspect"),
        pytest.param("cases/one", "case", 1, id="one case of several in a folder"),
    ],
)
def test_layouts(path: str, style: str, files: int) -> None:
    """The kind of a dump and its files."""
    found = dump_files.find(SAMPLES / path)
    assert (found.style, len(found.files)) == (style, files)


def test_several_cases_are_listed() -> None:
    """A folder of several dumps is refused with the words that import one."""
    with pytest.raises(BadDump) as refused:
        dump_files.find(SAMPLES / "cases")
    assert str(SAMPLES / "cases" / "one") in refused.value.message
    assert str(SAMPLES / "cases" / "two") in refused.value.message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("nowhere/at-all", "there is no folder", id="nothing there"),
        pytest.param("cases/three", "it holds one, two", id="a case that is not there"),
    ],
)
def test_what_is_not_there(path: str, message: str) -> None:
    """The error names what there is."""
    with pytest.raises(BadDump, match=message):
        dump_files.find(SAMPLES / path)


def test_a_folder_without_yaml_is_refused(tmp_path: Path) -> None:
    """It names the folder."""
    with pytest.raises(BadDump, match="contains no YAML or JSON file"):
        dump_files.find(tmp_path)


def test_a_dump_is_cleaned_of_its_server() -> None:
    """Fields of the old server are removed, owners and times stay; list items have their kinds."""
    dump = load.load(dump_files.find(SAMPLES / "inspect"))
    assert {obj["kind"] for obj in dump.objects} == {"ClusterVersion", "Pod"}
    assert dump.cluster_version["metadata"] == {"name": "version", "ownerReferences": [{"name": "x"}]}


def test_a_broken_file_does_not_end_the_import(tmp_path: Path) -> None:
    """It is a problem with a name."""
    shutil.copytree(SAMPLES / "inspect", tmp_path / "d")
    broken = tmp_path / "d" / "cluster-scoped-resources" / "broken.yaml"
    broken.write_text("a: [")
    dump = load.load(dump_files.find(tmp_path / "d"))
    assert [problem.partition(": ")[0] for problem in dump.problems] == [str(broken)]
    assert dump.cluster_version


def test_a_dump_without_a_cluster_version_is_no_cluster(tmp_path: Path) -> None:
    """The error says what is missing."""
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    with pytest.raises(BadDump, match="has no ClusterVersion 'version'"):
        load.load(dump_files.find(tmp_path))


def test_a_dump_becomes_a_scenario() -> None:
    """At its version, with the next minor release and those that it was offered, newest first."""
    dump = load.load(dump_files.find(SAMPLES / "inspect"))
    made = from_dump.scenario_of(dump, base=scenario.BUNDLED / "common")
    assert [release.version for release in made.releases] == ["4.16.3", "4.17.0", "4.16.9", "4.16.4"]
    cluster = made.cluster
    assert (cluster.channel, cluster.gates, cluster.operator_gates) == (from_dump.CHANNEL, (), from_dump.GATES)
    notes = " ".join(made.notes)
    gates = "the gates ClusterUpdatePreflight, ClusterUpdateAcceptRisks and UpdateStatus"
    assert f"{gates} are open for the sandbox's operator" in notes
    assert "the dump has no ClusterOperator, FeatureGate, " in notes
    assert "PodDisruptionBudget: what depends on them is unknown" in notes
