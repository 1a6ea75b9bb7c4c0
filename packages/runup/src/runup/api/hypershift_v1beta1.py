"""`hypershift.openshift.io/v1beta1`: the fields of hosted clusters that the status of an update is computed from.

Source: Go module github.com/openshift/hypershift/api v0.0.0-20250331115040-26fc3ceb1929 (`hypershift/v1beta1`).
"""

from kubekit.api.meta_v1 import Condition, Object, Wire
from runup.api.config_v1 import Release, UpdateHistory

REPLACE, IN_PLACE = "Replace", "InPlace"


class ReleaseImage(Wire, frozen=True):
    """`spec.release`: the image of the release that is asked for."""

    image: str = ""


class HostedClusterSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a HostedCluster."""

    release: ReleaseImage = ReleaseImage()
    control_plane_release: ReleaseImage | None = None
    paused_until: str = ""


class HostedVersion(Wire, frozen=True, kw_only=True):
    """The versions of a hosted cluster, as its ClusterVersion reports them."""

    desired: Release = Release()
    history: tuple[UpdateHistory, ...] = ()
    observed_generation: int = 0
    available_updates: tuple[Release, ...] | None = None


class SecretName(Wire, frozen=True):
    """`status.kubeconfig`: the Secret, in the namespace of the HostedCluster, with its administrator's kubeconfig."""

    name: str = ""


class HostedClusterStatus(Wire, frozen=True, kw_only=True):
    """`status` of a HostedCluster."""

    version: HostedVersion = HostedVersion()
    kubeconfig: SecretName | None = None
    conditions: tuple[Condition, ...] = ()


class HostedCluster(Object, frozen=True, kw_only=True):
    """A cluster whose control plane runs as pods on this one."""

    spec: HostedClusterSpec = HostedClusterSpec()
    status: HostedClusterStatus = HostedClusterStatus()

    @property
    def control_plane_namespace(self) -> str:
        """The namespace of its pods, Machines and ControlPlaneComponents (`manifests.HostedControlPlaneNamespace`)."""
        return f"{self.metadata.namespace}-{self.metadata.name.replace('.', '-')}"


class NodePoolManagement(Wire, frozen=True):
    """The method to update the nodes of a pool: `Replace` creates new machines, `InPlace` changes the existing ones."""

    upgrade_type: str = ""


class HostedNodePoolSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a NodePool."""

    cluster_name: str = ""
    release: ReleaseImage = ReleaseImage()
    replicas: int | None = None
    management: NodePoolManagement = NodePoolManagement()
    paused_until: str = ""


class HostedNodePoolStatus(Wire, frozen=True, kw_only=True):
    """`status` of a NodePool; `version` is that of the last release which all its nodes have."""

    replicas: int = 0
    version: str = ""
    conditions: tuple[Condition, ...] = ()


class HostedNodePool(Object, frozen=True, kw_only=True):
    """A pool of nodes of a hosted cluster."""

    spec: HostedNodePoolSpec = HostedNodePoolSpec()
    status: HostedNodePoolStatus = HostedNodePoolStatus()


class ControlPlaneComponentStatus(Wire, frozen=True, kw_only=True):
    """`status` of a ControlPlaneComponent."""

    version: str = ""
    conditions: tuple[Condition, ...] = ()


class ControlPlaneComponent(Object, frozen=True, kw_only=True):
    """A component of a hosted control plane, in the namespace of that control plane."""

    status: ControlPlaneComponentStatus = ControlPlaneComponentStatus()
