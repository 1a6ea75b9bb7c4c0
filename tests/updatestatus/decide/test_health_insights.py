"""What needs attention, by oc's rules: each trigger, its level, age and words (reference: oc's status/*.go)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b

from runup.api.config_v1 import ClusterOperator
from runup.updatestatus.decide import control_plane as cp
from runup.updatestatus.decide import health, nodes
from runup.updatestatus.decide.alerts import Alert
from runup.updatestatus.decide.finding import Finding

LATER = b.STARTED + b.minutes(60)
VERSIONS = nodes.versions_of(b.configs())


def of_nodes(*members: Any, pool: Any = None, now: datetime = LATER) -> list[Finding]:
    """The findings of a pool of these nodes."""
    pools = nodes.assess_pools([pool or b.pool()], members, VERSIONS, nodes.Target(b.NEW))
    return list(health.pool_findings(pools, now))


def impact_of(finding: Finding) -> tuple[str, str, str]:
    """Level, impact and summary."""
    return finding.level, finding.impact, finding.summary


def test_a_node_that_is_unavailable_for_long() -> None:
    """Every trouble is named; the oldest gives the age; conditions are quoted as Go quotes."""
    [found] = of_nodes(
        b.node(
            "worker-1",
            conditions=[
                b.cond("Ready", "Unknown", message='Kubelet "stopped"', since=b.STARTED + b.minutes(3)),
                b.cond("DiskPressure", "True", message="full", since=b.STARTED + b.minutes(1)),
                b.cond("NetworkUnavailable", "True", message="none", since=None),
            ],
            unschedulable=True,
        )
    )
    assert impact_of(found) == (
        "Warning",
        "Update Speed",
        "Node worker-1 is not ready | Node worker-1 has disk pressure | Node worker-1 has unavailable network"
        " | Node is marked unschedulable",
    )
    assert found.description == (
        'Node has a Ready!=True condition with Reason "Not ready" and message "Kubelet \\"stopped\\"" | '
        'Node has a DiskPressure!=False condition with Reason "Disk pressure" and message "full" | '
        'Node has a NetworkUnavailable!=False condition with Reason "Network unavailable" and message "none" | '
        "Node is marked unschedulable"
    )
    assert found.since == b.STARTED + b.minutes(1)
    assert found.reference.endswith("machine-configuration-tasks.html#understanding-the-machine-config-operator")
    assert [ref.resource for ref in found.resources] == ["nodes"]
    assert (found.scope, found.pool) == ("WorkerPool", "worker")


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"conditions": [b.cond("Ready", "False", since=LATER - b.minutes(4))]}, id="for four minutes"),
        pytest.param({"unschedulable": True}, id="cordoned"),
        pytest.param({"state": "Working"}, id="busy"),
        pytest.param({"desired": "new", "state": "Working", "conditions": [b.cond("Ready", "False")]}, id="updating"),
    ],
)
def test_what_a_node_does_in_any_update(node: dict[str, Any]) -> None:
    """Nothing is reported."""
    assert of_nodes(b.node(**node)) == []


def test_a_degraded_node() -> None:
    """With the daemon's reason, and without an age: nobody records one."""
    [found] = of_nodes(b.node("master-0", "master", state="Degraded", reason="x"), pool=b.pool("master"))
    assert impact_of(found) == ("Error", "Update Stalled", "Node master-0 is degraded")
    assert (found.description, found.since, found.scope, found.pool) == ("x", None, "ControlPlane", "")


def test_a_node_that_is_degraded_and_not_ready_describes_both_by_the_daemons_reason() -> None:
    """As oc has it."""
    first, second = of_nodes(b.node(state="Degraded", reason="x", conditions=[b.cond("Ready", "False")]))
    assert (first.check, first.description) == ("NodeUnavailable", "x")
    assert (second.check, second.description) == ("NodeDegraded", "x")


def test_a_degraded_node_without_a_reason_is_dropped() -> None:
    """oc prints no insight without a description."""
    [found] = of_nodes(b.node(state="Degraded"))
    assert not health.is_complete(found)


