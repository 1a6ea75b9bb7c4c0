"""What a link or a form of the console asks for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.console.boards import ENDED_RUN, RUN_TRUTH, WAITING

from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.console.decide.asked_actions import (
    ACCEPT,
    APPROVE,
    HOLD,
    RESUME,
    START,
    RequestedAction,
    asked_of,
    run_choices,
    seal,
)
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


@pytest.mark.parametrize(
    ("action", "values", "found"),
    [
        pytest.param(APPROVE, {"run": "r", "gate": "cab"}, ("r", "cab", "r cab"), id="an approval"),
        pytest.param(APPROVE, {"run": "r"}, ("r", "", ""), id="an approval without a gate asks for the choices"),
        pytest.param(HOLD, {"run": "r", "gate": "cab", "risk": "x"}, ("r", "", "r"), id="a hold"),
        pytest.param(RESUME, {"run": 5}, ("", "", ""), id="no name of a run"),
        pytest.param(START, {"run": "r", "to": "5.1.0"}, ("", "", "5.1.0"), id="a start names no run"),
    ],
)
def test_reads_which_run_an_action_is_about(
    action: str, values: dict[str, object], found: tuple[str, str, str]
) -> None:
    """Without a run, or a gate to approve, nothing can be confirmed."""
    asked = asked_of(action, HARBOUR, values, "token")
    assert (asked.run, asked.gate, asked.target) == found


def _controlled(control: str) -> UpdateRun:
    return replace(WAITING, spec=replace(WAITING.spec, control=control))


@pytest.mark.parametrize(
    ("action", "run", "names"),
    [
        pytest.param(APPROVE, WAITING, [(WAITING.metadata.name, "cab")], id="the approval that is missing"),
        pytest.param(APPROVE, ENDED_RUN, [], id="no approval of a run that has ended"),
        pytest.param(HOLD, WAITING, [(WAITING.metadata.name, "")], id="a run that is not held"),
        pytest.param(HOLD, _controlled("Hold"), [], id="a run that is held already"),
        pytest.param(HOLD, _controlled("Abort"), [], id="a run that was aborted"),
        pytest.param(RESUME, _controlled("Hold"), [(WAITING.metadata.name, "")], id="a run that is held"),
        pytest.param(RESUME, WAITING, [], id="nothing to resume"),
        pytest.param(HOLD, ENDED_RUN, [], id="a run that has ended"),
    ],
)
def test_offers_the_runs_on_which_an_action_has_an_effect(
    action: str, run: UpdateRun, names: list[tuple[str, str]]
) -> None:
    """A choice that the command would refuse is not offered."""
    assert list(run_choices(action, (run,))) == names


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"spec": replace(WAITING.spec, control="Hold")}, id="its control"),
        pytest.param({"status": replace(WAITING.status, step="ControlPlane")}, id="its step"),
        pytest.param({"metadata": replace(WAITING.metadata, uid="other")}, id="a new run of the same name"),
        pytest.param(
            {"spec": replace(WAITING.spec, target=replace(WAITING.spec.target, image="other"))}, id="its image"
        ),
    ],
)
def test_a_confirmation_ends_when_the_run_changes(changed: dict[str, Any]) -> None:
    """The seal is of the state that was shown; a gate that flickers does not change it."""
    asked = asked_of(APPROVE, HARBOUR, {"run": WAITING.metadata.name, "gate": "cab"}, "")
    state = RUN_TRUTH
    flickers = replace(WAITING, status=replace(WAITING.status, gates=()))
    assert seal(asked, replace(state, run=flickers)) == seal(asked, state)
    assert seal(asked, replace(state, run=replace(WAITING, **changed))) != seal(asked, state)
    assert seal(replace(asked, gate="owners"), state) != seal(asked, state)
