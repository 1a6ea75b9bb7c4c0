"""ClusterOperators that ask for no minor update, each under a separate name so that it can be accepted alone.

Names and scope are those of the cluster-version operator's own source of risks (pkg/risk/upgradeable): an operator
that does not report Upgradeable can be updated, and patch updates are never held back.
"""

from __future__ import annotations

from kubekit.api.conditions import find
from runup.api.config_v1 import ClusterOperator
from runup.checks.writing import MINOR, NO_REASONS, Applies, Context, Findings, Snapshot, condition_text, declared, risk

NAME = "ClusterOperatorUpgradeable"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a finding for each ClusterOperator that reports Upgradeable other than True."""
    for operator in snapshot.all(ClusterOperator):
        condition = find(operator.status.conditions, "Upgradeable")
        if condition is None or condition.status == "True":
            continue
        name = operator.metadata.name
        refuses = condition.status == "False"
        words = "is not upgradeable" if refuses else "does not know whether it is upgradeable"
        fix = f"Do what its message asks for; `oc describe clusteroperator {name}` shows the newest."
        if condition.reason in NO_REASONS:
            fix = (
                f"It does not say why: see its other conditions (`oc describe clusteroperator {name}`) and its pods' "
                "logs."
            )
        yield risk(
            f"{NAME}-{name}",
            f"Cluster operator {name} {words}{condition_text(condition)}",
            [operator],
            severity="critical" if refuses else "warning",
            fix=fix,
            reason=condition.reason,
            applies=Applies.YES if refuses else Applies.UNKNOWN,
        )


CHECK = declared(
    run,
    NAME,
    "cluster-version-operator",
    reads=(ClusterOperator,),
    by_hand=True,
    rank=20,
    updates=MINOR,
    severity="critical",
)