def test_a_paused_pool_with_nodes_to_update() -> None:
    """Once for the pool, after its nodes."""
    [found] = of_nodes(b.node("a"), b.node("b"), pool=b.pool(paused=True))
    assert impact_of(found) == (
        "Warning",
        "Update Stalled",
        "Outdated nodes in a paused pool 'worker' will not be updated",
    )
    assert found.description == (
        "Pool is paused, which stops all changes to the nodes in the pool, including updates. The nodes will not be "
        "updated until the pool is unpaused by the administrator."
    )
    assert of_nodes(b.node(current="new", desired="new"), pool=b.pool(paused=True)) == []


def failing(condition: Any) -> list[Finding]:
    """The findings of a ClusterVersion with this Failing condition."""
    return list(health.cluster_version_findings(b.version(failing=condition), LATER))


@pytest.mark.parametrize(
    ("status", "summary"),
    [
        ("True", "Cluster Version version is failing to proceed with the update (Slow)"),
        ("Unknown", "Cluster Version version may be failing to proceed with the update (Slow)"),
    ],
)
def test_a_failing_cluster_version(status: Any, summary: str) -> None:
    """By its condition, with its message and age."""
    [found] = failing(b.cond("Failing", status, "Slow", "etcd is slow"))
    assert impact_of(found) == ("Warning", "Update Stalled", summary)
    assert (found.description, found.since) == ("etcd is slow", b.STARTED)
    assert found.reference.endswith("/ClusterOperatorDegraded.md")


def test_a_cluster_version_that_does_not_say_whether_it_fails() -> None:
    """That is a separate finding, from now on."""
    [found] = failing(None)
    assert impact_of(found) == ("Warning", "Update Stalled", "Cluster Version version has no Failing condition")
    assert found.since == LATER
    assert failing("False") == []


def of_operator(operator: ClusterOperator, age: timedelta) -> list[Finding]:
    """The findings of an operator whose conditions are `age` old."""
    return list(health.operator_findings(cp.assess_operators([operator], b.NEW, ""), b.STARTED + age))


INSTANT = timedelta(microseconds=368)


@pytest.mark.parametrize(
    ("age", "unavailable", "degraded"),
    [
        pytest.param(b.minutes(5), None, None, id="five minutes are tolerated"),
        pytest.param(b.minutes(5) + INSTANT, "Warning", "Warning", id="more are a warning"),
        pytest.param(b.minutes(20), "Warning", "Warning", id="twenty minutes"),
        pytest.param(b.minutes(20) + INSTANT, "Error", "Warning", id="unavailable for longer is an error"),
        pytest.param(b.minutes(40), "Error", "Warning", id="forty minutes"),
        pytest.param(b.minutes(40) + INSTANT, "Error", "Error", id="degraded for longer is one too"),
    ],
)
def test_operators_that_are_not_well(age: timedelta, unavailable: str | None, degraded: str | None) -> None:
    """The level rises with age."""
    down = of_operator(b.operator(available=b.cond("Available", "False", "R", "m")), age)
    assert [found.level for found in down] == ([unavailable] if unavailable else [])
    bad = of_operator(b.operator(degraded=b.cond("Degraded", "True", "R", "")), age)
    assert [found.level for found in bad] == ([degraded] if degraded else [])


def test_the_words_for_operators() -> None:
    """Unavailable first, then degraded; a missing message is said to be missing."""
    operator = b.operator(
        available=b.cond("Available", "False", "Gone", "m"), degraded=b.cond("Degraded", "True", "Bad")
    )
    first, second = of_operator(operator, b.minutes(30))
    assert impact_of(first) == ("Error", "API Availability", "Cluster Operator etcd is unavailable (Gone)")
    assert impact_of(second) == ("Warning", "API Availability", "Cluster Operator etcd is degraded (Bad)")
    assert (first.description, second.description) == ("m", "<no message>")
    assert first.reference.endswith("/ClusterOperatorDown.md")
    assert second.reference.endswith("/ClusterOperatorDegraded.md")


def test_an_operator_that_does_not_say_whether_it_is_available_is_no_finding() -> None:
    """It is counted as unavailable, but only False is reported."""
    operators = [b.operator(available=None), b.operator(available="Unknown"), b.operator(degraded="Unknown")]
    assert [found for operator in operators for found in of_operator(operator, b.minutes(90))] == []


