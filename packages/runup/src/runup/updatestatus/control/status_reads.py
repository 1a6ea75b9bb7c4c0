"""Names all that a report is made of; `dump collect` collects it, and `upgrade status --dump` reads it."""

from __future__ import annotations

from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap, Event, Node, Pod
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import DaemonSet, Deployment, Job, Lease, PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Infrastructure
from runup.api.hypershift_v1beta1 import ControlPlaneComponent, HostedCluster, HostedNodePool
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigNode, MachineConfigPool
from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, NodePool, Plan
from runup.api.update_v1alpha1 import UpdateStatus
from runup.rules.update_components import LEASES
from runup.updatestatus.decide.freshness import NAMESPACE
from runup.updatestatus.decide.kubernetes.snapshot import KUBE_SYSTEM

# Of Leases those of the components, and that of the controller, which shows how old its report is.
_LEASE_NAMESPACES = dict.fromkeys([*(namespace for namespace, _ in LEASES), NAMESPACE])
READS: tuple[tuple[Resource, str], ...] = (
    *(
        (resource_of(kind), "")
        for kind in (
            ClusterVersion,
            ClusterOperator,
            MachineConfigPool,
            MachineConfig,
            MachineConfigNode,
            Node,
            Deployment,
            Pod,
            PodDisruptionBudget,
            Event,
            CertificateSigningRequest,
            VolumeAttachment,
            UpdateStatus,
            Infrastructure,
            Job,
            Plan,
            MachineDeployment,
            ClusterMachine,
            NodeClaim,
            NodePool,
            HostedCluster,
            HostedNodePool,
            ControlPlaneComponent,
        )
    ),
    # The version of Cluster API that older clusters serve.
    *((replace(resource_of(kind), version="v1beta1"), "") for kind in (MachineDeployment, ClusterMachine)),
    *((resource_of(kind), KUBE_SYSTEM) for kind in (ConfigMap, DaemonSet)),
    *((resource_of(Lease), namespace) for namespace in _LEASE_NAMESPACES),
)
"""Each kind with the namespace that it is read in, empty for all."""
