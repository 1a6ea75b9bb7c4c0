"""The cluster of the transcripts: a ClusterVersion and the reports of two targets, the same for every reader."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from tests.servers import Server

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE
from runup.api.config_v1 import ClusterVersion
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.process.names import OPERATOR_NAMESPACE as NAMESPACE
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk

WHEN = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
# The time at which the commands are typed, to the hour: what they say about ages does not depend on how fast they are.
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
IMAGE = "registry.example/ocp/release@sha256:" + "5a" * 32
TIME = "2026-11-21T07:30:00Z"


def reported_risk(
    name: str, message: str, severity: Any = "warning", applies: Any = "True", **more: Any
) -> ReportedRisk:
    """A risk as a target reports it."""
    url = f"https://docs.example/checks/{name.partition('-')[0]}"
    return ReportedRisk(name=name, message=message, severity=severity, applies=applies, url=url, **more)


def node_reference(name: str) -> ReportedResource:
    """A node that a risk is about."""
    return ReportedResource(group="", kind="Node", namespace="", name=name)


PAUSED = reported_risk(
    "MachineConfigPoolPaused-infra",
    "Machine config pool infra is paused: its 2 machines will not be updated to 5.2.0.",
    remediation='Resume it: `oc patch mcp/infra --type=merge -p \'{"spec":{"paused":false}}\'`.',
    resources=(node_reference("infra-0"), node_reference("infra-1")),
)
RISKS = (
    reported_risk(
        "DualStackIncompatible",
        "Cluster uses dual-stack networking configuration incompatible with 5.2.0.",
        "critical",
        remediation="Convert clusterNetwork and serviceNetwork to one IP family before the update.",
        resources=(ReportedResource(group="config.openshift.io", kind="Network", namespace="", name="cluster"),),
    ),
    PAUSED,
    reported_risk(
        "PodDisruptionBudgetBlocksDrain",
        "PodDisruptionBudget shop/データベース allows no disruption: node worker-3 will not drain.",
        remediation="Add a replica, or let the budget allow one disruption.",
        resources=(
            ReportedResource(group="policy", kind="PodDisruptionBudget", namespace="shop", name="データベース"),
        ),
    ),
    reported_risk(
        "EtcdMembersUnknown", "Etcd could not be read: etcds.operator.openshift.io is forbidden.", applies="Unknown"
    ),
    reported_risk("NodeCordoned", "Node worker-7 is cordoned.", "info", resources=(node_reference("worker-7"),)),
)
CHECKS = tuple(
    ReportedCheck(name=name, result=result)
    for name, result in (
        ("Networking", "Applies"),
        ("Pools", "Applies"),
        ("Budgets", "Applies"),
        ("Etcd", "Unknown"),
        ("Nodes", "Applies"),
        ("Operators", "Clear"),
    )
)


def report(target: str, *risks: ReportedRisk, minute: int) -> Report:
    """A complete report of `target`."""
    return Report(
        format=FORMAT,
        preflight_id=f"4-5.0.0-{target}-7f3a",
        source_version="5.0.0",
        target_version=target,
        target_image=IMAGE,
        execution_status="completed",
        observed_time=WHEN.replace(minute=minute),
        checks=CHECKS,
        risks=tuple(sorted(risks, key=lambda risk: risk.name)),
    )


REPORTS = History(reports=(report("5.2.0", *RISKS, minute=30), report("5.1.0", PAUSED, minute=12)))


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": TIME}


def _risk(risk: ReportedRisk) -> dict[str, Any]:
    return {
        "name": risk.name,
        "message": f"Preflight=5.2.0: {risk.message}",
        "url": risk.url,
        "matchingRules": [{"type": "Always"}],
        "conditions": [_condition("Applies", risk.applies, "PreflightValidation", risk.message)],
    }


STATUS: dict[str, Any] = {
    "desired": {"version": "5.0.0", "image": IMAGE},
    "observedGeneration": 1,
    "conditions": [
        _condition("PreflightRunning", "True", "Watching", "The target goes on watching the cluster."),
        _condition("PreflightCompleted", "True", "RisksFound", "6 checks done."),
        _condition("PreflightFailed", "False", "AsExpected", ""),
    ],
    "conditionalUpdates": [
        {
            "release": {"version": "5.2.0", "image": IMAGE},
            "riskNames": [risk.name for risk in RISKS],
            "risks": [_risk(risk) for risk in RISKS],
            "conditions": [_condition("Recommended", "False", "DualStackIncompatible", "See the risks.")],
        }
    ],
}
SPEC = {"desiredUpdate": {"version": "5.2.0", "mode": "Preflight", "acceptRisks": [{"name": "NodeCordoned"}]}}


def cluster() -> ClusterVersion:
    """The ClusterVersion as a value."""
    return codec.convert(ClusterVersion, {"metadata": {"name": "version"}, "spec": SPEC, "status": STATUS})


def furnish(server: Server) -> None:
    """Put it all on `server`."""
    server.set_cluster_version(spec=SPEC, status=STATUS)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    server.client.send(calls.apply(resource_of(Namespace), namespace, field_manager="test", force=True))
    stored = stored_reports.config_map(REPORTS, NAMESPACE)
    server.client.send(calls.apply(resource_of(ConfigMap), stored, field_manager="test", force=True))


def offset_s() -> float:
    """How far `NOW` is ahead of the machine's time."""
    return (NOW - datetime.now(UTC)).total_seconds()


def environment(server: Server) -> dict[str, str]:
    """Of a reader at that cluster and at that time, whose own settings do not count."""
    own = ("NO_COLOR", "COLUMNS", "LINES", "TERM", "CVO_NAMESPACE")
    kept = {key: value for key, value in os.environ.items() if key not in own}
    return {
        **kept,
        "KUBECONFIG": str(server.kubeconfig),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "NO_COLOR": "1",
        CLOCK_OFFSET_VARIABLE: str(offset_s()),
    }
