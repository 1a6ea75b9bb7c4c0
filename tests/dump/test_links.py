"""Links in the folder of a dump are followed inside it only: they could lead to files that only the reader may read."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kubekit.error_types import InputError
from runup.checks.control import check_files
from runup.dump import clusterversion_files, load
from runup.dump.dump_files import BadDump
from runup.facts.manifest_texts import read_manifests

ENVIRON = "/proc/self/environ"
VERSION = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
    "status": {"desired": {"version": "5.0.0"}},
}
NODES = {"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-0"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dump whose nodes must come by a link, and a file and a folder that are not in it."""
    dump, outside = tmp_path / "dump", tmp_path / "outside"
    dump.mkdir()
    outside.mkdir()
    (dump / "version.json").write_text(json.dumps(VERSION))
    (outside / "nodes.json").write_text(json.dumps(NODES | {"items": [NODE]}))
    return dump


def linked(link: Path, target: str | Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def moved_inside(dump: Path) -> Path:
    """The nodes in a file of the dump without a suffix, which is read through links alone."""
    return (dump.parent / "outside" / "nodes.json").rename(dump / "list")


# What is linked, and whether the dump has the node then.
LINKS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "a file outside": (lambda dump: linked(dump / "nodes.json", dump.parent / "outside" / "nodes.json"), False),
    "a relative way outside": (lambda dump: linked(dump / "nodes.json", "../outside/nodes.json"), False),
    "out and in by another name": (
        lambda dump: (
            linked(dump.parent / "outside" / "way", moved_inside(dump)),
            linked(dump / "nodes.json", "../outside/way"),
        )[0],
        True,
    ),
    "the process's environment": (lambda dump: linked(dump / "nodes.yaml", ENVIRON), False),
    "a link to a link outside": (
        lambda dump: (linked(dump / "a", "../outside/nodes.json"), linked(dump / "nodes.json", "a"))[0],
        False,
    ),
    "a file inside": (lambda dump: linked(dump / "nodes.json", moved_inside(dump).name), True),
    "a file inside by its absolute path": (lambda dump: linked(dump / "nodes.json", moved_inside(dump)), True),
    "a loop": (lambda dump: linked(dump / "nodes.json", "nodes.json"), False),
    "nothing": (lambda dump: linked(dump / "nodes.json", "gone.json"), False),
    "a folder outside": (lambda dump: linked(dump / "below", "../outside"), False),
    "a folder of a tree outside": (
        lambda dump: linked(dump / "cluster-scoped-resources" / "core", dump.parent / "outside"),
        False,
    ),
}


@pytest.mark.parametrize(("link", "followed"), LINKS.values(), ids=LINKS)
def test_a_link_in_a_folder(link: Callable[[Path], None], followed: bool, folder: Path) -> None:
    """A link's target counts only inside the dump; otherwise the nodes are unknown, and the file is named."""
    link(folder)
    dump = load.read(folder)
    assert bool(dump.one("", "Node", "worker-0")) == followed
    assert followed or not dump.collected.covers(("", "nodes"))
    assert [os.environ["PATH"] in problem for problem in dump.problems] == [False] * len(dump.problems)


def test_names_a_link_that_leads_out(folder: Path) -> None:
    """One sentence with the link and the folder."""
    linked(folder / "nodes.yaml", ENVIRON)
    (problem,) = load.read(folder).problems
    assert str(folder / "nodes.yaml") in problem
    assert "a link that leads out of" in problem


def test_the_dump_itself_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    """The user names it."""
    (folder / "nodes.json").write_text(json.dumps(NODES | {"items": [NODE]}))
    linked(tmp_path / "latest", folder)
    assert load.read(tmp_path / "latest").one("", "Node", "worker-0")
    linked(tmp_path / "version.json", folder / "version.json")
    assert load.read(tmp_path / "version.json").has_cluster_version


@pytest.mark.parametrize("name", ["runup-dump.json", "timestamp", "version"])
def test_a_record_of_the_dump_itself_is_not_read_through_a_link(name: str, folder: Path, tmp_path: Path) -> None:
    """Its time and what it proves are then as without it."""
    record = {"collectedTime": "2026-01-10T12:00:00Z", "kinds": []}
    (tmp_path / "outside" / name).write_text(json.dumps(record))
    linked(folder / name, tmp_path / "outside" / name)
    assert load.read(folder).now is None


def test_a_case_of_several_files_has_no_links_out(tmp_path: Path) -> None:
    """Also where the user names the case and not its folder."""
    (tmp_path / "cases").mkdir()
    linked(tmp_path / "cases" / "a-cv.yaml", ENVIRON)
    with pytest.raises(BadDump, match="has no ClusterVersion"):
        load.read(tmp_path / "cases" / "a")


def test_the_reader_of_the_cluster_version_alone(folder: Path, tmp_path: Path) -> None:
    """`upgrade recommend --dump` reads no file through a link out of the dump."""
    (folder / "version.json").rename(tmp_path / "outside" / "version.json")
    linked(folder / "version.json", tmp_path / "outside" / "version.json")
    with pytest.raises(InputError, match="has no ClusterVersion"):
        clusterversion_files.dump(str(folder))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE], ids=["symbolic", "hard"])
def test_links_of_an_archive_are_not_unpacked(kind: bytes, folder: Path, tmp_path: Path) -> None:
    """Neither symbolic nor hard ones, wherever they lead."""
    packed = tmp_path / "dump.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(folder / "version.json", arcname="version.json")
        for name, target in (("nodes.json", tmp_path / "outside" / "nodes.json"), ("other.yaml", ENVIRON)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, str(target)
            archive.addfile(entry)
    dump = load.read(packed)
    assert (dump.one("", "Node", "worker-0"), dump.problems) == (None, ())


def test_manifests_and_checks_of_a_folder(tmp_path: Path) -> None:
    """Folders of `--manifests` and `--checks` may be those of somebody else's change."""
    linked(tmp_path / "changed" / "a.yaml", ENVIRON)
    manifests = read_manifests([str(tmp_path / "changed")])
    assert (manifests.objects, [os.environ["PATH"] in problem for problem in manifests.problems]) == ((), [False])
    (file,) = check_files.read([str(tmp_path / "changed")])
    assert ["a link that leads out of" in error for error in file.errors] == [True]
