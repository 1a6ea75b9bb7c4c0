"""Risks that the cluster itself has, whatever the update service says: one source a module, one line in `SOURCES`."""

from __future__ import annotations

from runup.domain.updates.risks import cluster_operators, deletion, overrides, updating
from runup.domain.updates.risks.source import Cluster, Source, SourceRisk

SOURCES: tuple[Source, ...] = (updating.risks, overrides.risks, deletion.risks, cluster_operators.risks)


def in_cluster(cluster: Cluster, sources: tuple[Source, ...] = SOURCES) -> tuple[SourceRisk, ...]:
    """What every source has to say, sorted by name."""
    return tuple(sorted((risk for source in sources for risk in source(cluster)), key=lambda risk: risk.name))


def owns(name: str) -> bool:
    """Whether a risk of this name comes from a source of this package (as opposed to the update service)."""
    return name in (updating.NAME, overrides.NAME, deletion.NAME, cluster_operators.UNKNOWN) or name.startswith(
        cluster_operators.PREFIX
    )
