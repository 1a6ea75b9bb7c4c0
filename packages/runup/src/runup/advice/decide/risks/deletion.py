"""The risk that objects which a release removes still exist: the next release may not expect them."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.lang.text import join_within
from runup.advice.decide import risk_names
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk, docs_url

NAME = risk_names.DELETION
# The maximum length of the list of objects, in bytes.
_MAX_NAMES = 4096


def risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while any deletion is in progress."""
    if cluster.deleting:
        names = join_within(sorted(cluster.deleting), ",", _MAX_NAMES)
        yield SourceRisk(
            NAME,
            "Cluster minor or major version upgrades are not allowed while resource deletions are in progress; "
            f"resources={names}",
            docs_url(cluster.version.status.desired.version, "understanding-openshift-updates-1"),
        )
