"""Pools that a run pauses before its start and resumes after it. Numbers are those of the cases."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_run_steps import (
    CLOSED,
    HEALTHY,
    HOUR,
    MINUTE,
    OPEN,
    OURS,
    after,
    cluster,
    deleted,
    entry,
    run_of,
    situation,
)
from tests.rollout.observed_cluster import NOW, findings, observed, risk

from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.config_v1 import AcceptRisk, Update
from runup.api.machineconfig_v1 import (
    ConfigurationReference,
    MachineConfigPool,
    MachineConfigPoolSpec,
    MachineConfigPoolStatus,
)
from runup.api.update_policy_v1alpha1 import PAUSED_BY, PausedPool, PolicyPools, UpdateRun
from runup.rehearse.decide.update_forecast import Forecast, ForecastPart, Range
from runup.rollout.control.controller import desired_update
from runup.rollout.decide.gates.all_gates import evaluate, evaluate_resumption
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Observed
from runup.rollout.decide.pools import is_updated, pools_to_pause
from runup.rollout.decide.run_steps import Situation, decide

NEXT = PolicyPools(when="NextWindow")
MANUAL = PolicyPools(when="Manual")
NO_CALENDAR = Verdict((Gate(name="window", state="Unknown", reason="InvalidCalendar", message="m"),))
OUTSIDE = Verdict((Gate(name="window", state="Closed", reason="OutsideWindow", message="m"),))
MARK = {PAUSED_BY: "u"}


def pool(
    name: str = "worker",
    *,
    paused: bool = False,
    by: str = "",
    updated: bool = True,
    version: str = "1",
    machines: int = 3,
    degraded_since: datetime | None = None,
) -> MachineConfigPool:
    """A pool; `by` is the run whose annotation it has."""
    conditions = [Condition(type="Updated", status="True" if updated else "False")]
    if degraded_since is not None:
        conditions.append(
            Condition(type="Degraded", status="True", message="disk full", last_transition_time=degraded_since)
        )
    return MachineConfigPool(
        metadata=ObjectMeta(name=name, resource_version=version, annotations={PAUSED_BY: by} if by else {}),
        spec=MachineConfigPoolSpec(paused=paused, configuration=ConfigurationReference(name="new")),
        status=MachineConfigPoolStatus(
            machine_count=machines,
            configuration=ConfigurationReference(name="new" if updated else "old"),
            conditions=tuple(conditions),
        ),
    )


MASTER = pool("master")
OWN = pool(paused=True, by="u", updated=False, version="2")
LISTED = PausedPool(name="worker", since=NOW, resource_version="1")


def seen(*pools: MachineConfigPool, **changes: Any) -> Situation:
    """A cluster with these pools, and all gates open."""
    return situation(pools=(MASTER, *pools), **changes)


def test_11_a_status_from_before_the_resumption_is_not_updated() -> None:
    """The operator has not observed the pool since it was changed, so its conditions are about an earlier state."""
    stale = replace(pool(), metadata=replace(pool().metadata, generation=3))
    assert [is_updated(each) for each in (stale, pool())] == [False, True]
    observed = replace(stale, status=replace(stale.status, observed_generation=4))
    assert is_updated(observed)


def paused_run(step: Any = "Preparing", *entries: PausedPool, pools: PolicyPools = NEXT, **spec: Any) -> UpdateRun:
    """A run that has paused pool worker."""
    run = run_of(pools=pools, **spec)
    status = replace(run.status, step=step, paused_pools=entries or (LISTED,))
    if step in ("Pools", "Soaking"):
        status = replace(status, started=NOW - HOUR, completed=NOW, gated=True)
    return replace(run, status=status)


@pytest.mark.parametrize(
    ("run", "found", "step", "reason", "act", "named"),
    [
        pytest.param(
            run_of(pools=NEXT),
            seen(pool()),
            "Preparing",
            "PausingPools",
            "pause",
            ("worker",),
            id="11: before the start",
        ),
        pytest.param(run_of(), seen(pool()), "Committing", "AllOpen", "", (), id="11: Together pauses nothing"),
        pytest.param(
            run_of(pools=NEXT, skip_pools=("worker",)),
            seen(pool()),
            "Committing",
            "AllOpen",
            "",
            (),
            id="11: a skipped pool",
        ),
        pytest.param(
            run_of(pools=NEXT),
            seen(pool(machines=0)),
            "Committing",
            "AllOpen",
            "",
            (),
            id="11: a pool without machines",
        ),
        pytest.param(
            run_of(pools=NEXT),
            seen(pool(paused=True)),
            "Committing",
            "AllOpen",
            "",
            (),
            id="27: a person's pause stays",
        ),
        pytest.param(run_of(pools=NEXT), seen(), "Committing", "AllOpen", "", (), id="11: master is never paused"),
        pytest.param(
            run_of(pools=NEXT), seen(pool(), verdict=CLOSED), "Waiting", "", "preflight", (), id="11: a gate is closed"
        ),
        pytest.param(
            paused_run(),
            seen(pool(version="3")),
            "Preparing",
            "",
            "pause",
            ("worker",),
            id="48: the pause did not arrive",
        ),
        pytest.param(paused_run(), seen(OWN), "Committing", "AllOpen", "", (), id="11: the pools are paused"),
        pytest.param(
            paused_run(), seen(OWN, verdict=OUTSIDE), "Waiting", "OutsideWindow", "", (), id="11: the window is over"
        ),
        pytest.param(
            paused_run(),
            seen(OWN, verdict=NO_CALENDAR),
            "Waiting",
            "InvalidCalendar",
            "",
            (),
            id="11: whether a window is open is not known",
        ),
        pytest.param(
            paused_run(),
            seen(pool(by="u", version="3")),
            "Committing",
            "AllOpen",
            "",
            (),
            id="27: a person resumed the pool",
        ),
        pytest.param(
            paused_run("Committing"), seen(OWN, verdict=CLOSED), "Preparing", "Held", "", (), id="7: a gate closes"
        ),
        pytest.param(
            paused_run("Waiting"), seen(OWN), "Waiting", "", "resume", ("worker",), id="11: resumed after the window"
        ),
        pytest.param(
            paused_run("Waiting"),
            seen(pool()),
            "Waiting",
            "",
            "fence-pools",
            ("worker",),
            id="48: the pause may arrive",
        ),
        pytest.param(
            paused_run("Waiting"),
            seen(pool(paused=True, version="3")),
            "Waiting",
            "",
            "",
            (),
            id="27: paused by a person",
        ),
        pytest.param(
            paused_run("Waiting", pools=NEXT),
            situation(pools="forbidden"),
            "Waiting",
            "",
            "",
            (),
            id="11: the pools are not known",
        ),
        pytest.param(
            paused_run(control="Abort"),
            seen(OWN),
            "Preparing",
            "",
            "resume",
            ("worker",),
            id="32: aborted before the start",
        ),
        pytest.param(
            paused_run(control="Abort"), seen(pool(version="3")), "Aborted", "Aborted", "", (), id="32: then it ends"
        ),
        pytest.param(paused_run(control="Skip"), seen(OWN), "Preparing", "", "resume", ("worker",), id="32: skipped"),
        pytest.param(deleted(paused_run()), seen(OWN), "Preparing", "", "resume", ("worker",), id="61: deleted"),
        pytest.param(
            paused_run(control="Abort"), situation(pools="forbidden"), "Preparing", "", "", (), id="32: unknown pools"
        ),
        pytest.param(
            paused_run(),
            seen(OWN, found=cluster(entry("Completed"))),
            "Pools",
            "Completed",
            "",
            (),
            id="30: somebody updated meanwhile",
        ),
    ],
)
def test_before_the_start(
    run: UpdateRun, found: Situation, step: str, reason: str, act: str, named: tuple[str, ...]
) -> None:
    """Pools are listed, paused, and resumed again if the run does not start."""
    outcome = decide(run, found, NOW)
    last = outcome.status.decisions[-1].reason if outcome.status.decisions else ""
    assert (outcome.status.step, last, outcome.act, outcome.pools) == (step, reason, act, named)


def test_58_other_updaters_do_not_wait_for_pauses() -> None:
    """A hub's run with another actuator gets the policy's pools, and pauses none."""
    assert pools_to_pause(run_of(pools=NEXT), (pool(),)) == (pool(),)
    assert pools_to_pause(run_of("Field", pools=NEXT), (pool(),)) == ()


def test_48_pools_are_listed_before_they_are_paused() -> None:
    """The status that is stored before the pause names the pool and the version on which the pause is written."""
    status = decide(run_of(pools=NEXT), seen(pool(version="8")), NOW).status
    assert status.paused_pools == (PausedPool(name="worker", since=NOW, resource_version="8"),)
    again = decide(replace(run_of(pools=NEXT), status=status), seen(pool(version="9")), NOW + MINUTE)
    assert again.status.paused_pools == (PausedPool(name="worker", since=NOW + MINUTE, resource_version="9"),)


def test_11_pools_do_not_stay_paused_behind_a_closed_gate() -> None:
    """After 15 minutes the run waits, and resumes its pools."""
    run, _ = after(paused_run(), seen(OWN, verdict=CLOSED))
    assert after(run, seen(OWN, verdict=CLOSED), now=NOW + 14 * MINUTE)[0].status.step == "Preparing"
    run, _ = after(run, seen(OWN, verdict=CLOSED), now=NOW + 15 * MINUTE)
    assert run.status.step == "Waiting"
    run, outcome = after(run, seen(OWN), now=NOW + 16 * MINUTE)
    assert (outcome.act, outcome.pools) == ("resume", ("worker",))
    run, _ = after(run, seen(pool(version="3")), now=NOW + 17 * MINUTE)
    assert run.status.paused_pools == ()


RESUMED = replace(LISTED, resumed=NOW)
OPEN_FOR = {"resumption": {"worker": OPEN, "infra": OPEN}}
INFRA = pool("infra", paused=True, by="u", updated=False, version="2")
INFRA_LISTED = replace(LISTED, name="infra")
BOTH = (LISTED, INFRA_LISTED)
BEHIND = pool(updated=False, version="3")


@pytest.mark.parametrize(
    ("run", "found", "step", "reason", "act", "named"),
    [
        pytest.param(
            paused_run("Pools"), seen(OWN, **OPEN_FOR), "Pools", "PoolResumed", "resume", ("worker",), id="11: it fits"
        ),
        pytest.param(
            paused_run("Pools"), seen(OWN, resumption={"worker": CLOSED}), "Pools", "", "", (), id="14: a freeze"
        ),
        pytest.param(paused_run("Pools"), seen(OWN), "Pools", "", "", (), id="14: gates that nobody evaluated"),
        pytest.param(
            paused_run("Pools", pools=MANUAL),
            seen(OWN, **OPEN_FOR),
            "Pools",
            "",
            "",
            (),
            id="11: Manual resumes nothing",
        ),
        pytest.param(
            paused_run("Pools", *BOTH),
            seen(OWN, INFRA, **OPEN_FOR),
            "Pools",
            "PoolResumed",
            "resume",
            ("infra",),
            id="11: one by one",
        ),
        pytest.param(
            paused_run("Pools", *BOTH, pools=replace(NEXT, names=("worker",))),
            seen(OWN, INFRA, **OPEN_FOR),
            "Pools",
            "PoolResumed",
            "resume",
            ("worker",),
            id="11: names first",
        ),
        pytest.param(
            paused_run("Pools", *BOTH, pools=replace(NEXT, names=("worker",))),
            seen(OWN, INFRA, resumption={"worker": CLOSED, "infra": OPEN}),
            "Pools",
            "",
            "",
            (),
            id="11: no other pool goes before a named one",
        ),
        pytest.param(
            paused_run("Pools", *BOTH),
            seen(OWN, INFRA, resumption={"infra": CLOSED, "worker": OPEN}),
            "Pools",
            "PoolResumed",
            "resume",
            ("worker",),
            id="11: the first that fits",
        ),
        pytest.param(
            paused_run("Pools", RESUMED, INFRA_LISTED),
            seen(BEHIND, INFRA, **OPEN_FOR),
            "Pools",
            "",
            "",
            (),
            id="11: the next one waits until this one is updated",
        ),
        pytest.param(
            paused_run("Pools", RESUMED),
            seen(OWN, **OPEN_FOR),
            "Pools",
            "",
            "resume",
            ("worker",),
            id="48: did not arrive",
        ),
        pytest.param(
            paused_run("Pools", LISTED),
            seen(pool(by="u", updated=False)),
            "Pools",
            "",
            "resume",
            ("worker",),
            id="27: a person resumed it, and the annotation goes",
        ),
        pytest.param(
            paused_run("Pools", RESUMED),
            seen(pool(version="4")),
            "Soaking",
            "PoolsUpdated",
            "",
            (),
            id="11: all updated",
        ),
        pytest.param(
            paused_run("Pools", RESUMED), seen(), "Soaking", "PoolsUpdated", "", (), id="11: the pool is gone"
        ),
        pytest.param(
            paused_run("Pools", LISTED),
            seen(pool(paused=True)),
            "Soaking",
            "PoolsUpdated",
            "",
            (),
            id="27: a person's pause",
        ),
        pytest.param(paused_run("Pools"), situation(pools="forbidden"), "Pools", "", "", (), id="11: unknown pools"),
        pytest.param(
            paused_run("Pools", control="Abort"),
            seen(OWN, **OPEN_FOR),
            "Aborted",
            "Aborted",
            "",
            (),
            id="32: aborted after",
        ),
        pytest.param(
            deleted(paused_run("Pools")), seen(OWN, **OPEN_FOR), "Aborted", "Aborted", "", (), id="61: deleted"
        ),
    ],
)
def test_after_the_control_plane(
    run: UpdateRun, found: Situation, step: str, reason: str, act: str, named: tuple[str, ...]
) -> None:
    """Pools are resumed one by one, behind gates, and a person's pause stays."""
    outcome = decide(run, found, NOW + MINUTE)
    last = outcome.status.decisions[-1].reason if outcome.status.decisions else ""
    assert (outcome.status.step, last, outcome.act, outcome.pools) == (step, reason, act, named)


