"""Counting the phrases that the style page replaces."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import check_english

MODULE = '''"""The pods, judged."""


def run(pods):
    """Tells of pods."""
    # Whoever runs this.
    raise ValueError("it could not be told which pods stand beside them")


@group.command("x")
def x():
    """Judge the pods."""
'''


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one page and one module."""
    monkeypatch.setattr(check_english, "ROOT", tmp_path)
    monkeypatch.setattr(check_english, "BASELINE", tmp_path / "english.json")
    for name in ("docs", "packages", "tests"):
        (tmp_path / name).mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "docs" / "a.md").write_text("The operator tells why.\n\n```text\nWhoever judges\n```\n\n`judge`\n")
    (tmp_path / "packages" / "a.py").write_text(MODULE)
    return tmp_path


def test_counts_by_area(checkout: Path) -> None:
    """Messages are strings and help texts; docstrings and comments are the rest; code on a page does not count."""
    found = {area: {name: n for name, n in by.items() if n} for area, by in check_english.counts().items()}
    assert found == {
        "docs": {"tell": 1},
        "decisions": {},
        "messages": {"tell": 1, "could not be told": 1, "beside": 1, "stands": 1, "judge": 1},
        "src": {"tell": 1, "whoever": 1, "judge": 1},
        "tests": {},
    }


@pytest.mark.parametrize(
    "sentence",
    [
        "What applies is asked again.",
        "It is to be removed.",
        "A plan of its own.",
        "The update goes on.",
        "It says of pods that.",
        "The rule stands in a table.",
        "It has none.",
        "All pods but for one.",
        "The table is made anew.",
        "Mended files.",
    ],
)
def test_finds_each_phrase(checkout: Path, sentence: str) -> None:
    """One sentence for each row of the table that the other tests leave out."""
    (checkout / "docs" / "a.md").write_text(sentence + "\n")
    assert sum(check_english.counts()["docs"].values()) == 1


@pytest.mark.parametrize(
    "sentence", ["What is a preflight?", "The pod is to the left.", "A standby pod.", "An upgrade of pods goes well."]
)
def test_leaves_plain_english_alone(checkout: Path, sentence: str) -> None:
    """Questions, places, and parts of words are not counted."""
    (checkout / "docs" / "a.md").write_text(sentence + "\n")
    assert sum(check_english.counts()["docs"].values()) == 0


def test_fails_when_a_count_rises(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the area, the phrase and the way to find it; storing the counts does not hide the rise."""
    assert check_english.main(["--write"]) == 0
    (checkout / "docs" / "b.md").write_text("Whoever reads this.\n")
    assert check_english.main(["--write"]) == 1
    assert check_english.main([]) == 1
    assert "docs: 'whoever' occurs 1 times, 0 are stored" in capsys.readouterr().out
    check_english.main(["--list", "docs"])
    assert "docs/b.md:1: whoever\n" in capsys.readouterr().out


def test_stores_lower_counts(checkout: Path) -> None:
    """A count that fell may not rise again."""
    check_english.main(["--write"])
    (checkout / "docs" / "a.md").write_text("Fine.\n")
    check_english.main(["--write"])
    assert json.loads((checkout / "english.json").read_text())["docs"]["tell"] == 0
