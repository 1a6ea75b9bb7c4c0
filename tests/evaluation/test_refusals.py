"""Refusals of an update cannot be accepted, and no gate, suppression or baseline hides them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.clusterversion.decide.test_verdict import Situation, checked, findings
from tests.clusterversion.decide.world import risk as found_risk
from tests.factories import cluster_version

from kubekit.api.meta_v1 import Condition
from runup.evaluation import results
from runup.evaluation.baseline import Baseline, KnownCluster, KnownRisk
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.suppressions import Suppression
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import Findings, Result, risk_of_report, with_counted_risks
from runup.report.report import FORMAT, Report, ReportedRisk

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
GATE = "AdminAck-ack-4.18-kube-api-removals-in-4.19"
STORAGE = "ClusterOperatorUpgradeable-storage"


def report(*risks: ReportedRisk, target: str = "4.19.10") -> Report:
    """A complete report on an update from 4.18.25."""
    return Report(
        format=FORMAT,
        source_version="4.18.25",
        target_version=target,
        execution_status="completed",
        observed_time=NOW,
        risks=risks,
    )


def risk(name: str, applies: str = "True", severity: str = "warning") -> ReportedRisk:
    """A risk of a report."""
    return ReportedRisk(name=name, message="m", applies=applies, severity=severity)  # type: ignore[arg-type]


# Whether acceptance lifts it: openshift/cluster-version-operator, pkg/risk, and upgradeable.go in
# pkg/payload/precondition/clusterversion, which reads no accepted names (docs/reference/upstream.md 7.7).
CASES = {
    "a gate that is not acknowledged": (risk(GATE), "4.19.10", ("refuses", "critical", False)),
    "a gate that is Unknown": (risk(GATE, "Unknown"), "4.19.10", ("unknown", "warning", True)),
    "an operator that is not upgradeable": (risk(STORAGE), "4.19.10", ("refuses", "critical", False)),
    "an operator that is Upgradeable=Unknown": (risk(STORAGE, "Unknown"), "4.19.10", ("unknown", "warning", True)),
    "the same for a patch": (risk(STORAGE), "4.18.30", ("applies", "warning", True)),
    "a lone Upgradeable=False": (risk("ClusterVersionUpgradeable"), "4.19.10", ("refuses", "critical", False)),
    "overrides": (risk("ClusterVersionOverrides"), "4.19.10", ("refuses", "critical", False)),
    "an update in progress": (risk("ClusterVersionUpdating"), "4.19.10", ("refuses", "critical", False)),
    "a jump that is too large": (risk("ClusterVersionGiantHop"), "4.21.0", ("refuses", "critical", False)),
    "any other risk": (risk("NodeCordoned"), "4.19.10", ("applies", "warning", True)),
}


@pytest.mark.parametrize(("found", "target", "expected"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("upgradeable", ["True", "False", ""])
def test_which_findings_refuse_the_update(
    found: ReportedRisk, target: str, expected: tuple[str, str, bool], upgradeable: str
) -> None:
    """The operator's rules decide, whatever the condition of a dump says; what refuses the update is critical."""
    conditions = (Condition(type="Upgradeable", status=upgradeable),) if upgradeable else ()  # type: ignore[arg-type]
    cluster = cluster_version(conditions=conditions)
    evaluated = EvaluatedCluster(where="c", report=report(found, target=target), cluster=cluster, of_dump=True)
    shown = next(each for each in results.findings_of(evaluated).risks if each.name == found.name)
    assert (shown.state, shown.severity, shown.acceptable) == expected
    alone = risk_of_report(found, report(found, target=target))
    assert (alone.state, alone.severity, alone.acceptable) == expected


REFUSED = report(risk(GATE), risk("NodeCordoned"))
FAILING = Condition(type="Failing", status="True", reason="R", message="It fails.")
EVERYTHING = (Suppression(risk="*", reason="known"),)
KNOWN_RISKS = {name: KnownRisk(name=name) for name in (GATE, "NodeCordoned")}
KNOWN = Baseline(name="base.json", clusters=(KnownCluster(name="c", risks=KNOWN_RISKS),))


def gated(
    refused: bool, *, rules: tuple[Suppression, ...] = (), baseline: Baseline | None = None, fail_on: str = "unknown"
) -> tuple[Findings, list[str]]:
    """Findings with a refusal by a risk, or else by a guard, as the gate has them; and the notes."""
    found = REFUSED if refused else report(risk("NodeCordoned"))
    cluster = cluster_version(conditions=() if refused else (FAILING,))
    evaluated = EvaluatedCluster(where="c", report=found, cluster=cluster)
    (result,), notes = results.results_of([evaluated], rules, baseline, NOW, fail_on=fail_on)
    return result.findings, notes


