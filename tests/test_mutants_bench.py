"""`python -m bench.mutants`: what it says of a sample that cannot be taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.mutants import __main__ as mutants
from bench.mutants.made import Mutant


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["nowhere"], "error: no room nowhere; there are ", id="a room that is none"),
        pytest.param(["--part", "control", "report"], "error: no control in report\n", id="a room without that part"),
    ],
)
def test_a_sample_of_nothing(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that names it, before anything is copied or run."""
    assert mutants.main(arguments) == 1
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize(
    ("text", "operator", "can"),
    [
        pytest.param("a = 1 | 2\n", "ReplaceBinaryOperator_BitOr_FloorDiv", True, id="an operator"),
        pytest.param(
            "match 1:\n    case 1 | 2:\n        pass\n", "ReplaceBinaryOperator_BitOr_FloorDiv", False, id="a pattern's"
        ),
    ],
)
def test_what_is_no_code_any_more_is_no_mutant(text: str, operator: str, *, can: bool, tmp_path: Path) -> None:
    """Otherwise the tests that it breaks are all of them."""
    module = tmp_path / "module.py"
    module.write_text(text)
    assert Mutant(module, 1, operator, 0).can_be_made() is can
