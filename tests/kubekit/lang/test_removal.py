"""Folders that others filled, removed: of any depth and width, and what stays."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from kubekit.lang.files import remove_tree


def deep(folder: Path, levels: int, name: str = "d") -> Path:
    """`folder` with so many folders in one another, a file and a link in each."""
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.symlink("/", "link", dir_fd=handle)
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "name"), [(0, "d"), (1, "d"), (1200, "d"), (50, "n" * 255)])
def test_of_any_depth(tmp_path: Path, levels: int, name: str) -> None:
    """A path may be longer than the kernel takes; there are fewer open files than levels."""
    folder = deep(tmp_path / "a", levels, name)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (40 + max(int(path.name) for path in Path("/proc/self/fd").iterdir()), before[1])
    )
    try:
        assert remove_tree(folder) == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        left = list(tmp_path.iterdir())
        # Python's own removal, by which later runs clear up, recurses.
        subprocess.run(["rm", "-rf", folder], check=True)
    assert left == []


@pytest.mark.slow
def test_a_wide_one_with_names_like_those_that_it_gives(tmp_path: Path) -> None:
    """More entries than are looked at together; the names under which folders are moved up may be taken."""
    folder = tmp_path / "a"
    for number in range(3):
        (folder / f".removed-{os.getpid()}-{number}" / "x" / "y").mkdir(parents=True)
    for number in range(1100):
        (folder / "wide" / str(number)).mkdir(parents=True)
        (folder / f"file-{number}").touch()
    assert remove_tree(folder) == ""
    assert not folder.exists()


def test_what_links_lead_to_stays(tmp_path: Path) -> None:
    """Neither a link in the folder is followed, nor one in its place."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert remove_tree(tmp_path / "a") == ""
    assert remove_tree(tmp_path / "link") != ""
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file"]
    assert (tmp_path / "link").is_symlink()


def test_no_more_than_so_many(tmp_path: Path) -> None:
    """Files beyond the number stay, and can be removed by another call."""
    folder = deep(tmp_path / "a", 30)
    # Four steps a level: a file, a link, a folder moved up and removed.
    assert [remove_tree(folder, most=50) for _ in range(3)] == ["it has more than 50 entries"] * 2 + [""]


def test_nothing_and_a_file(tmp_path: Path) -> None:
    """A folder that is not there is removed; a file is not a folder."""
    (tmp_path / "file").touch()
    assert (remove_tree(tmp_path / "a"), remove_tree(tmp_path / "a" / "b")) == ("", "")
    assert remove_tree(tmp_path / "file") == "Not a directory"
    assert (tmp_path / "file").exists()
