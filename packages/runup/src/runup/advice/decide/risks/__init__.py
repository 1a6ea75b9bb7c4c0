"""Risks of the cluster itself, independent of the update service: one line in `SOURCES` for each source."""

from __future__ import annotations

from runup.advice.decide.risk_names import forbids_minor
from runup.advice.decide.risks import admin_acks, alert_risks, cluster_state
from runup.api.config_v1 import ConditionalUpdateRisk

# The Go operator's order (openshift/cluster-version-operator, pkg/cvo/cvo.go, `aggregate.New`).
SOURCES: tuple[cluster_state.Source, ...] = (
    cluster_state.update_risks,
    cluster_state.override_risks,
    cluster_state.deletion_risks,
    admin_acks.risks,
    cluster_state.operator_risks,
)


def risks_in_cluster(
    cluster: cluster_state.Cluster, sources: tuple[cluster_state.Source, ...] = SOURCES
) -> tuple[cluster_state.SourceRisk, ...]:
    """Returns the risks of all sources, in the order of the sources, which is that of Upgradeable's reasons."""
    return tuple(risk for source in sources for risk in source(cluster))


def is_from_source(risk: ConditionalUpdateRisk) -> bool:
    """Returns whether a risk comes from a source of this package, as opposed to the update service."""
    if any(condition.reason.startswith(alert_risks.REASON) for condition in risk.conditions):
        return True
    return forbids_minor(risk.name)
