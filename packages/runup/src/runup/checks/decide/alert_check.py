"""Makes the check of the alerts that a must-gather has. A cluster's operator reports those that fire by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runup.advice.decide.alert_conditions import alerts_in_answer
from runup.advice.decide.promql import AlertState
from runup.advice.decide.risks import alert_risks
from runup.api.clusterversion_json import text, texts
from runup.checks.decide.cluster_kinds import BOTH
from runup.checks.decide.model import Check, Context, Finding, Snapshot
from runup.checks.decide.wording import could_not_tell_finding
from runup.updatestatus.decide.alerts import Alert

# What it cannot tell is the risk AlertsUnknown, as in a cluster.
NAME = "Alerts"
_FILE = "monitoring/prometheus/alerts.json"


def alert_check(answer: Any, problem: str) -> Check:
    """Returns the check of the alerts in Prometheus' answer, None without one; `problem` is why it cannot be read."""

    def run(_snapshot: Snapshot, context: Context) -> Iterator[Finding]:
        """Yields a risk for each name of an alert that speaks against an update, named as the operator names it."""
        if answer is None:
            why = problem or f"the must-gather has no {_FILE}"
            yield could_not_tell_finding(NAME, why, "Collect the alerts: `oc adm must-gather`, or look at the console.")
            return
        alerts = tuple(
            Alert(labels=texts(each, "labels"), annotations=texts(each, "annotations"), state=text(each, "state"))
            for each in alerts_in_answer(answer)
        )
        critical = {each.labels.get("alertname") for each in alerts if each.labels.get("severity") == "critical"}
        for risk in alert_risks.risks(AlertState(at=context.now, alerts=alerts), context.now):
            yield Finding(
                name=risk.name,
                message=risk.found.message if risk.found else risk.message,
                url=risk.url,
                reason=NAME,
                severity="critical" if risk.name in critical else "warning",
                remediation=f"Resolve the alert; its runbook is {risk.url}.",
            )

    return Check(
        name=NAME,
        component="monitoring",
        reads=(),
        run=run,
        unknown_risk=f"{NAME}Unknown",
        severity="critical",
        clusters=BOTH,
    )
