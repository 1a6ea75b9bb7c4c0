"""Names the risks that describe a cluster which an unfinished or failing update has left broken.

An update within the minor version may repair such a cluster, and the operator accepts one without a preflight. So these
risks of a preflight do not block it either (docs/decisions/0076). Risks about the target, users' workloads or single
nodes are not in the list.
"""

from __future__ import annotations

FAMILIES = frozenset(
    {
        "APIServiceUnavailable",
        "CRDNotInForce",
        "ClusterOperatorDegraded",
        "ClusterOperatorHealth",
        "ClusterOperatorNotAvailable",
        "ClusterVersionFailing",
        "ClusterVersionHealth",
        "ClusterVersionPartialUpdate",
        "ClusterVersionUpdating",
        "MachineConfigPoolDegraded",
        "MachineConfigPoolHealth",
        "MachineConfigPoolUpdating",
        "NodeReleasesMixed",
        "SystemPodsFailing",
    }
)
# The risk that stands for a check without a result has the check's name with this ending (docs/checks/README.md).
_UNKNOWN = "Unknown"


def describes_failure(name: str) -> bool:
    """Returns whether the risk `name` describes a failure of the cluster's own parts; families add `-<object>`."""
    return name.partition("-")[0].removesuffix(_UNKNOWN) in FAMILIES
