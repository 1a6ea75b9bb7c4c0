"""What the checks say, word for word, of one object and of two."""

from __future__ import annotations

import pytest
from tests.golden.findings import KEPT, SHOWN, findings

from runup.checks.decide.model import Check


@pytest.mark.parametrize("check", SHOWN, ids=lambda check: check.name)
def test_what_a_check_says(check: Check) -> None:
    """Which risk, how grave, why, what to do, and which objects; `python -m tests.golden.findings` keeps new words."""
    kept = f"\n{KEPT.read_text(encoding='utf-8')}\n"
    assert f"\n{findings(check)}\n" in kept
