"""The risk that represents a check that could not be loaded."""

from __future__ import annotations

import pytest

from runup.checks.decide.declared_checks import unusable_check


@pytest.mark.parametrize(("name", "risk"), [("a" * 300, "a" * 233), ("x/y z!", "y-z-"), ("a.b-C", "a.b-C")])
def test_the_risk_of_a_check_that_could_not_be_loaded(name: str, risk: str) -> None:
    """By the end of its name, in the characters of risks, and no longer than one may be."""
    assert unusable_check(name, "why").unknown_risk == f"PreflightCheckUnusable-{risk}"
    assert len(unusable_check("a" * 300, "why").unknown_risk) == 256
