"""What the metrics of update policies show after a pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.machineconfig_v1 import MachineConfigPool, MachineConfigPoolSpec
from runup.api.update_policy_v1alpha1 import (
    PAUSED_BY,
    CalendarWindow,
    Candidate,
    PausedPool,
    RunDecision,
    RunGate,
    Step,
    UpdateCalendar,
    UpdateCalendarSpec,
    UpdatePolicyStatus,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.rollout.control.metrics import Metrics
from runup.rollout.decide import calendar
from runup.rollout.decide.metric_samples import closing_gate, missed_openings

NOW = datetime(2026, 12, 15, 12, tzinfo=UTC)
GATES = (
    RunGate(name="preflight", state="Closed", reason="PreflightRisks"),
    RunGate(name="alerts", state="Unknown", reason="AlertsUnknown"),
    RunGate(name="health", state="Open", reason="Healthy"),
    RunGate(name="window", state="Closed", reason="OutsideWindow"),
)
NIGHTS = calendar.read(
    UpdateCalendar(
        metadata=ObjectMeta(name="nights"),
        spec=UpdateCalendarSpec(time_zone="UTC", windows=(CalendarWindow(opens="0 22 * * *", for_="2h"),)),
    )
)


def run(step: Step = "Waiting", reason: str = "", *, name: str = "a", gates: tuple[RunGate, ...] = GATES) -> UpdateRun:
    """A run that was created three and a half days ago."""
    decisions = (RunDecision(at=NOW, step=step, reason=reason),) if reason else ()
    return UpdateRun(
        metadata=ObjectMeta(name=name, uid=name, creation_timestamp=NOW - timedelta(days=3.5)),
        spec=UpdateRunSpec(target=Candidate(version="5.1.0", image="i@sha256:1")),
        status=UpdateRunStatus(step=step, gates=gates, decisions=decisions),
    )


def status(ready: str = "True", reason: str = "AsExpected") -> UpdatePolicyStatus:
    """The status of a policy."""
    condition = Condition(type="Ready", status=ready, reason=reason)  # type: ignore[arg-type]
    return UpdatePolicyStatus(conditions=(condition,), next_opening=NOW + timedelta(hours=10))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """A sample."""
    return metrics.registry.get_sample_value(f"runup_update_{name}", labels)


def test_shows_the_gates_of_the_active_run() -> None:
    """Open, closed and unknown differ. The time of a gate that is not open grows, and begins at zero again."""
    metrics = Metrics()
    metrics.observe_runs([run()], NOW, [NIGHTS])
    found = {gate.name: value(metrics, "gate_open", gate=gate.name) for gate in GATES}
    assert found == {"preflight": 0, "alerts": -1, "health": 1, "window": 0}
    later = NOW + timedelta(minutes=5)
    metrics.observe_runs([run()], later, [NIGHTS])
    assert value(metrics, "gate_closed_seconds", gate="alerts", reason="AlertsUnknown") == 300
    metrics.observe_runs([run(gates=())], later, [NIGHTS])
    assert value(metrics, "gate_open", gate="alerts") is None
    metrics.observe_runs([run()], later + timedelta(minutes=1), [NIGHTS])
    assert value(metrics, "gate_closed_seconds", gate="alerts", reason="AlertsUnknown") == 0


def test_counts_missed_openings() -> None:
    """The nights since the run was created, with the first gate that is not a time gate."""
    metrics = Metrics()
    metrics.observe_runs([run()], NOW, [NIGHTS])
    assert value(metrics, "missed_openings", gate="preflight") == 3
    # An opening that has not ended is not missed.
    in_window = NOW.replace(hour=23)
    metrics.observe_runs([run(gates=GATES[3:])], in_window, [NIGHTS])
    assert value(metrics, "missed_openings", gate="window") == 3
    metrics.observe_runs([run()], NOW, [])
    assert value(metrics, "missed_openings", gate="preflight") == 0
    metrics.observe_runs([run()], NOW + timedelta(days=90), [NIGHTS])
    assert value(metrics, "missed_openings", gate="preflight") == 10


def test_an_update_that_has_begun_has_no_gates() -> None:
    """Its gates are no longer evaluated for a start."""
    metrics = Metrics()
    metrics.observe_runs([run("ControlPlane", "Started")], NOW, [NIGHTS])
    assert value(metrics, "run_step", run="a", step="ControlPlane") == 1
    assert value(metrics, "gate_open", gate="preflight") is None
    assert value(metrics, "missed_openings", gate="preflight") is None


def test_counts_runs_that_end() -> None:
    """Each counts once, if it ended while this process led; a failed one is shown until it is acknowledged."""
    metrics = Metrics()
    assert value(metrics, "runs_total", outcome="WithdrawnBefore") == 0
    old = run("Done", "Succeeded", name="old")
    metrics.observe_runs([old, run("Soaking")], NOW, [])
    for _ in range(2):
        metrics.observe_runs([old, run("Failed", "UnhealthyAfter")], NOW, [])
    assert value(metrics, "runs_total", outcome="UnhealthyAfter") == 1
    assert value(metrics, "runs_total", outcome="Succeeded") == 0
    assert value(metrics, "run_step", run="a", step="Failed") == 1
    acknowledged = replace(
        run("Failed", "UnhealthyAfter"),
        metadata=replace(run().metadata, annotations={"update.runup.dev/acknowledged": "true"}),
    )
    metrics.observe_runs([old, acknowledged], NOW, [])
    assert value(metrics, "run_step", run="a", step="Failed") is None
    assert value(metrics, "runs_total", outcome="UnhealthyAfter") == 1


def test_shows_whether_the_policy_can_start_updates() -> None:
    """With the reason; absent without a policy. Unknown is not ready."""
    metrics = Metrics()
    assert value(metrics, "pass_timestamp_seconds") == 0
    metrics.observe_policy(status("False", "NoCalendar"))
    assert value(metrics, "policy_ready", reason="NoCalendar") == 0
    metrics.observe_policy(status("Unknown", "ClockSkew"))
    assert value(metrics, "policy_ready", reason="ClockSkew") == 0
    metrics.observe_policy(status())
    assert value(metrics, "policy_ready", reason="AsExpected") == 1
    assert value(metrics, "next_opening_timestamp_seconds") == (NOW + timedelta(hours=10)).timestamp()
    metrics.observe_policy(None)
    assert value(metrics, "policy_ready", reason="AsExpected") is None
    assert value(metrics, "next_opening_timestamp_seconds") == 0
    metrics.observe_runs([], NOW, [])
    assert value(metrics, "pass_timestamp_seconds") == NOW.timestamp()


def test_26_shows_pools_that_stay_paused() -> None:
    """A pool counts while it is paused under the name of the run, also after the run failed; no other pause does."""
    metrics = Metrics()
    entries = (PausedPool(name="worker", since=NOW - timedelta(days=8), resource_version="1"),)
    failed = run("Failed", "PoolDegraded")
    failed = replace(failed, status=replace(failed.status, paused_pools=entries))
    marked = MachineConfigPool(
        metadata=ObjectMeta(name="worker", annotations={PAUSED_BY: "a"}), spec=MachineConfigPoolSpec(paused=True)
    )
    metrics.observe_runs([failed], NOW, [], (marked,))
    assert value(metrics, "paused_pool_seconds", pool="worker") == 8 * 86400
    assert value(metrics, "paused_pool_limit_seconds", pool="worker") == 14 * 86400
    metrics.observe_runs([], NOW, [], (marked,))
    metrics.observe_runs([], NOW + timedelta(minutes=1), [], (marked,))
    assert value(metrics, "paused_pool_seconds", pool="worker") == 60
    assert value(metrics, "paused_pool_limit_seconds", pool="worker") == 0
    metrics.observe_runs([failed], NOW, [], (marked,))
    metrics.observe_runs([failed], NOW, [], "forbidden")
    assert value(metrics, "paused_pool_seconds", pool="worker") == 8 * 86400
    metrics.observe_runs([failed], NOW, [], (replace(marked, metadata=ObjectMeta(name="worker")),))
    assert value(metrics, "paused_pool_seconds", pool="worker") is None


def test_29_shows_a_release_that_was_withdrawn_during_its_update() -> None:
    """Until the run ends."""
    metrics = Metrics()
    condition = Condition(type="TargetWithdrawn", status="True", reason="WithdrawnDuring")
    updating = run("ControlPlane", "WithdrawnDuring")
    updating = replace(updating, status=replace(updating.status, conditions=(condition,)))
    metrics.observe_runs([updating], NOW, [])
    assert value(metrics, "target_withdrawn", run="a") == 1
    metrics.observe_runs([replace(updating, status=replace(updating.status, step="Done"))], NOW, [])
    assert value(metrics, "target_withdrawn", run="a") is None


def test_no_opening_is_missed_of_calendars_that_never_open() -> None:
    """The calendars have no opening in common."""
    never = UpdateCalendarSpec(time_zone="UTC", windows=(CalendarWindow(opens="0 3 29 2 *", for_="2h"),))
    read = calendar.read(UpdateCalendar(metadata=ObjectMeta(name="never"), spec=never))
    assert missed_openings((read,), NOW - timedelta(days=9), NOW) == 0


def test_a_gate_that_is_unknown_keeps_a_run_from_starting() -> None:
    """It is named before a gate about time that is closed."""
    gates = (
        RunGate(name="window", state="Closed", reason="OutsideWindow"),
        RunGate(name="alerts", state="Unknown", reason="AlertsUnknown"),
    )
    assert closing_gate(run(gates=gates)) == "alerts"
