"""Objects of two clusters have the same names: a folder with several is an error that names them, never a mixture."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from runup.dump import load
from runup.dump.dump_files import BadDump

CV = """apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: WHICH}
status: {desired: {version: 4.16.3}}
"""
ONE, TWO = CV.replace("WHICH", "one"), CV.replace("WHICH", "two")
NAMELESS = CV.replace("spec: {clusterID: WHICH}\n", "")
SYSTEM = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: UID}\n"
TREE = "cluster-scoped-resources/config.openshift.io/clusterversions"

SEVERAL: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "a folder each": (
        {"a/cv.yaml": ONE, "b/cv.yaml": TWO},
        ("d/a: cluster one, at 4.16.3", "d/b: cluster two, at 4.16.3"),
    ),
    "files in one folder": ({"a.yaml": ONE, "b.yaml": TWO}, ("d/a.yaml: cluster one", "d/b.yaml: cluster two")),
    "one file": ({"all.yaml": f"{ONE}---\n{TWO}"}, ("d/all.yaml: cluster one", "d/all.yaml: cluster two")),
    "a tree each": (
        {f"m-1/image/{TREE}/version.yaml": ONE, f"m-2/image/{TREE}/version.yaml": TWO},
        ("d/m-1/image: cluster one", "d/m-2/image: cluster two"),
    ),
    "a hosted cluster's tree within its management cluster's": (
        {f"{TREE}/version.yaml": ONE, f"hosted/{TREE}/version.yaml": TWO},
        (": cluster one", "d/hosted: cluster two"),
    ),
    "a folder each, without ids, at the same version": (
        {"a/cv.yaml": NAMELESS, "b/cv.yaml": NAMELESS},
        ("d/a: a cluster without an id", "d/b: a cluster without an id"),
    ),
    "no ids, but uids": (
        {"a.yaml": NAMELESS.replace("name: version", "name: version, uid: u-1"),
         "b.yaml": NAMELESS.replace("name: version", "name: version, uid: u-2")},
        ("d/a.yaml: uid u-1, at 4.16.3", "d/b.yaml: uid u-2"),
    ),
    "one of them without a ClusterVersion": (
        {"a/cv.yaml": ONE, "a/ns.yaml": SYSTEM.replace("UID", "u-1"), "b/ns.yaml": SYSTEM.replace("UID", "u-2")},
        ("d/a: uid u-1", "d/b: uid u-2"),
    ),
}  # fmt: skip


def written(folder: Path, files: dict[str, str]) -> Path:
    """A dump of these files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(("files", "named"), SEVERAL.values(), ids=list(SEVERAL))
def test_several_clusters_are_an_error(files: dict[str, str], named: tuple[str, ...], tmp_path: Path) -> None:
    """It names each with its place."""
    with pytest.raises(BadDump, match="d holds 2 clusters; give each of them by itself") as refused:
        load.read(written(tmp_path / "d", files))
    for each in named:
        assert each in refused.value.message


def test_several_clusters_in_an_archive(tmp_path: Path) -> None:
    """Their places are those in the archive."""
    folder = written(tmp_path / "made", {"a/cv.yaml": ONE, "b/cv.yaml": TWO})
    with tarfile.open(tmp_path / "fleet.tar.gz", "w:gz") as archive:
        archive.add(folder / "a", arcname="a")
        archive.add(folder / "b", arcname="b")
    with pytest.raises(BadDump, match=r"  fleet/a: cluster one, at 4.16.3\n  fleet/b: cluster two"):
        load.read(tmp_path / "fleet.tar.gz")


def test_several_insights_archives(tmp_path: Path) -> None:
    """Of one cluster or of several: which counts is not for us to say."""
    folder = written(tmp_path / "d", {f"{name}/config/version.json": "{}" for name in ("a", "b")})
    with pytest.raises(BadDump, match="d holds 2 archives of the Insights operator; give one of them:\n  d/a\n  d/b"):
        load.read(folder)


SAME: dict[str, dict[str, str]] = {
    "gathered by two images": {f"m/one/{TREE}/version.yaml": ONE, f"m/two/{TREE}/version.yaml": ONE},
    "listed, and by itself": {
        f"{TREE}/version.yaml": ONE,
        f"{TREE}.yaml": "apiVersion: config.openshift.io/v1\nkind: ClusterVersionList\nitems:\n- "
        + ONE.partition("\n")[2].partition("\n")[2].replace("\n", "\n  ").rstrip(),
    },
    "without an id, in one file": {"all.yaml": f"{NAMELESS}---\n{NAMELESS}"},
    "a namespace kube-system without a uid": {"a/cv.yaml": ONE, "b/ns.yaml": SYSTEM.replace(", uid: UID", "")},
}


@pytest.mark.parametrize("files", SAME.values(), ids=list(SAME))
def test_one_cluster_that_is_there_twice(files: dict[str, str], tmp_path: Path) -> None:
    """Is one."""
    assert load.read(written(tmp_path / "d", files)).cluster_version["status"]["desired"]["version"] == "4.16.3"
