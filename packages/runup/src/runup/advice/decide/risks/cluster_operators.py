"""The risks from ClusterOperators that report Upgradeable=False."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.conditions import find
from runup.advice.decide import risk_names
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk, docs_url

PREFIX = risk_names.OPERATOR
UNKNOWN = "ClusterOperatorUpgradeableUnknown"
_PAGE = "understanding-openshift-updates-1#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk for each operator that is not upgradeable, or one if the operators could not be listed."""
    url = docs_url(cluster.version.status.desired.version, _PAGE)
    if cluster.operators is None:
        why = f"ClusterOperators could not be listed: {cluster.unreadable}"
        yield SourceRisk(UNKNOWN, f"Whether ClusterOperators allow the update is not known. {why}", url, unknown=why)
        return
    for bad in cluster.unread:
        why = f"ClusterOperator {bad}"
        yield SourceRisk(PREFIX + bad.name, f"Whether it allows the update is not known. {why}", url, unknown=why)
    for operator in cluster.operators:
        condition = find(operator.status.conditions, "Upgradeable")
        # A missing or Unknown condition does not block an update: only an explicit False does.
        if condition is not None and condition.status == "False":
            message = condition.message or condition.reason or "The operator says that it is not upgradeable."
            yield SourceRisk(f"{PREFIX}{operator.metadata.name}", message, url)
