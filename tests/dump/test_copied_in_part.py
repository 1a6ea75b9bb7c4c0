"""A dump whose copy is not finished: its record says more than its files have."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from runup.dump import load
from runup.dump.dump_files import BadDump

EXAMPLE = Path(__file__).parents[2] / "examples" / "skip-level"
PODS, MAPS = ("", "pods"), ("", "configmaps")


def edit(file: Path, keep: int) -> None:
    """Keeps so many items of a list."""
    document = json.loads(file.read_text())
    document["items"] = document["items"][:keep]
    file.write_text(json.dumps(document))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def as_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def as_link(file: Path) -> None:
    """To a file that is not in the dump."""
    outside = file.parents[1] / "outside.json"
    file.replace(outside)
    file.symlink_to(outside)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(Path.unlink, id="not there"),
        pytest.param(lambda file: edit(file, 1), id="fewer items"),
        pytest.param(lambda file: edit(file, 0), id="emptied"),
        pytest.param(cut, id="cut off"),
        pytest.param(as_fifo, id="a FIFO"),
        pytest.param(as_link, id="a link to outside"),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
def test_a_list_that_is_not_as_the_record_says(damage: Callable[[Path], None], packed: bool, tmp_path: Path) -> None:
    """The kind is not known in full; the others are."""
    folder = tmp_path / "dump"
    shutil.copytree(EXAMPLE, folder)
    damage(folder / "pods.json")
    path = folder
    if packed:
        path = tmp_path / "dump.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, arcname="dump")
    kinds = load.read(path).collected
    assert (kinds.covers(PODS), kinds.covers(("", "nodes"))) == (False, True)


def test_a_list_of_one_of_the_namespaces_is_not_there(tmp_path: Path) -> None:
    """The count is of all namespaces together, so that none of them is known."""
    folder = tmp_path / "dump"
    shutil.copytree(EXAMPLE, folder)
    assert load.read(folder).collected.covers(MAPS, "openshift-config")
    (folder / "configmaps@openshift-config.json").unlink()
    assert not load.read(folder).collected.covers(MAPS, "openshift-config")


def test_a_record_without_counts(tmp_path: Path) -> None:
    """The files are there."""
    folder = tmp_path / "dump"
    shutil.copytree(EXAMPLE, folder)
    record = folder / "runup-dump.json"
    document = json.loads(record.read_text())
    for row in document["kinds"]:
        del row["count"]
    record.write_text(json.dumps(document))
    assert load.read(folder).collected.covers(PODS)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({}, "contains no YAML or JSON file", id="nothing"),
        pytest.param({"notes.txt": "later"}, "contains no YAML or JSON file", id="foreign files"),
        pytest.param({"a/version.json": "{}", "b/version.json": "{}"}, "has no ClusterVersion", id="empty objects"),
    ],
)
def test_names_an_archive_without_a_dump(files: dict[str, str], why: str, tmp_path: Path) -> None:
    """By the name that was typed, not by the folder into which it was unpacked."""
    packed = tmp_path / "dump.tar"
    with tarfile.open(packed, "w") as tar:
        for name, text in files.items():
            (tmp_path / "file").write_text(text)
            tar.add(tmp_path / "file", arcname=name)
    with pytest.raises(BadDump, match=why) as caught:
        load.read(packed)
    assert "runup-dump-" not in caught.value.message
