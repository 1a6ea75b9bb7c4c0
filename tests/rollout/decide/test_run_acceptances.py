"""Which acceptances of risks count for a run. Numbers are those of the cases."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_pools import paused_run, seen
from tests.rollout.decide.test_run_steps import HOUR, OURS, PREFLIGHT, TARGET, cluster, entry, run_of
from tests.rollout.observed_cluster import IMAGE, NOW, OTHER_IMAGE, findings, observed, risk

from runup.advice.decide.acceptance import Acceptance
from runup.api.config_v1 import AcceptRisk
from runup.api.update_policy_v1alpha1 import (
    AcceptedGate,
    OfferedRelease,
    PolicyGates,
    PreflightGate,
    RunAcceptance,
    UpdateRun,
)
from runup.rollout.control.controller import desired_update
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.run_acceptances import accept, inherited, known_since, own_acceptances
from runup.rollout.decide.run_steps import decide
from runup.rollout.decide.stricter import stricter

OFFERED = (OfferedRelease(version="5.1.0", image=IMAGE, first_seen=NOW - 5 * HOUR),)
SIBLING = (*OFFERED, OfferedRelease(version="5.1.1", image=OTHER_IMAGE, first_seen=NOW - 9 * HOUR))
X = RunAcceptance(name="X", reason="change 4711")


def gates(inherit: Any) -> PolicyGates:
    """The gates with this setting."""
    return PolicyGates(preflight=PreflightGate(accepted=AcceptedGate(inherit=inherit)))


def made(run: UpdateRun, hours: int) -> UpdateRun:
    """The run, created so many hours ago."""
    return replace(run, metadata=replace(run.metadata, creation_timestamp=NOW - hours * HOUR))


@pytest.mark.parametrize(
    ("inherit", "offered", "runs", "since"),
    [
        pytest.param("Target", OFFERED, (), NOW - 5 * HOUR, id="since the release was offered"),
        pytest.param("Target", (), (), NOW - HOUR, id="since the run was created"),
        pytest.param("Target", (), (made(run_of(), 7),), NOW - 7 * HOUR, id="since an earlier run to the release"),
        pytest.param("Target", SIBLING, (), NOW - 5 * HOUR, id="another patch release does not count"),
        pytest.param("Minor", SIBLING, (), NOW - 9 * HOUR, id="another patch release counts"),
        pytest.param("Name", SIBLING, (), None, id="every acceptance counts"),
    ],
)
def test_28_acceptances_of_a_release(
    inherit: Any, offered: tuple[OfferedRelease, ...], runs: tuple[UpdateRun, ...], since: datetime | None
) -> None:
    """An acceptance of an earlier release does not count for a newer one, unless the policy says so."""
    run = made(run_of(gates=gates(inherit)), 1)
    assert known_since(run, TARGET, runs, offered) == since


def test_28_an_acceptance_without_a_time_may_be_older() -> None:
    """It counts only where all do."""
    accepted = {
        "old": Acceptance(name="old", at=NOW - timedelta(seconds=1)),
        "new": Acceptance(name="new", at=NOW),
        "none": Acceptance(name="none"),
    }
    assert set(inherited(accepted, NOW)) == {"new"}
    assert inherited(accepted, None) == accepted


@pytest.mark.parametrize(("first", "second", "expected"), [("Name", "Minor", "Minor"), ("Target", "Name", "Target")])
def test_58_the_stricter_setting_counts(first: Any, second: Any, expected: str) -> None:
    """A hub cannot let older acceptances count."""
    assert stricter(gates(first), gates(second)).preflight.accepted.inherit == expected


@pytest.mark.parametrize(
    ("acceptance", "counts"),
    [
        pytest.param(X, True, id="for all versions"),
        pytest.param(replace(X, versions=("5.1.x",)), True, id="for the minor version"),
        pytest.param(replace(X, versions=("5.1.1",)), False, id="for another version"),
        pytest.param(replace(X, until=NOW + timedelta(seconds=1)), True, id="7: a second before its end"),
        pytest.param(replace(X, until=NOW), False, id="7: at its end"),
        pytest.param(replace(X, until=NOW - timedelta(seconds=1)), False, id="7: after its end"),
    ],
)
def test_7_acceptances_of_a_run(acceptance: RunAcceptance, counts: bool) -> None:
    """They end, and they are for versions."""
    assert bool(own_acceptances(run_of(accept_risks=(acceptance,)), TARGET, NOW)) is counts


@pytest.mark.parametrize(
    ("risks", "state", "reason"),
    [
        pytest.param((risk("X"),), "Open", "Clear", id="3: accepted by the run"),
        pytest.param((risk("X", applies="Unknown"),), "Open", "Clear", id="3: an unknown one by name"),
        pytest.param((risk("X"), risk("Y")), "Closed", "PreflightRisks", id="3: another risk is open"),
        pytest.param((risk("X", acceptable=False),), "Closed", "PreflightRisks", id="8: acceptance does not lift it"),
    ],
)
def test_3_8_the_gate_with_acceptances_of_a_run(risks: Any, state: str, reason: str) -> None:
    """The run's acceptances lift what an acceptance can lift, and nothing else."""
    found = accept(findings(*risks), (X,))
    [gate] = [each for each in evaluate(observed(findings=found), NOW).gates if each.name == "preflight"]
    assert (gate.state, gate.reason) == (state, reason)


def test_3_the_names_are_part_of_the_commit_and_end_with_the_run() -> None:
    """A preflight is requested without them. Names that people accepted stay."""
    run = run_of(accept_risks=(X,), soak="0s")
    ours = replace(OURS, accept_risks=(AcceptRisk(name="A"), AcceptRisk(name="X")))
    target = {"version": OURS.version, "image": OURS.image}
    assert desired_update("commit", run, None, accepts=("X",)) == {**target, "acceptRisks": [{"name": "X"}]}
    assert desired_update("commit", run, None) == target
    assert desired_update("preflight", run, None, accepts=("X",)) == {**target, "mode": "Preflight"}
    assert desired_update("withdraw", run, ours) == {"acceptRisks": [{"name": "A"}]}
    checked = replace(PREFLIGHT, accept_risks=ours.accept_risks)
    assert desired_update("withdraw", run, checked) == {"acceptRisks": [{"name": "A"}, {"name": "X"}]}
    soaking = replace(paused_run("Soaking", soak="0s"), spec=run.spec)
    soaking = replace(soaking, status=replace(soaking.status, paused_pools=()))
    outcome = decide(soaking, seen(found=cluster(entry("Completed"), desired=ours), owns_request=True), NOW)
    assert (outcome.status.step, outcome.act) == ("Soaking", "forget")
    failed = replace(soaking, status=replace(soaking.status, step="Failed"))
    kept = {**target, "mode": "Preflight", "acceptRisks": [{"name": "A"}]}
    assert desired_update("preflight", run_of(), ours, runs=(failed,)) == kept
    skipped = replace(failed, status=replace(failed.status, step="Done", started=None))
    kept["acceptRisks"] = [{"name": "A"}, {"name": "X"}]
    assert desired_update("preflight", run_of(), ours, runs=(skipped,)) == kept
