"""Findings that have everything a reader may meet: each severity and state, long words, writing of several widths."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubekit.api.meta_v1 import Condition
from runup.preflight.decide.findings import Findings, Risk
from runup.report.report import ReportedCheck, ReportedResource

WHEN = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
IMAGE = "registry.example/ocp/release@sha256:" + "a" * 64


def risk(name: str, message: str, severity: str = "warning", applies: Any = "True", **more: Any) -> Risk:
    """A risk of a preflight."""
    return Risk(
        name=name,
        message=message,
        severity=severity,
        applies=applies,
        accepted=more.pop("accepted", False),
        url=more.pop("url", f"https://docs.example/checks/{name}"),
        reason=more.pop("reason", "PreflightValidation"),
        from_preflight=more.pop("from_preflight", True),
        since=WHEN,
        **more,
    )


def conditions(running: str = "True", completed: str = "True", failed: str = "False", **shown: str) -> Any:
    """The preflight's own three."""
    states = {"PreflightRunning": running, "PreflightCompleted": completed, "PreflightFailed": failed}
    reason, message = shown.get("reason", "RisksFound"), shown.get("message", "")
    return tuple(
        Condition(type=type_, status=status, reason=reason, message=message)  # type: ignore[arg-type]
        for type_, status in states.items()
    )


DUAL_STACK = risk(
    "DualStackIncompatible",
    "Cluster uses dual-stack networking configuration incompatible with 5.2.0.",
    "critical",
    fix="Convert clusterNetwork and serviceNetwork to one IP family before the update.\nSee the guide.",
    resources=(ReportedResource(group="config.openshift.io", kind="Network", namespace="", name="cluster"),),
)
PAUSED = risk(
    "MachineConfigPoolPaused-infra",
    "Machine config pool infra is paused: its 24 machines will not be updated to 5.2.0.",
    fix='Resume it: `oc patch mcp/infra --type=merge -p \'{"spec":{"paused":false}}\'`.',
    resources=tuple(
        ReportedResource(group="", kind="Node", namespace="", name=f"ip-10-0-0-{n}.eu-central-1.compute.internal")
        for n in range(24)
    ),
)
WIDE = risk("StorageClassMissing-データ", "ボリューム「データ」の StorageClass が見つかりません。確認してください。")
EMOJI = risk("RouteName-🚀", "Route 🚀 shop/🛒 has no host.", "info")
COMBINING = risk("NodeName-e\u0301", "Node cafe\u0301-u\u0308ber is not ready.", applies="Unknown")
SERVICE = risk("SlowNodeDrain", "Draining is slow.", "", from_preflight=False, reason="Match")
ACCEPTED = risk("NodeCordoned", "Node worker-7 is cordoned.", accepted=True, because="network team, CHG-7712")
UNEXPLAINED = risk("EtcdMembers", "etcd has 5 members.", "critical", accepted=True)
RISKS = (DUAL_STACK, PAUSED, WIDE, SERVICE, EMOJI, COMBINING, ACCEPTED, UNEXPLAINED)

CHECKS = (
    ReportedCheck(name="Networking", component="network", result="Applies"),
    ReportedCheck(name="Etcd", component="etcd", result="Unknown", message="etcds cannot be read: forbidden"),
    ReportedCheck(name="Nodes", component="node", result="Clear"),
    ReportedCheck(name="Modules", component="kmm", result="Skipped", message="not for this update"),
)
FOUND = Findings(
    source="5.0.0",
    target="5.2.0",
    image=IMAGE,
    observed=WHEN,
    conditions=conditions(),
    risks=RISKS,
    checks=CHECKS,
)
CLEAR = Findings(source="5.0.0", target="5.2.0", observed=WHEN, conditions=conditions(), checks=CHECKS[2:3])
FAILED = Findings(
    source="5.0.0",
    target="5.2.0",
    conditions=conditions("False", "False", "True", reason="TargetUnsupported", message="5.2.0 has no such command"),
)
RUNNING = Findings(
    source="5.0.0",
    target="5.2.0",
    conditions=conditions("True", "False", "False", reason="ChecksRunning", message="4 of 7 checks done"),
    risks=RISKS[:2],
)
