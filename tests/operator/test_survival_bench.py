"""The bench of faults: it measures each fault, and it notices what it must notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.hostile import survival
from bench.hostile.survival import ROWS, STORIES, Outcome, Row, main, outcome_of, table

TESTS = Path(__file__).parents[1]


def row(name: str) -> Row:
    """The row of that name."""
    return next(each for each in ROWS if each.name == name)


@pytest.mark.slow
async def test_without_a_fault_nothing_is_wrong(tmp_path: Path) -> None:
    """The change is shown, and one record is left."""
    outcome = await outcome_of(ROWS[0], tmp_path, ())
    assert (outcome.wrong, outcome.false_s, outcome.left) == ([], 0, ["ConfigMap preflight-history"])


@pytest.mark.slow
async def test_a_result_that_lacks_the_change_is_noticed(tmp_path: Path) -> None:
    """A watch that says nothing makes a target report an old state with a new time, until it is given up."""
    impatient = replace(row("watches that say nothing, for ten minutes"), false_s=60)
    outcome = await outcome_of(impatient, tmp_path, ())
    assert outcome.wrong == [f"a result without the change was shown for {outcome.false_s} s, 60 s at most"]


@pytest.mark.slow
async def test_a_change_that_is_never_shown_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the seconds that a fault may cost."""
    monkeypatch.setattr(survival, "PATIENCE_S", 1)
    outcome = await outcome_of(row("429 with Retry-After"), tmp_path, ())
    assert "the change was not shown after the fault" in outcome.wrong


def test_what_is_left_behind_is_shown() -> None:
    """With the seconds and the restarts of each fault; a wrong one says so."""
    outcomes = [
        Outcome("a", shown_s=7, left=["Pod x"], restarts=1),
        Outcome("b", shown_s=0, wrong=["it is late"]),
        Outcome("c", test="x.py"),
    ]
    assert table(outcomes).splitlines()[2:] == [
        "| a | nothing false | 7 s later | Pod x | 1 |",
        "| b | **wrong**: it is late | 0 s later | nothing | 0 |",
        "| c | as `tests/x.py` requires | the same | nothing |  |",
    ]


@pytest.mark.parametrize("name", STORIES)
def test_each_story_is_a_test(name: str) -> None:
    """Its file has the function."""
    path, _, function = STORIES[name].split()[0].partition("::")
    assert f"def {function}" in (TESTS / path).read_text()


def test_an_unknown_fault_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names that there are."""
    with pytest.raises(SystemExit):
        main(["--only", "rain"])
    assert "no fault rain" in capsys.readouterr().err