def test_48_a_resumption_without_an_effect_is_decided_again() -> None:
    """The gate has closed since, so the pool stays paused and does not count as resumed."""
    outcome = decide(paused_run("Pools", RESUMED), seen(OWN, resumption={"worker": CLOSED}), NOW + MINUTE)
    assert (outcome.act, outcome.status.paused_pools) == ("", (LISTED,))


@pytest.mark.parametrize(
    ("run", "behind", "minutes", "reason"),
    [
        pytest.param(paused_run("Pools", RESUMED), BEHIND, 24 * 60 - 1, "", id="a minute before the deadline"),
        pytest.param(paused_run("Pools", RESUMED), BEHIND, 24 * 60, "PoolsDeadline", id="the deadline"),
        pytest.param(
            paused_run("Pools", RESUMED), pool(updated=False, degraded_since=NOW), 29, "", id="degraded for 29 minutes"
        ),
        pytest.param(
            paused_run("Pools", RESUMED),
            pool(updated=False, degraded_since=NOW),
            30,
            "PoolDegraded",
            id="for 30 minutes",
        ),
        pytest.param(
            paused_run("Pools", RESUMED),
            pool(updated=False, degraded_since=NOW - HOUR),
            29,
            "",
            id="degraded before it was resumed",
        ),
    ],
)
def test_33_a_pool_that_fails(run: UpdateRun, behind: MachineConfigPool, minutes: int, reason: str) -> None:
    """The run fails, no further pool is resumed, and the message says how to resume those that are left."""
    entries = (*run.status.paused_pools, INFRA_LISTED)
    run = replace(run, status=replace(run.status, paused_pools=entries))
    outcome = decide(run, seen(behind, INFRA, **OPEN_FOR), NOW + minutes * MINUTE)
    last = outcome.status.decisions[-1] if outcome.status.decisions else None
    assert (last.reason if last else "", outcome.act) == (reason, "")
    assert last is None or "This run leaves pool infra paused: `oc patch mcp NAME" in last.message


