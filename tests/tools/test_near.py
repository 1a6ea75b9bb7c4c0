"""`make near`: which tests are run for what differs from a revision."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench.mutants import copy, rooms
from bench.mutants.lines import Lines, digest

from tools import near

MODULE = "packages/runup/src/runup/room/module.py"
CODE = "LIMIT = 1\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"
TESTS = {
    "tests/room/test_one.py": "from runup.room import module\n",
    "tests/room/test_other.py": "from runup.room import another\n",
}
ONE, TWO = "tests/room/test_one.py::test_one", "tests/room/test_other.py::test_two"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one module and two test files, all committed, with a map of the module."""
    for module in (near, copy, rooms):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    for path, text in {MODULE: CODE, **TESTS}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for words in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -q -m a"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    known = Lines({ONE: 0.1, TWO: 0.1}, [], {MODULE: {"5": [0], "9": [1]}}, {MODULE: digest(tmp_path / MODULE)})
    monkeypatch.setattr(near, "kept", lambda room: known if room == "room" else Lines())
    return tmp_path


@pytest.mark.parametrize(
    ("was", "becomes", "tests", "files"),
    [
        pytest.param("return 1", "return 3", {ONE}, set(), id="a statement that a test runs"),
        pytest.param("    return 2", "    x = 2\n    return x", {TWO}, set(), id="several lines for one"),
        pytest.param("    return 2", "    return 2\n    # end", {TWO}, set(), id="an added line"),
        pytest.param("LIMIT = 1", "LIMIT = 2", set(), {"tests/room/test_one.py"}, id="a statement that runs at import"),
        pytest.param("", "", set(), set(), id="nothing"),
    ],
)
def test_a_changed_module(checkout: Path, was: str, becomes: str, tests: set[str], files: set[str]) -> None:
    """Tests of the map, and where it has none the files that import the module."""
    (checkout / MODULE).write_text(CODE.replace(was, becomes))
    found = near.near("HEAD")
    assert (found.tests, found.files) == (tests, files)


def test_a_map_of_another_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are others: what imports the module is run."""
    monkeypatch.setattr(near, "kept", lambda _room: Lines({ONE: 0.1}, [], {MODULE: {"5": [0]}}, {MODULE: "another"}))
    (checkout / MODULE).write_text(CODE.replace("return 1", "return 3"))
    assert near.near("HEAD").files == {"tests/room/test_one.py"}


def test_test_files(checkout: Path) -> None:
    """A changed one and a new one run as a whole."""
    (checkout / "tests/room/test_other.py").write_text("\n")
    (checkout / "tests/room/test_new.py").write_text("\n")
    assert near.near("HEAD").paths() == ["tests/room/test_new.py", "tests/room/test_other.py"]
