"""What a link or a form of the console asks for."""

from __future__ import annotations

import pytest

from runup.console.decide.asked_actions import ACCEPT, START, RequestedAction, asked_of
from runup.fleet.decide.members import Member

HARBOUR = Member(name="harbour", context="harbour")
FIELDS = {"risk": " SlowDisks ", "reason": "r" * 4097, "until": "u" * 513, "to": "5" * 513}


@pytest.mark.parametrize(
    ("action", "values", "found"),
    [
        pytest.param(ACCEPT, FIELDS, ("SlowDisks", "r" * 4096, "u" * 512, ""), id="an acceptance"),
        pytest.param(ACCEPT, {"risk": "x" * 512}, ("x" * 512, "", "", ""), id="the longest name"),
        pytest.param(ACCEPT, {"risk": "x" * 513}, ("x" * 512, "", "", ""), id="a longer name"),
        pytest.param(START, FIELDS, ("", "", "", "5" * 512), id="a start"),
        pytest.param(START, {"to": " v5.1.0"}, ("", "", "", "5.1.0"), id="a version with a v"),
        pytest.param(START, {"to": 5}, ("", "", "", ""), id="a number"),
    ],
)
def test_reads_only_the_fields_of_the_action(
    action: str, values: dict[str, object], found: tuple[str, str, str, str]
) -> None:
    """Texts are cut at their limits: what is shown again must not grow."""
    asked = asked_of(action, HARBOUR, values, "token")
    assert isinstance(asked, RequestedAction)
    assert (asked.risk, asked.reason, asked.until, asked.version) == found
