"""`python -m bench.mutants`: what it says of a sample that cannot be taken."""

from __future__ import annotations

import pytest
from bench import mutants


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["nowhere"], "error: no room nowhere; there are ", id="a room that is none"),
        pytest.param(["--part", "control", "checks"], "error: no control in checks\n", id="a room without that part"),
    ],
)
def test_a_sample_of_nothing(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that names it, before anything is copied or run."""
    assert mutants.main(arguments) == 1
    assert capsys.readouterr().err.startswith(told)