def test_11_pools_that_are_updated_together_are_waited_for() -> None:
    """Without pauses the soak begins when all pools are updated."""
    updating, _ = after(run_of(), seen(pool()), seen(pool(), found=cluster(entry(), desired=OURS), owns_request=True))
    done = cluster(entry("Completed"), desired=OURS)
    run, _ = after(updating, seen(BEHIND, found=done))
    assert run.status.step == "Pools"
    assert after(run, seen(BEHIND, found=done))[0].status.step == "Pools"
    assert after(run, seen(pool(), found=done))[0].status.step == "Soaking"


def test_27_a_persons_pause_is_named_at_the_end() -> None:
    """Nobody resumes the pool, and the last decision names it."""
    run = paused_run("Soaking", replace(RESUMED, updated=NOW), soak="0s")
    outcome = decide(run, seen(pool("infra", paused=True)), NOW)
    assert outcome.status.decisions[-1].message == "Somebody else paused pool infra: not updated."


def test_11_the_accepted_names_end_with_the_run() -> None:
    """The run's own pauses are accepted with the commit, and forgotten before the run is Done; other names stay."""
    run = paused_run("Soaking", replace(RESUMED, updated=NOW), soak="0s")
    current = Update(version=OURS.version, image=OURS.image, accept_risks=(AcceptRisk(name="A"),))
    target = {"version": OURS.version, "image": OURS.image}
    names = ["A", "MachineConfigPoolPaused-worker"]
    committed = desired_update("commit", run, current)
    assert committed == {**target, "acceptRisks": [{"name": name} for name in names]}
    accepted = replace(current, accept_risks=tuple(AcceptRisk(name=name) for name in names))
    found = cluster(entry("Completed"), desired=accepted)
    outcome = decide(run, seen(pool(), found=found, owns_request=True), NOW)
    assert (outcome.status.step, outcome.act) == ("Soaking", "forget")
    assert desired_update("forget", run, accepted) == {**target, "acceptRisks": [{"name": "A"}]}
    found = cluster(entry("Completed"), desired=current)
    assert decide(run, seen(pool(), found=found, owns_request=True), NOW).status.step == "Done"
    failed = replace(run, status=replace(run.status, step="Failed"))
    following = desired_update("preflight", run_of(), accepted, runs=(failed,))
    assert following == {**target, "mode": "Preflight", "acceptRisks": [{"name": "A"}]}


