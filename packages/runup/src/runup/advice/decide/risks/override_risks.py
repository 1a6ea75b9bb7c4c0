"""The risk that manifests are unmanaged: the administrator has excluded them from the operator's control."""

from __future__ import annotations

from collections.abc import Iterable

from runup.advice.decide import risk_names
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk, docs_url

NAME = risk_names.OVERRIDES


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while any override is unmanaged."""
    if any(override.unmanaged for override in cluster.version.spec.overrides):
        yield SourceRisk(
            NAME,
            "Disabling ownership via cluster version overrides prevents updates between minor or major versions. "
            "Please remove overrides before requesting a minor or major version update.",
            docs_url(cluster.version.status.desired.version, "understanding-openshift-updates-1"),
        )
