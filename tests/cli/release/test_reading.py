"""Tests what `runup release` reads and writes: locations, single files, folders that appear atomically."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.cli.release.typed import config_map, release, run

from kubekit.error_types import InputError
from kubekit.oci.image_locations import LayoutLocation
from kubekit.oci.reference import Reference
from runup.cli.release import command as read_releases
from runup.cli.release.shared import items
from runup.cli.render.screen import Screen
from runup.release.control import release_location
from runup.release.decide.inclusion import Filters
from runup.release.decide.listing import Listed, Row

FILES = {
    "manifests/a.yaml": b"1",
    "release-manifests/a.yaml": b"2",
    "release-manifests/b.yaml": b"3",
    "preflight-checks/x/c.yaml": b"4",
}
FOUND: dict[str, bytes] = {
    "manifests/a.yaml": b"1",
    "/manifests/a.yaml": b"1",
    "b.yaml": b"3",
    "/b.yaml": b"3",
    "c.yaml": b"4",
}


@pytest.mark.parametrize("path", FOUND)
def test_one_file(path: str) -> None:
    """By its whole path, or by its name where one alone is called so."""
    assert release_location.file_at(FILES, path, "image") == FOUND[path]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("a.yaml", "; there are manifests/a.yaml, release-manifests/a.yaml", id="two are called so"),
        pytest.param("x/c.yaml", "; it has 4 files", id="a part of a path"),
        pytest.param(".yaml", "; it has 4 files", id="a part of a name"),
        pytest.param("", "; it has 4 files", id="nothing"),
    ],
)
def test_no_one_file(path: str, said: str) -> None:
    """Which there are, or how many."""
    with pytest.raises(InputError) as refused:
        release_location.file_at(FILES, path, "image")
    assert refused.value.message == f"--file: image has no file {path}{said}"


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    """With its folders, for others to read, and nothing next to it; an empty folder that is there is taken."""
    for target in (tmp_path / "new" / "deep", tmp_path / "empty"):
        if target.name == "empty":
            target.mkdir()
        release_location.write(FILES, str(target))
        found = {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}
        assert found == FILES
        assert stat.S_IMODE(target.stat().st_mode) == 0o755
        assert [path for path in target.parent.iterdir() if path.name.startswith(".")] == []


def test_what_is_there_stays(tmp_path: Path) -> None:
    """A folder that holds something, a file, a link, even to nothing."""
    (tmp_path / "full" / "x").mkdir(parents=True)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    for name in ("full", "file", "link"):
        with pytest.raises(InputError) as refused:
            release_location.write(FILES, str(tmp_path / name))
        said = f"--to: {tmp_path / name} exists already and is not empty; name another folder"
        assert refused.value.message == said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Neither the whole nor a part."""
    with pytest.raises(InputError, match=f"--to: {tmp_path}/to cannot be written: "):
        release_location.write({"a": b"1", "a/b": b"2"}, str(tmp_path / "to"))
    assert list(tmp_path.iterdir()) == []


def test_which_words_are_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is recognized; a text that looks like a path is a path even if nothing exists there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "layout").mkdir()
    (tmp_path / "layout" / "oci-layout").write_text("{}")
    assert release_location.place_of_release("folder") == Path("folder")
    assert release_location.place_of_release("layout") == LayoutLocation(Path("layout"))
    assert release_location.place_of_release("./nowhere") == Path("nowhere")
    assert release_location.place_of_release("/nowhere") == Path("/nowhere")
    assert isinstance(release_location.place_of_release("registry.example/nowhere:1"), Reference)


def test_words_between_commas() -> None:
    """Without blanks; empty ones do not count."""
    assert items(" a, b ,,c,") == ["a", "b", "c"]
    assert items(" , ") == []


def _listing(rows: int) -> Listed:
    made = []
    for number in range(rows):
        included = number % 3 != 1
        why = "" if included else "r"
        made.append(
            Row(
                object=f"ConfigMap c{number}",
                file=f"f{number}.yaml",
                included=included,
                reason=why,
                state="in" if included else "out",
            )
        )
    return Listed(version="5.2.0", digest="", filters=Filters(), rows=tuple(made), notes=())


@pytest.mark.parametrize(
    ("rows", "height", "counted"),
    [
        pytest.param(3, None, False, id="a pipe"),
        pytest.param(3, 5, False, id="shorter than the screen"),
        pytest.param(3, 4, True, id="as long as the screen, with the line that is typed next"),
        pytest.param(9, 5, True, id="longer"),
    ],
)
def test_a_long_table_begins_with_its_numbers(rows: int, height: int | None, counted: bool) -> None:
    """Omitted lines are not read."""
    text = read_releases.as_listing(_listing(rows), "wide", Screen(200, height))
    head = f"Release 5.2.0: {rows} manifests and checks, {rows // 3 * 2} in, {rows // 3} out.\n\n"
    assert text.startswith(head) is counted
    assert text.splitlines()[-rows - 1].split() == ["MANIFEST", "FILE", "REASON"]


def test_names_are_those_that_are_in() -> None:
    """One a line."""
    assert read_releases.as_listing(_listing(3), "name") == "ConfigMap c0\nConfigMap c2\n"


def test_what_info_says_in_words(tmp_path: Path) -> None:
    """Lists by commas, what is empty as nothing."""
    folder = release(tmp_path / "of", config_map("a"), images={"b": "h/b:1", "a": "h/a:1"})
    lines = run("info", str(folder)).out.splitlines()
    assert lines[:2] == ["name:         5.2.0", "digest:"]
    assert lines[lines.index("images:       2") :][1:3] in (["  b  h/b:1", "  a  h/a:1"], ["  a  h/a:1", "  b  h/b:1"])
    assert "manifests:    1" in lines
    assert "verifies:     no" in lines
    assert "checks:" in lines