PAUSED_RISK = risk("MachineConfigPoolPaused-worker")
OWN_PAUSE = {"worker": NOW - 2 * MINUTE}
PARTS = (
    ForecastPart("control plane", Range(3600, 7200), ()),
    ForecastPart("worker", Range(3600, 6 * 3600), ()),
    ForecastPart("infra", Range(600, 1200), (), guessed=True),
)
LONG = Forecast(total=Range(3600, 8 * 3600), parts=PARTS, guessed=True, needs_help=("x",))


def pools_of(**changes: Any) -> Observed:
    """A cluster of a run that pauses pools."""
    return observed(pools_when="NextWindow", forecast=LONG, **changes)


@pytest.mark.parametrize(
    ("cluster_", "name", "state", "reason"),
    [
        pytest.param(
            observed(findings=findings(PAUSED_RISK), own_pauses=OWN_PAUSE),
            "preflight",
            "Open",
            "Clear",
            id="11: own pause",
        ),
        pytest.param(
            observed(findings=findings(PAUSED_RISK), own_pauses={"infra": NOW - 2 * MINUTE}),
            "preflight",
            "Closed",
            "PreflightRisks",
            id="27: another pause counts",
        ),
        pytest.param(
            observed(findings=findings(replace(PAUSED_RISK, applies="Unknown")), own_pauses=OWN_PAUSE),
            "preflight",
            "Open",
            "Clear",
            id="11: an unknown own pause",
        ),
        pytest.param(
            observed(own_pauses={"worker": NOW}),
            "preflight",
            "Unknown",
            "PreflightOld",
            id="11: a report before the pause",
        ),
        pytest.param(
            observed(findings=findings(PAUSED_RISK), own_pauses={"worker": NOW}),
            "preflight",
            "Open",
            "Clear",
            id="11: a report that names the pause was made after it",
        ),
        pytest.param(pools_of(), "forecast", "Open", "Fits", id="11: the control plane fits, the pools do not"),
        pytest.param(observed(forecast=LONG), "forecast", "Unknown", "FitUnknown", id="11: Together needs all to fit"),
        pytest.param(pools_of(), "pools", "Open", "Known", id="11: known"),
        pytest.param(pools_of(may_pause=False), "pools", "Closed", "RightsMissing", id="11: without --with-pools"),
        pytest.param(pools_of(why_pools_unknown="x"), "pools", "Unknown", "PoolsUnknown", id="11: pools are not known"),
    ],
)
def test_gates_before_the_start(cluster_: Observed, name: str, state: str, reason: str) -> None:
    """Own pauses do not close the preflight's gate, and the pools need not fit into the window of the start."""
    [gate] = [gate for gate in evaluate(cluster_, NOW).gates if gate.name == name]
    assert (gate.state, gate.reason) == (state, reason)


