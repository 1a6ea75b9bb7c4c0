"""ClusterOperators that are not available or degraded: an update waits for them, for hours if need be.

The cluster-version operator takes nothing but Available=True and Degraded=False for healthy; a condition that is
missing or Unknown is not known to be broken, so here it is Unknown. An operator that has only just changed may be
restarting: how grave it is counts how long it lasts, with the patience of that operator's own alerts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import ConditionStatus
from runup.api.config_v1 import ClusterOperator
from runup.checks import writing
from runup.checks.writing import Applies, Context, Findings, Snapshot, condition_text, declared, risk
from runup.report.report import Severity


class _Expectation(NamedTuple):
    """The healthy status of an operator's condition, and the risk and severities that are reported otherwise."""

    condition: str
    healthy: ConditionStatus
    risk: str
    is_broken: str
    patience: timedelta
    severities: tuple[Severity, Severity]


EXPECTATIONS = (
    _Expectation(
        condition="Available",
        healthy="True",
        risk="ClusterOperatorNotAvailable",
        is_broken="is not available",
        patience=writing.DOWN_PATIENCE,
        severities=("warning", "critical"),
    ),
    _Expectation(
        condition="Degraded",
        healthy="False",
        risk="ClusterOperatorDegraded",
        is_broken="is degraded",
        patience=writing.DEGRADED_PATIENCE,
        severities=("info", "warning"),
    ),
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each condition of a ClusterOperator that does not have its healthy status."""
    for operator in snapshot.all(ClusterOperator):
        name = operator.metadata.name
        for expected in EXPECTATIONS:
            condition = find(operator.status.conditions, expected.condition)
            if condition is not None and condition.status == expected.healthy:
                continue
            applies = Applies.UNKNOWN
            if condition is None:
                message = f"Cluster operator {name} does not report {expected.condition}."
            elif condition.status == "Unknown":
                message = f"Cluster operator {name} reports {expected.condition}=Unknown{condition_text(condition)}"
            else:
                message = f"Cluster operator {name} {expected.is_broken}{condition_text(condition)}"
                applies = Applies.YES
            since = condition.last_transition_time if condition else None
            before, after = expected.severities
            yield risk(
                f"{expected.risk}-{name}",
                message,
                [operator],
                severity=writing.severity_after(
                    since, context.now, patience=expected.patience, before=before, after=after
                ),
                fix=f"Bring the operator back first: `oc describe clusteroperator {name}` names what it lacks.",
                reason=condition.reason if condition else f"{expected.condition}Missing",
                applies=applies,
            )


CHECK = declared(
    run,
    "ClusterOperatorHealth",
    "cluster-version-operator",
    reads=(ClusterOperator,),
    by_hand=True,
    rank=30,
    severity="critical",
)
