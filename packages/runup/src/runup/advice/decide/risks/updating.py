"""The risk that an update is still in progress: it must finish before the cluster leaves the minor version again."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.conditions import status_of
from runup.advice.decide import risk_names
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk, docs_url

NAME = risk_names.UPDATING


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while Progressing is True."""
    status = cluster.version.status
    if status_of(status.conditions, "Progressing") == "True":
        yield SourceRisk(
            NAME,
            "An update is already in progress and the details are in the Progressing condition.",
            docs_url(status.desired.version, "understanding-openshift-updates-1"),
        )