@pytest.mark.parametrize(
    ("older", "last"),
    [
        ([b.entry("4.13.5", "Partial"), b.entry("4.13.1"), b.entry("4.13.0")], "4.13.1"),
        ([b.entry("4.13.5", "Partial"), b.entry("4.13.1", "Partial"), b.entry("4.13.0")], "4.13.0"),
        ([b.entry("4.13.5", "Partial")], "unknown"),
    ],
)
def test_an_update_on_top_of_one_that_did_not_end(older: list[Any], last: str) -> None:
    """With the last complete version, wherever it stands."""
    cluster = b.version(b.update_history(*older))
    [found] = health.history_findings(cluster, control_plane_done=False)
    assert impact_of(found) == (
        "Warning",
        "None",
        f"Previous update to 4.13.5 never completed, last complete update was {last}",
    )
    assert found.description == (
        "Current update to 4.14.1 was initiated while the previous update to version 4.13.5 was still in progress"
    )
    assert found.since == b.STARTED
    assert list(health.history_findings(cluster, control_plane_done=True)) == []
    assert list(health.history_findings(b.version(), control_plane_done=False)) == []


def alert(
    name: str = "Bad", minutes: float = 1, *, state: str = "firing", severity: str = "warning", **notes: str
) -> Alert:
    """An alert that began `minutes` after the update."""
    return Alert(
        labels={"alertname": name, "severity": severity, "namespace": "ns"},
        annotations=notes,
        state=state,
        active_at=b.STARTED + b.minutes(minutes),
    )


@pytest.mark.parametrize(
    ("given", "level"),
    [
        pytest.param(alert(), "Warning", id="a warning since the update began"),
        pytest.param(alert(severity="critical"), "Critical", id="a critical one"),
        pytest.param(alert(severity="info"), None, id="an informational one"),
        pytest.param(alert(severity=""), None, id="one without severity"),
        pytest.param(alert(state="pending"), None, id="one that does not fire yet"),
        pytest.param(alert(minutes=-1), None, id="one from before the update"),
        pytest.param(alert(minutes=0), None, id="one from the same moment"),
        pytest.param(alert(""), None, id="one without name"),
        pytest.param(alert("PodDisruptionBudgetAtLimit", -500), "Warning", id="one that is known to slow updates"),
        pytest.param(alert("PodDisruptionBudgetLimit", -500, state="pending"), None, id="known and not firing"),
    ],
)
def test_which_alerts_are_reported(given: Alert, level: str | None) -> None:
    """By name, age, state and severity."""
    assert [found.level for found in health.alert_findings([given], b.STARTED)] == ([level] if level else [])


LEAD_DURING = "Alert started firing during the update."


@pytest.mark.parametrize(
    ("given", "summary", "description"),
    [
        pytest.param(alert(), "Bad", f"{LEAD_DURING} The alert has no description.", id="bare"),
        pytest.param(alert(summary="It is bad."), "It is bad.", f"{LEAD_DURING} The alert has no description.", id="s"),
        pytest.param(
            alert(description="d", message="m"), "Bad", f"{LEAD_DURING} The alert description is: d | m", id="both"
        ),
        pytest.param(alert(message="m"), "Bad", f"{LEAD_DURING} The alert description is: m", id="message"),
        pytest.param(
            alert("PodDisruptionBudgetAtLimit", description="d"),
            "PodDisruptionBudgetAtLimit",
            "Alert known to affect updates started firing during the update. The alert description is: d",
            id="known, during",
        ),
        pytest.param(
            alert("PodDisruptionBudgetAtLimit", -1, description="d"),
            "PodDisruptionBudgetAtLimit",
            "Alert known to affect updates has been firing since before the update started. "
            "The alert description is: d",
            id="known, before",
        ),
    ],
)
def test_the_words_for_alerts(given: Alert, summary: str, description: str) -> None:
    """The alert's own, after when it began."""
    [found] = health.alert_findings([given], b.STARTED)
    assert impact_of(found)[1:] == ("Unknown", f"Alert is firing: {summary}")
    assert found.description == description
    assert found.reference == "<alert does not have a runbook_url annotation>"
    assert (found.resources[0].group, found.resources[0].namespace) == ("config.openshift.io", "ns")


def test_an_alerts_runbook_is_its_reference() -> None:
    """Where it has one."""
    [found] = health.alert_findings([alert(runbook_url="https://example.com/r")], b.STARTED)
    assert found.reference == "https://example.com/r"
