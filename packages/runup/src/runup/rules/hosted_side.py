"""States what a preflight of a hosted cluster (HyperShift) can know, and what only its management cluster knows."""

from __future__ import annotations

from runup.api.config_v1 import InfrastructureStatus

_NOTE = (
    "the control plane of this cluster is hosted (controlPlaneTopology External): this preflight knows its APIs, "
    "operators and nodes. Unknown here are etcd, the control plane's pods, NodePools and their Machines, which are on "
    "the management cluster: `runup upgrade status --hosted-clusters` reports them there. HyperShift updates the "
    "control plane by HostedCluster.spec.release, and nodes by NodePool.spec.release"
)


def notes_on(status: InfrastructureStatus) -> tuple[str, ...]:
    """Returns the note about a hosted control plane, nothing for other clusters."""
    return (_NOTE,) if status.control_plane_topology == "External" else ()