@pytest.mark.parametrize("refused", [True, False], ids=["by a risk", "by a condition of ClusterVersion"])
@pytest.mark.parametrize("fail_on", ["unknown", "info", "warning", "critical"])
@pytest.mark.parametrize(("rules", "baseline"), [((), None), (EVERYTHING, None), ((), KNOWN), (EVERYTHING, KNOWN)])
def test_no_gate_lets_a_refusal_pass(
    refused: bool, fail_on: str, rules: tuple[Suppression, ...], baseline: Baseline | None
) -> None:
    """It exits with 2, and only what acceptance lifts is accepted."""
    findings, _ = gated(refused, rules=rules, baseline=baseline, fail_on=fail_on)
    assert findings.exit_code == 2
    assert [each.name for each in findings.refusals] == [GATE if refused else "Failing=True"]
    cordoned = next(each for each in findings.risks if each.name == "NodeCordoned")
    assert cordoned.accepted is bool(rules or baseline)


def test_never_is_no_gate() -> None:
    """It asks for 0 whatever was found; the result stays what it is."""
    findings, _ = gated(True, fail_on="never")
    assert (findings.exit_code, findings.result) == (0, Result.APPLY)


def test_a_suppression_of_a_refusal_is_named() -> None:
    """Nobody would notice otherwise that it has no effect."""
    _, notes = gated(True, rules=EVERYTHING)
    assert notes == [f"{GATE} cannot be suppressed: the update is refused while it applies"]


def test_an_unknown_beside_a_guard_is_a_refusal() -> None:
    """`--to` refuses, whatever the check that could not tell would find."""
    evaluated = EvaluatedCluster(
        where="c", report=report(risk("Dim", "Unknown")), cluster=cluster_version(conditions=(FAILING,))
    )
    findings = results.findings_of(evaluated)
    assert findings.exit_code == 2
    assert replace(findings, guards=()).exit_code == 3


OPERATOR = "ClusterOperatorUpgradeable-storage"
ON_A_CLUSTER = {
    "an operator that is not upgradeable": Situation(upgradeable="False", found=(found_risk(OPERATOR),)),
    "a jump that is too large": Situation(target="5.2.0", edges=(("5.0.0", "5.2.0"),), found=(found_risk("Found"),)),
    "a gate that is not acknowledged": Situation(
        gate_unacknowledged=True, found=(found_risk("AdminAck-ack-5.0-volumes-in-5.1"),)
    ),
    "overrides": Situation(overrides=True, found=(found_risk("ClusterVersionOverrides"),)),
    "a cluster that fails": Situation(failing=True, found=(found_risk("Found"),)),
    "nothing": Situation(found=(found_risk("Found"), found_risk("Dim", applies="Unknown"))),
}


@pytest.mark.parametrize("situation", ON_A_CLUSTER.values(), ids=ON_A_CLUSTER)
def test_a_preflight_without_the_operator_agrees_with_the_operator(situation: Situation) -> None:
    """`preflight run` and `preflight show`, and the stored report, have the same severities, refusals and exit code."""
    world = checked(situation)
    shown = findings(world)
    history = stored_reports.read(world.observed.history)
    (stored,) = history.reports
    ran = results.findings_of(EvaluatedCluster(where="c", report=stored, cluster=world.version))
    seen = [{each.name: (each.severity, each.state) for each in found.risks} for found in (shown, ran)]
    # What the target did not find is the operator's to say: the risks of the update service and of the cluster.
    assert {name: seen[0][name] for name in seen[1]} == seen[1]
    refusals = [{each.name for each in found.refusals} for found in (shown, ran)]
    assert refusals[1] <= refusals[0]
    assert shown.exit_code == ran.exit_code
    listed = {each.name: each.severity for each in with_counted_risks(history).reports[0].risks}
    assert all(listed.get(name, "critical") == "critical" for name in refusals[0])


@pytest.mark.parametrize("result", Result, ids=lambda result: result.name)
def test_each_result_has_every_word(result: Result) -> None:
    """A view finds no gap: code, words and tone of each result are in one table."""
    assert result.code in range(4)
    assert all((result.word, result.text, result.counted, result.key, result.tone, result.title))
