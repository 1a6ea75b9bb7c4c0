"""`python -m bench.unstable`: passes, failures, and nobody busy left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bench import unstable

TEXT = """
import pathlib
def test_every_second():
    mark = pathlib.Path(__file__).with_suffix(".mark")
    if mark.exists():
        mark.unlink()
        raise AssertionError("by chance")
    mark.write_text("")
"""


@pytest.mark.slow
def test_a_test_that_fails_every_second_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three runs pass; the failure is told by its first line."""
    file = tmp_path / "test_it.py"
    file.write_text(TEXT)
    assert unstable.main([str(file), "--times=3", "--load=1"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["passed"], told["load"]) == (3, 2, 1)
    (failure,) = told["failures"]
    assert failure["run"] == 2
    assert failure["line"].startswith("FAILED ")
    assert failure["line"].endswith("test_it.py::test_every_second - AssertionError: by chance")
    assert told["seconds"]["runs"] == 3


def test_the_busy_ones_end_with_the_block() -> None:
    """Also when it fails."""
    with pytest.raises(ZeroDivisionError), unstable.busy(2) as ids:
        for each in ids:
            os.kill(each, 0)
        raise ZeroDivisionError
    for each in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)
