"""The CEL by which a hub's agents read turns: it evaluates on any object, and absence is not success. Case 56."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang.cel import compile_cel
from runup.fleet.decide.hub_update.engine_objects import CONDITION_RULES

JSON = dict[str, Any]
RULES = {str(rule["condition"]): compile_cel(rule["celExpressions"][0], {"object": "dyn"}) for rule in CONDITION_RULES}
DONE = {"type": "Done", "status": "True", "observedGeneration": 1}


def states(status: Any) -> tuple[bool, bool]:
    """Progressing and Degraded of a turn with this status; none if it is absent."""
    turn: JSON = {"metadata": {"generation": 1}, **({"status": status} if status is not ... else {})}
    return RULES["Progressing"].evaluate({"object": turn}), RULES["Degraded"].evaluate({"object": turn})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (..., (True, False)),
        ({}, (True, False)),
        ({"conditions": []}, (True, False)),
        ({"conditions": [{}]}, (True, False)),
        ({"conditions": [DONE]}, (False, False)),
        ({"conditions": [{**DONE, "status": "False"}]}, (True, False)),
        # The state of another object of this name.
        ({"conditions": [{**DONE, "observedGeneration": 2}]}, (True, False)),
        ({"conditions": [{"type": "Done", "status": "True"}]}, (True, False)),
        ({"conditions": [{**DONE, "type": "Failed"}]}, (True, True)),
        ({"conditions": [{"type": "Failed", "status": "False", "observedGeneration": 1}, DONE]}, (False, False)),
    ],
)
def test_reads_a_turn(status: Any, expected: tuple[bool, bool]) -> None:
    """Only Done of this generation ends the progress; a failed turn stays in progress and is degraded."""
    assert states(status) == expected


_TEXT = st.sampled_from(["Done", "Failed", "True", "False", "Unknown", ""])
_CONDITION = st.fixed_dictionaries({"type": _TEXT, "status": _TEXT}, optional={"observedGeneration": st.integers(0, 3)})


@given(st.lists(_CONDITION, max_size=4))
def test_never_takes_another_status_for_success(conditions: list[JSON]) -> None:
    """Whatever conditions the schema lets through, the rules evaluate, and only Done is success."""
    is_done = any(each == DONE for each in conditions)
    is_failed = any(each == {**DONE, "type": "Failed"} for each in conditions)
    assert states({"conditions": conditions}) == (not is_done, is_failed)
