"""The turns of a cluster: which one counts, when it is used up, what the hub reads, and the claim."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from runup.api.update_policy_v1alpha1 import UpdateRun, UpdateTurn
from runup.rollout.decide.gates.gate import Gate, State, Verdict
from runup.rollout.decide.gates.observed import Turn
from runup.rollout.decide.turns import is_ready, newly_used_up, turn_of, wanted_claim, with_outcome

CREATED = datetime(2026, 11, 30, 10, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def run(step: str = "Waiting", reason: str = "", **changes: Any) -> UpdateRun:
    """A run of a hub."""
    spec = {"target": {"version": "5.1.0", "image": "r@sha256:" + "1" * 64}, "needsTurn": True}
    decisions = [{"at": CREATED.isoformat(), "step": step, "reason": reason}] if reason else []
    status = {"step": step, "decisions": decisions, **changes.pop("status", {})}
    return codec.convert(UpdateRun, {"metadata": {"name": "r"}, "spec": spec | changes, "status": status})


def turn(uid: str = "t", **changes: Any) -> UpdateTurn:
    """A turn of that run, for an hour from 10:00."""
    metadata = {"name": f"r-{uid}", "uid": uid, "generation": 1, "creationTimestamp": CREATED.isoformat()}
    spec = {"run": "r", "placeFor": "1h", **changes.pop("spec", {})}
    return codec.convert(UpdateTurn, {"metadata": metadata | changes, "spec": spec})


END = CREATED + HOUR


@pytest.mark.parametrize(
    ("of", "turns", "expected"),
    [
        (run(needsTurn=False), [turn()], None),
        (run(), [], Turn()),
        (run(), [turn(spec={"run": "other"})], Turn()),
        (run(), [turn()], Turn(name="r-t", until=END)),
        (run(status={"usedUpTurns": ["t"]}), [turn()], Turn(used_up=True)),
        (run(status={"usedUpTurns": ["t"]}), [turn(), turn("u")], Turn(name="r-u", until=END)),
        (run(), [turn(deletionTimestamp=CREATED.isoformat())], Turn(used_up=True)),
        (run(), [turn(spec={"placeFor": "soon"})], Turn(used_up=True)),
        (run(), [turn(creationTimestamp=None)], Turn(used_up=True)),
    ],
)
def test_finds_the_turn(of: UpdateRun, turns: list[UpdateTurn], expected: Turn | None) -> None:
    """A turn counts if it is of the run, was not used up, is not being deleted, and has an end."""
    assert turn_of(of, turns) == expected


@pytest.mark.parametrize(
    ("of", "now", "expected"),
    [
        (run(), END + MINUTE, ()),
        # A start that was sent in the last second has arrived by then.
        (run(), END + 2 * MINUTE, ("t",)),
        (run("Committing"), END + HOUR, ()),
        (run("ControlPlane"), END + HOUR, ()),
        (run(status={"usedUpTurns": ["t"]}), END + HOUR, ()),
    ],
)
def test_uses_up_a_turn(of: UpdateRun, now: datetime, expected: tuple[str, ...]) -> None:
    """A waiting run gives its place back after placeFor."""
    assert newly_used_up(of, [turn(), turn("o", spec={"run": "other"})], now) == expected


@pytest.mark.parametrize(
    ("of", "done", "failed"),
    [
        (None, ("False", "NotYet"), "False"),
        (run(), ("False", "NotYet"), "False"),
        (run("ControlPlane"), ("False", "NotYet"), "False"),
        (run("Done", "Succeeded"), ("True", "Succeeded"), "False"),
        (run("Done", "Skipped"), ("True", "Skipped"), "False"),
        (run(status={"usedUpTurns": ["t"]}), ("True", "Yielded"), "False"),
        # An update that began before its turn was used up is not reported as a place that is free.
        (run("ControlPlane", status={"usedUpTurns": ["u"]}), ("False", "NotYet"), "False"),
        (run("Failed", "ControlPlaneDeadline"), ("False", "NotYet"), "True"),
        (run("Superseded", "WithdrawnBefore"), ("False", "NotYet"), "True"),
        (run("Aborted", "Aborted"), ("False", "NotYet"), "True"),
    ],
)
def test_reports_the_outcome(of: UpdateRun | None, done: tuple[str, str], failed: str) -> None:
    """The turn has the conditions of its run, with the generation that the hub's rule compares."""
    conditions = with_outcome(turn(), of, CREATED).status.conditions
    found = find(conditions, "Done")
    assert found is not None
    assert (found.status, found.reason) == done
    failure = find(conditions, "Failed")
    assert failure is not None
    assert failure.status == failed
    assert {each.observed_generation for each in conditions} == {1}


@pytest.mark.parametrize(
    ("current", "runs", "turns", "ready", "expected"),
    [
        ("", [run()], [], None, ""),
        ("", [run()], [], run(), "r.1"),
        # A claim is not withdrawn when a gate closes, and its round only grows.
        ("r.1", [run()], [], None, "r.1"),
        ("r.1", [run()], [], run(round=2), "r.2"),
        ("r.3", [run()], [], run(round=2), "r.3"),
        ("old.3", [run()], [], run(round=2), "r.2"),
        # It goes with the run, after its turn.
        ("r.1", [run("Done", "Succeeded")], [turn()], None, "r.1"),
        ("r.1", [run("Done", "Succeeded")], [], None, ""),
        ("gone.1", [run()], [], None, ""),
        ("nonsense", [run()], [], None, ""),
    ],
)
def test_claims_a_turn(
    current: str, runs: list[UpdateRun], turns: list[UpdateTurn], ready: UpdateRun | None, expected: str
) -> None:
    """The cluster asks for a turn once its other gates are open, until its run has ended."""
    assert wanted_claim(current, runs, turns, ready) == expected


def test_claims_nothing_that_is_no_value_of_a_label() -> None:
    """The hub selects claims as labels, so a longer value would make its Placement invalid."""
    long = run()
    long = replace(long, metadata=replace(long.metadata, name="r" * 62))
    assert wanted_claim("", [long], [], long) == ""


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"window": "Open", "turn": "Closed"}, True),
        ({"window": "Closed", "turn": "Closed"}, False),
        ({"window": "Unknown", "turn": "Open"}, False),
        ({"turn": "Closed"}, False),
        ({}, False),
    ],
)
def test_is_ready(states: dict[str, State], expected: bool) -> None:
    """Every gate but the turn must be open, and there must be one."""
    gates = tuple(Gate(name=name, state=state, reason="", message="") for name, state in states.items())
    assert is_ready(Verdict(gates)) is expected
    assert not is_ready(Verdict(gates, final=True))
