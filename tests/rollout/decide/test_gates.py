"""Each gate alone, and all together: what opens, what closes, and what is unknown. Numbers are those of the cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.observed_cluster import (
    DONE,
    IMAGE,
    NIGHTS,
    NOW,
    OTHER_IMAGE,
    approval,
    findings,
    observed,
    parsed_calendar,
    risk,
)

from kubekit.api.core_v1 import Node, NodeStatus
from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.advice.decide import preflight_reasons as reasons
from runup.advice.decide.acceptance import Growth
from runup.api.config_v1 import ClusterOperator, ClusterOperatorStatus, ClusterVersion, ClusterVersionStatus
from runup.api.machineconfig_v1 import MachineConfigPool, MachineConfigPoolSpec, MachineConfigPoolStatus
from runup.api.update_policy_v1alpha1 import (
    AlertGate,
    ApprovalGate,
    PolicyGates,
    PolicyTarget,
    PreflightGate,
)
from runup.preflight.decide.preflight_state import Phase
from runup.rehearse.decide.update_forecast import Forecast, Range
from runup.rollout.decide.gates.all_gates import evaluate, evaluate_resumption
from runup.rollout.decide.gates.cluster import health_of
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Approvals, Health, Holds, Observed, Offer, Turn
from runup.updatestatus.decide.alerts import Alert, Unreadable

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
CRITICAL = PolicyGates(preflight=PreflightGate(fail_on="critical"))
CAB = PolicyGates(approvals=(ApprovalGate(name="cab"),))
GROWN = Growth(added=("Node b",), accepted_for=1)


def firing(name: str = "KubeAPIDown", for_: timedelta = timedelta(minutes=6), **changes: Any) -> Alert:
    """An alert that has fired for so long."""
    labels = {"alertname": name, "severity": "critical"} | changes.pop("labels", {})
    return Alert(**{"labels": labels, "annotations": {}, "state": "firing", "active_at": NOW - for_, **changes})


def with_findings(*risks: Any, **changes: Any) -> Observed:
    """A cluster whose preflight found these risks."""
    return observed(findings=findings(*risks, **changes))


def watched(*risks: Any, **changes: Any) -> Observed:
    """A cluster whose operator watches with a preflight that has found nothing new for 9 hours."""
    running = Condition(type="PreflightRunning", status="True", reason="Watching")
    fields = {"observed": NOW - 9 * HOUR, "phase": Phase.LIVE, "conditions": (*DONE[:2], running)}
    return with_findings(*risks, **fields | changes)


def gate_of(cluster: Observed, name: str) -> Gate:
    """The gate of this name."""
    [gate] = [gate for gate in evaluate(cluster, NOW).gates if gate.name == name]
    return gate


def test_1_all_gates_are_open() -> None:
    """A clean report, an open window and nothing else in the way let the update start."""
    verdict = evaluate(observed(), NOW)
    assert {gate.state for gate in verdict.gates} == {"Open"}
    assert (verdict.open, verdict.reason, verdict.exit_code) == (True, "AllOpen", 0)
    assert verdict.until(NOW) == NOW + 59 * MINUTE


def test_7_the_gate_is_open_until_an_acceptance_ends() -> None:
    """The gate is evaluated again at the end of an acceptance that it needs, and not of others."""
    ends = {"A": NOW + MINUTE, "B": NOW + timedelta(seconds=1), "C": NOW + timedelta(seconds=2)}
    found = findings(risk("A", accepted=True), risk("B", applies="False", accepted=True))
    assert gate_of(observed(findings=found, acceptance_ends=ends), "preflight").until == NOW + MINUTE
    unknown = findings(risk("A", accepted=True, applies="Unknown"))
    assert gate_of(observed(findings=unknown, acceptance_ends=ends), "preflight").until == NOW + MINUTE


def test_no_gates_are_not_open() -> None:
    """A verdict without gates lets nothing start."""
    assert (Verdict(()).open, Verdict(()).exit_code) == (False, 3)


@pytest.mark.parametrize(
    ("cluster", "state", "reason"),
    [
        pytest.param(with_findings(risk("NodeCordoned")), "Closed", "PreflightRisks", id="2: a warning"),
        pytest.param(with_findings(risk(severity="info")), "Open", "Clear", id="2: info is below warning"),
        pytest.param(
            observed(findings=findings(risk()), gates=CRITICAL), "Open", "Clear", id="2: a warning is below critical"
        ),
        pytest.param(
            observed(findings=findings(risk(applies="Unknown", severity="info")), gates=CRITICAL),
            "Unknown",
            "PreflightUnknown",
            id="3: one unknown, failOn critical",
        ),
        pytest.param(
            observed(findings=findings(risk(applies="Unknown", accepted=True)), gates=CRITICAL),
            "Open",
            "Clear",
            id="3: accepted by name",
        ),
        pytest.param(observed(report_image=OTHER_IMAGE), "Closed", "PreflightOtherRelease", id="4: another digest"),
        pytest.param(observed(report_image=""), "Closed", "PreflightOtherRelease", id="4: no image"),
        pytest.param(with_findings(observed=NOW - 61 * MINUTE), "Unknown", "PreflightOld", id="5: 61 minutes old"),
        pytest.param(with_findings(observed=NOW - 60 * MINUTE), "Open", "Clear", id="5: 60 minutes old"),
        pytest.param(with_findings(risk(accepted=True)), "Open", "Clear", id="6: accepted"),
        pytest.param(with_findings(risk(accepted=True, grown=GROWN)), "Closed", "RiskGrew", id="6: has grown"),
        pytest.param(
            with_findings(risk(accepted=True, grown=GROWN, applies="Unknown")),
            "Closed",
            "RiskGrew",
            id="6: or may have",
        ),
        pytest.param(
            with_findings(risk(accepted=True, grown=GROWN, applies="False")), "Open", "Clear", id="6: but is gone"
        ),
        pytest.param(
            observed(findings=findings(risk()), ended_acceptances=frozenset("A")),
            "Closed",
            "AcceptanceEnded",
            id="7: its acceptance has ended",
        ),
        pytest.param(
            observed(findings=findings(risk(), risk("B")), ended_acceptances=frozenset("A")),
            "Closed",
            "PreflightRisks",
            id="7: one of two risks was never accepted",
        ),
        pytest.param(
            observed(findings=findings(), ended_acceptances=frozenset("A")), "Open", "Clear", id="7: ended and gone"
        ),
        pytest.param(
            observed(findings=findings(risk(acceptable=False, severity="info")), gates=CRITICAL),
            "Closed",
            "PreflightRisks",
            id="8: a risk that acceptance does not lift",
        ),
        pytest.param(
            observed(
                findings=findings(guards=(Condition(type="Progressing", status="True", reason="Working"),)),
                gates=CRITICAL,
            ),
            "Closed",
            "PreflightRisks",
            id="8: a guard of ClusterVersion",
        ),
        pytest.param(with_findings(risk(reason=reasons.REPAIRED)), "Open", "Clear", id="9: it only informs"),
        pytest.param(with_findings(risk(applies="False")), "Open", "Clear", id="it does not apply"),
        pytest.param(observed(findings=None), "Unknown", "PreflightMissing", id="no preflight"),
        pytest.param(with_findings(observed=None), "Unknown", "PreflightMissing", id="no report"),
        pytest.param(with_findings(conditions=()), "Unknown", "PreflightMissing", id="not complete"),
        pytest.param(with_findings(partial=True), "Unknown", "PreflightMissing", id="60: a partial report"),
        pytest.param(with_findings(waived=True), "Closed", "PreflightRisks", id="60: a waived signature"),
        pytest.param(
            with_findings(observed=NOW + timedelta(seconds=61)), "Unknown", "PreflightOld", id="60: from the future"
        ),
        pytest.param(with_findings(observed=NOW + timedelta(seconds=60)), "Open", "Clear", id="60: a minute of skew"),
        pytest.param(watched(), "Open", "Clear", id="5: 9 hours old, but watched since"),
        pytest.param(watched(lapse="since then"), "Unknown", "PreflightOld", id="5: nobody watches any more"),
        pytest.param(watched(phase=Phase.RUNNING), "Unknown", "PreflightOld", id="5: not complete"),
        pytest.param(watched(risk()), "Closed", "PreflightRisks", id="5: watched, with a risk"),
        pytest.param(with_findings(source="5.0.2"), "Unknown", "PreflightOld", id="made on another release"),
        pytest.param(with_findings(phase=Phase.ENDED), "Unknown", "PreflightOld", id="ended"),
        pytest.param(with_findings(phase=Phase.UNCONFIRMED), "Unknown", "PreflightOld", id="not confirmed"),
    ],
)
def test_the_gate_of_the_preflight(cluster: Observed, state: str, reason: str) -> None:
    """A risk closes the gate from the severity of `failOn` on; what is not known never opens it."""
    gate = gate_of(cluster, "preflight")
    assert (gate.state, gate.reason) == (state, reason), gate.message
    assert evaluate(cluster, NOW).open is (state == "Open")


def test_2_the_gate_names_the_risk() -> None:
    """The message names each risk with its severity."""
    assert gate_of(with_findings(risk("NodeCordoned")), "preflight").message == (
        "1 risk applies: NodeCordoned (warning)."
    )


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        pytest.param({"target": PolicyTarget(block_versions=("5.1.0",))}, "Closed", "TargetBlocked", id="58: blocked"),
        pytest.param(
            {"target": PolicyTarget(block_versions=("5.1.x",))}, "Closed", "TargetBlocked", id="minor blocked"
        ),
        pytest.param({"target": PolicyTarget(block_versions=("5.10.x", "5.1.01"))}, "Open", "Offered", id="others"),
        pytest.param({"offer": Offer()}, "Closed", "TargetWithdrawn", id="29: withdrawn before the start"),
        pytest.param({"offer": Offer(image=OTHER_IMAGE)}, "Closed", "PreflightOtherRelease", id="4: offered otherwise"),
        pytest.param({"offer": Offer(why_unknown="no answer")}, "Unknown", "GraphNotAnswering", id="no graph"),
        pytest.param(
            {"offer": Offer(why_unknown="x"), "target": PolicyTarget(follow="Exact", version="5.1.0", image=IMAGE)},
            "Open",
            "Named",
            id="an image by name needs no graph",
        ),
        pytest.param(
            {"offer": Offer(image=IMAGE, is_named=True)}, "Closed", "TargetBlocked", id="a version of no Kubernetes"
        ),
    ],
)
def test_the_gate_of_the_target(changes: dict[str, Any], state: str, reason: str) -> None:
    """A release is offered as the wanted image, and not blocked."""
    gate = gate_of(observed(**changes), "target")
    assert (gate.state, gate.reason) == (state, reason)


def test_58_an_image_without_a_digest_never_starts() -> None:
    """A tag is not known to be what was checked."""
    wanted = replace(observed().wanted, image="example.com/release:5.1.0")
    assert gate_of(observed(wanted=wanted, offer=Offer(image=wanted.image)), "target").state == "Unknown"


@pytest.mark.parametrize(
    ("alerts", "state", "reason"),
    [
        pytest.param((firing(),), "Closed", "AlertsFiring", id="22: critical for 6 minutes"),
        pytest.param((firing(for_=5 * MINUTE),), "Closed", "AlertsFiring", id="22: for 5 minutes"),
        pytest.param((firing(for_=4 * MINUTE),), "Open", "NoneFiring", id="22: for 4 minutes"),
        pytest.param((firing(active_at=None),), "Closed", "AlertsFiring", id="22: since an unknown time"),
        pytest.param((firing(state="pending"),), "Open", "NoneFiring", id="22: pending"),
        pytest.param((firing(labels={"severity": "warning"}),), "Open", "NoneFiring", id="22: a warning"),
        pytest.param((firing("UpdateRunFailed"), firing("Watchdog")), "Open", "NoneFiring", id="22: only our own"),
        pytest.param((firing("UpdateableThing"),), "Closed", "AlertsFiring", id="22: a name that only begins alike"),
        pytest.param(Unreadable("timeout"), "Unknown", "AlertsUnknown", id="23: no answer"),
    ],
)
def test_the_gate_of_alerts(alerts: Any, state: str, reason: str) -> None:
    """An alert closes the gate once it has fired for longer than allowed."""
    gate = gate_of(observed(alerts=alerts), "alerts")
    assert (gate.state, gate.reason) == (state, reason)


def test_22_an_excepted_alert_does_not_close() -> None:
    """The policy excepts alerts by name."""
    gates = PolicyGates(alerts=AlertGate(except_=("KubeAPIDown",)))
    assert gate_of(observed(alerts=(firing(),), gates=gates), "alerts").state == "Open"


@pytest.mark.parametrize(
    ("health", "state", "reason"),
    [
        pytest.param(Health(healthy_since=NOW - 10 * MINUTE), "Open", "Healthy", id="settled"),
        pytest.param(Health(healthy_since=NOW - 9 * MINUTE), "Closed", "Unhealthy", id="not settled yet"),
        pytest.param(Health(problems=("x",), healthy_since=NOW - HOUR), "Closed", "Unhealthy", id="a problem"),
        pytest.param(Health(unknown=("x",), healthy_since=NOW - HOUR), "Unknown", "HealthUnknown", id="24: unknown"),
        pytest.param(Health(), "Unknown", "HealthUnknown", id="24: since an unknown time"),
        pytest.param("Node: forbidden", "Unknown", "HealthUnknown", id="24: unreadable"),
    ],
)
def test_the_gate_of_health(health: Any, state: str, reason: str) -> None:
    """The cluster must have been healthy for the settling time."""
    gate = gate_of(observed(health=health), "health")
    assert (gate.state, gate.reason) == (state, reason)


def conditions(**statuses: str) -> tuple[Condition, ...]:
    """Conditions that last changed an hour ago."""
    return tuple(
        Condition(type=type_, status=status, last_transition_time=NOW - HOUR)  # type: ignore[arg-type]
        for type_, status in statuses.items()
    )


def healthy_objects() -> dict[str, Any]:
    """The objects of a healthy cluster."""
    version = ClusterVersion(status=ClusterVersionStatus(conditions=conditions(Failing="False", Progressing="False")))
    operator = ClusterOperator(
        metadata=ObjectMeta(name="etcd"),
        status=ClusterOperatorStatus(conditions=conditions(Available="True", Degraded="False")),
    )
    pool = MachineConfigPool(
        metadata=ObjectMeta(name="worker"),
        status=MachineConfigPoolStatus(conditions=conditions(Updated="True", Degraded="False")),
    )
    node = Node(metadata=ObjectMeta(name="a"), status=NodeStatus(conditions=conditions(Ready="True")))
    return {"cluster": version, "operators": [operator], "pools": [pool], "nodes": [node]}


def test_health_of_a_healthy_cluster() -> None:
    """The cluster is healthy since the last change of its conditions."""
    assert health_of(**healthy_objects()) == Health(healthy_since=NOW - HOUR)


@pytest.mark.parametrize(
    ("name", "statuses", "problem"),
    [
        ("cluster", {"Failing": "True", "Progressing": "False"}, "ClusterVersion has Failing=True"),
        ("cluster", {"Failing": "False", "Progressing": "True"}, "ClusterVersion has Progressing=True"),
        (
            "cluster",
            {"Failing": "False", "Progressing": "False", "Invalid": "True"},
            "ClusterVersion has Invalid=True",
        ),
        ("operators", {"Available": "False", "Degraded": "False"}, "ClusterOperator etcd has Available=False"),
        ("operators", {"Available": "True", "Degraded": "True"}, "ClusterOperator etcd has Degraded=True"),
        ("pools", {"Updated": "False", "Degraded": "False"}, "MachineConfigPool worker has Updated=False"),
        ("pools", {"Updated": "True", "Degraded": "True"}, "MachineConfigPool worker has Degraded=True"),
        ("nodes", {"Ready": "False"}, "Node a has Ready=False"),
    ],
)
def test_unhealthy_objects(name: str, statuses: dict[str, str], problem: str) -> None:
    """Each condition that is not as it should be is named; a condition that is missing is unknown."""
    objects = healthy_objects()
    subject = objects[name] if name == "cluster" else objects[name][0]

    def changed(found: tuple[Condition, ...]) -> Health:
        new = replace(subject, status=replace(subject.status, conditions=found))
        return health_of(**{**objects, name: new if name == "cluster" else [new]})

    assert changed(conditions(**statuses)).problems == (problem,)
    assert changed(()).unknown
    assert changed(tuple(replace(each, last_transition_time=None) for each in subject.status.conditions)) == Health()


def test_24_a_condition_that_is_unknown_is_not_unhealthy() -> None:
    """The kubelet of a node does not report: the node is neither healthy nor unhealthy."""
    node = Node(metadata=ObjectMeta(name="a"), status=NodeStatus(conditions=conditions(Ready="Unknown")))
    health = health_of(**{**healthy_objects(), "nodes": [node]})
    assert (health.problems, health.unknown) == ((), ("Ready of Node a is unknown",))


def test_health_without_objects_is_unknown() -> None:
    """No operators and no nodes are not a healthy cluster."""
    assert len(health_of(**{**healthy_objects(), "operators": [], "nodes": []}).unknown) == 2


def test_a_paused_pool_need_not_be_updated() -> None:
    """A paused pool may be out of date, but not degraded."""
    objects = healthy_objects()
    status = MachineConfigPoolStatus(conditions=conditions(Updated="False", Degraded="False"))
    objects["pools"] = [replace(objects["pools"][0], spec=MachineConfigPoolSpec(paused=True), status=status)]
    assert health_of(**objects) == Health(healthy_since=NOW - HOUR)


def approved(*given: Any, **changes: Any) -> Observed:
    """A cluster whose policy needs approval `cab`, with these approvals."""
    approvals = Approvals(**{"given": given, "requested_by": "bob", **changes})
    return observed(gates=CAB, approvals=approvals)


@pytest.mark.parametrize(
    ("cluster", "state", "reason"),
    [
        pytest.param(approved(approval()), "Open", "Approved", id="1: approved"),
        pytest.param(approved(), "Closed", "ApprovalMissing", id="20: deleted before the start"),
        pytest.param(approved(approval("bob")), "Closed", "ApprovalMissing", id="18: by the requester"),
        pytest.param(
            approved(approval(image_digests=("sha256:" + "6" * 64,))),
            "Closed",
            "ApprovalMissing",
            id="19: other digest",
        ),
        pytest.param(approved(approval(image_digests=())), "Closed", "ApprovalMissing", id="19: no digest"),
        pytest.param(approved(approval(gate="storage")), "Closed", "ApprovalMissing", id="21: another gate"),
        pytest.param(
            approved(approval(created=NOW - timedelta(days=7))), "Closed", "ApprovalEnded", id="older than `expires`"
        ),
        pytest.param(approved(approval(not_after=NOW)), "Closed", "ApprovalEnded", id="7: its own end"),
        pytest.param(approved(approval(not_after=NOW + MINUTE)), "Open", "Approved", id="7: before its end"),
        pytest.param(approved(approval(created=NOW + 2 * MINUTE)), "Closed", "ApprovalMissing", id="from the future"),
        pytest.param(
            approved(approval(), unverified="the policy is missing"),
            "Unknown",
            "ApproverUnverified",
            id="57: unverified",
        ),
    ],
)
def test_the_gate_of_an_approval(cluster: Observed, state: str, reason: str) -> None:
    """An approval counts for its gate and digest, until it ends, from another person than the requester."""
    gate = gate_of(cluster, "approval cab")
    assert (gate.state, gate.reason) == (state, reason)


def test_21_each_named_approval_is_a_gate() -> None:
    """The approval that is missing is reported by its name."""
    gates = PolicyGates(approvals=(ApprovalGate(name="cab"), ApprovalGate(name="storage")))
    cluster = observed(gates=gates, approvals=Approvals(given=(approval(),), requested_by="bob"))
    verdict = evaluate(cluster, NOW)
    assert [gate.name for gate in verdict.gates if gate.state != "Open"] == ["approval storage"]


@pytest.mark.parametrize(
    ("before", "hop", "starts", "resumes"),
    [
        pytest.param(("start",), 0, False, True, id="before the start"),
        pytest.param(("start",), 1, False, True, id="before the start of a later release"),
        pytest.param(("hop",), 0, True, True, id="before later releases, at the first one"),
        pytest.param(("hop",), 1, False, True, id="before later releases, at the second one"),
        pytest.param(("pools",), 0, True, False, id="before pools"),
        pytest.param(("start", "pools"), 0, False, False, id="before both"),
    ],
)
def test_21_what_waits_for_an_approval(before: Any, hop: int, starts: bool, resumes: bool) -> None:
    """An approval that is missing closes a gate at the points that `before` names, and at no other one."""
    gates = PolicyGates(approvals=(ApprovalGate(name="cab", before=before),))
    cluster = observed(gates=gates, hop=hop)
    assert evaluate(cluster, NOW).open is starts
    resumption = {gate.name: gate.state for gate in evaluate_resumption(cluster, "worker", NOW).gates}
    assert resumption.get("approval cab") == (None if resumes else "Closed")


def test_two_approvals_of_one_person_count_once() -> None:
    """`count` is a number of people."""
    gates = PolicyGates(approvals=(ApprovalGate(name="cab", count=2),))
    twice = Approvals(given=(approval(), approval()), requested_by="bob")
    assert gate_of(observed(gates=gates, approvals=twice), "approval cab").state == "Closed"
    two = Approvals(given=(approval(), approval("joe", not_after=NOW + MINUTE)), requested_by="bob")
    gate = gate_of(observed(gates=gates, approvals=two), "approval cab")
    assert (gate.state, gate.until) == ("Open", NOW + MINUTE)


@pytest.mark.parametrize(
    ("holds", "reason"),
    [
        pytest.param(Holds(paused=True, pause_reason="audit"), "Held", id="31: paused"),
        pytest.param(Holds(paused_until=NOW + MINUTE), "Held", id="31: paused until later"),
        pytest.param(Holds(paused_until=NOW), "", id="31: the pause is over"),
        pytest.param(Holds(control="Hold"), "Held", id="41: held"),
        pytest.param(Holds(denied=True), "Held", id="58: runs of a hub are denied"),
        pytest.param(Holds(no_policy=True), "Held", id="61: the policy was deleted"),
        pytest.param(Holds(control="Abort"), "Held", id="32: aborted"),
        pytest.param(Holds(permit_until=NOW), "PermitEnded", id="40: the permit has ended"),
        pytest.param(Holds(permit_until=NOW + MINUTE), "", id="40: the permit lasts"),
        pytest.param(Holds(older_run="5.0.9-abc"), "AnotherRun", id="45: an older run"),
        pytest.param(Holds(other_request="5.2.0"), "OtherUpdate", id="30: another release is requested"),
        pytest.param(Holds(clock_skew_until=NOW + MINUTE), "ClockSkew", id="52: the clock jumped"),
        pytest.param(Holds(clock_skew_until=NOW), "", id="52: long ago"),
    ],
)
def test_the_gate_of_holds(holds: Holds, reason: str) -> None:
    """A hold closes the gate until it ends."""
    gate = gate_of(observed(holds=holds), "hold")
    assert (gate.state, gate.reason) == (("Closed", reason) if reason else ("Open", "NotHeld"))


@pytest.mark.parametrize(
    ("turn", "state", "reason"),
    [
        pytest.param(Turn(), "Closed", "NoTurn", id="39: the hub has not given one"),
        pytest.param(Turn(name="t", until=NOW + MINUTE), "Open", "Turn", id="39: it has"),
        pytest.param(Turn(name="t", until=NOW), "Closed", "TurnUsedUp", id="55a: the turn has ended"),
        pytest.param(Turn(used_up=True), "Closed", "TurnUsedUp", id="55a: all turns are used up"),
    ],
)
def test_the_gate_of_the_turn(turn: Turn, state: str, reason: str) -> None:
    """A run that needs a turn starts only while it has one."""
    gate = gate_of(observed(holds=Holds(turn=turn)), "turn")
    assert (gate.state, gate.reason) == (state, reason)


MONDAYS = parsed_calendar({"opens": "0 22 * * MON", "for": "1h"})


def frozen(**freeze: str) -> dict[str, Any]:
    """A calendar with this freeze."""
    return {"calendars": (parsed_calendar({"opens": "0 22 * * TUE", "for": "6h"}, freezes=[freeze]),)}


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        pytest.param({}, "Open", "InWindow", id="12: open"),
        pytest.param(frozen(**{"from": "2027-02-02", "to": "2027-02-04"}), "Closed", "Frozen", id="14: frozen"),
        pytest.param({"calendar_errors": ("calendar x: no zone",)}, "Unknown", "InvalidCalendar", id="15: bad zone"),
        pytest.param({"calendar_names": (), "calendars": ()}, "Closed", "NoCalendar", id="16: no calendar"),
        pytest.param({"calendar_names": ("Always",), "calendars": ()}, "Open", "Always", id="Always"),
        pytest.param({"calendars": (MONDAYS,)}, "Closed", "OutsideWindow", id="closed"),
        pytest.param({"calendars": ()}, "Closed", "OutsideWindow", id="a name without its calendar"),
    ],
)
def test_the_gate_of_the_window(changes: dict[str, Any], state: str, reason: str) -> None:
    """All calendars must have an open window."""
    gate = gate_of(observed(**changes), "window")
    assert (gate.state, gate.reason) == (state, reason)
    assert evaluate(observed(**changes), NOW).open is (state == "Open")


def forecast(low: int, high: int | None, **changes: Any) -> Forecast:
    """A forecast in minutes."""
    return Forecast(total=Range(low * 60, high * 60 if high is not None else None), parts=(), **changes)


@pytest.mark.parametrize(
    ("value", "mode", "state", "reason"),
    [
        # At NOW the window has 5 h, 300 minutes, left.
        pytest.param(forecast(60, 300), "Fits", "Open", "Fits", id="fits exactly"),
        pytest.param(forecast(60, 301), "Fits", "Closed", "DoesNotFit", id="a minute too long"),
        pytest.param(forecast(60, 301), "NotTooLong", "Open", "NotTooLong", id="the shortest time fits"),
        pytest.param(forecast(301, 400), "NotTooLong", "Closed", "DoesNotFit", id="the shortest time does not fit"),
        pytest.param(forecast(301, None, guessed=True), "Fits", "Closed", "DoesNotFit", id="even a guess is too long"),
        pytest.param(forecast(60, None), "Fits", "Unknown", "FitUnknown", id="no upper limit"),
        pytest.param(forecast(60, 120, guessed=True), "Fits", "Unknown", "FitUnknown", id="10: guessed"),
        pytest.param(forecast(60, 120, needs_help=("pod a",)), "Fits", "Unknown", "FitUnknown", id="needs help"),
        pytest.param("no nodes", "Fits", "Unknown", "FitUnknown", id="no forecast"),
    ],
)
def test_the_gate_of_the_forecast(value: Any, mode: Any, state: str, reason: str) -> None:
    """The longest estimated time must fit into what is left of the window, or the shortest one."""
    gate = gate_of(observed(forecast=value, gates=PolicyGates(forecast=mode)), "forecast")
    assert (gate.state, gate.reason) == (state, reason)
    if reason in ("NotTooLong", "DoesNotFit") and mode == "NotTooLong":
        minutes = 60 if state == "Open" else 301
        assert gate.message == f"The update takes at least {minutes} min; the window has 300 min left."


@pytest.mark.parametrize(
    "changes", [{"gates": PolicyGates(forecast="Ignore")}, {"calendar_names": ("Always",), "calendars": ()}]
)
def test_no_forecast_gate(changes: dict[str, Any]) -> None:
    """The forecast has no gate where it is ignored, and without a window."""
    names = [gate.name for gate in evaluate(observed(forecast="x", **changes), NOW).gates]
    assert "forecast" not in names


def test_the_forecast_needs_a_window() -> None:
    """Without an open window there is no time into which an update could fit."""
    gate = gate_of(observed(calendars=(MONDAYS,)), "forecast")
    assert (gate.state, gate.reason) == ("Closed", "OutsideWindow")


def test_the_verdict_reports_hard_gates_first() -> None:
    """Of several closed gates, the reason is that of the first one; a closed gate decides the exit code."""
    cluster = observed(calendars=(), findings=findings(risk(applies="Unknown")))
    verdict = evaluate(cluster, NOW)
    assert (verdict.reason, verdict.exit_code) == ("PreflightUnknown", 2)
    assert evaluate(with_findings(risk(applies="Unknown")), NOW).exit_code == 3


def test_the_verdict_knows_when_it_may_change() -> None:
    """The next evaluation is at the first end of a gate that is still to come."""
    verdict = evaluate(replace(observed(), calendars=(NIGHTS,)), datetime(2027, 2, 2, 20, tzinfo=UTC))
    assert verdict.until(datetime(2027, 2, 2, 20, tzinfo=UTC)) == datetime(2027, 2, 2, 21, tzinfo=UTC)
