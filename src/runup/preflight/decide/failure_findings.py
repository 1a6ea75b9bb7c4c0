"""The findings about the state in which an unfinished or failing update has left the cluster's own parts.

An update within the minor version may be what repairs them, and the operator accepts it without a preflight: so they do
not hold it up with one either (docs/decisions/0076). Whatever is about the target, the workloads or the nodes
themselves is not among them.
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
# Names of what stands for a check that could not tell end like this (docs/checks/README.md).
_UNKNOWN = "Unknown"


def describes_failure(name: str) -> bool:
    """Returns whether the risk `name` describes a failure of the cluster's own parts; families add `-<object>`."""
    return name.partition("-")[0].removesuffix(_UNKNOWN) in FAMILIES