@pytest.mark.parametrize(
    ("pool_name", "now", "state", "reason"),
    [
        pytest.param("worker", NOW, "Closed", "DoesNotFit", id="11: does not fit into what is left"),
        pytest.param("worker", NOW - HOUR, "Open", "Fits", id="11: fits at the opening"),
        pytest.param("infra", NOW, "Unknown", "FitUnknown", id="11: guessed"),
        pytest.param("other", NOW, "Unknown", "FitUnknown", id="11: no forecast"),
        pytest.param("worker", NOW - 2 * HOUR, "Closed", "OutsideWindow", id="11: outside of windows"),
    ],
)
def test_11_each_pool_fits_into_its_window(pool_name: str, now: datetime, state: str, reason: str) -> None:
    """The window is from 21:00 to 03:00 UTC."""
    healthy = replace(HEALTHY, healthy_since=NOW - timedelta(days=1))
    gate = evaluate_resumption(pools_of(health=healthy), pool_name, now).gates[-1]
    assert (gate.state, gate.reason) == (state, reason)


def test_26_a_long_pause_is_reported_once() -> None:
    """The run does not fail, and asks for a longer window."""
    run = paused_run("Pools")
    run, _ = after(run, seen(OWN), now=NOW + timedelta(days=14) - MINUTE)
    assert run.status.decisions == ()
    run, _ = after(run, seen(OWN), seen(OWN), now=NOW + timedelta(days=14))
    assert [each.reason for each in run.status.decisions] == ["PausedTooLong"]
