"""Objects of the programs that update nodes of any Kubernetes: Cluster API, Karpenter, the system-upgrade-controller.

Sources: sigs.k8s.io/cluster-api v1.11 (`api/core/v1beta2`), sigs.k8s.io/karpenter v1.8 (`pkg/apis/v1`), and
https://docs.k3s.io/upgrades/automated for Plans.
"""

from kubekit.api.meta_v1 import Condition, LabelSelector, Object, Wire


class MachineSpec(Wire, frozen=True):
    """`spec` of a Machine, or of the machines that a MachineDeployment makes: the version of Kubernetes."""

    version: str = ""


class NodeReference(Wire, frozen=True):
    """The Node of a Machine."""

    name: str = ""


class ClusterMachineStatus(Wire, frozen=True, kw_only=True):
    """`status` of a Machine; condition Deleting says what the deletion waits for."""

    phase: str = ""
    node_ref: NodeReference = NodeReference()
    conditions: tuple[Condition, ...] = ()


class ClusterMachine(Object, frozen=True, kw_only=True):
    """A Machine of Cluster API."""

    spec: MachineSpec = MachineSpec()
    status: ClusterMachineStatus = ClusterMachineStatus()


class MachineTemplate(Wire, frozen=True):
    """The machines that a MachineDeployment makes."""

    spec: MachineSpec = MachineSpec()


class MachineDeploymentSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a MachineDeployment."""

    paused: bool = False
    template: MachineTemplate = MachineTemplate()


class MachineDeploymentStatus(Wire, frozen=True, kw_only=True):
    """`status` of a MachineDeployment."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class MachineDeployment(Object, frozen=True, kw_only=True):
    """A group of machines of Cluster API that are replaced one after another."""

    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()


class NodeClaimStatus(Wire, frozen=True, kw_only=True):
    """`status` of a NodeClaim; condition Drifted says that Karpenter is going to replace the node."""

    node_name: str = ""
    conditions: tuple[Condition, ...] = ()


class NodeClaim(Object, frozen=True, kw_only=True):
    """A node that Karpenter has made, or is making."""

    status: NodeClaimStatus = NodeClaimStatus()


class DisruptionBudget(Wire, frozen=True, kw_only=True):
    """The number or share of a NodePool's nodes that Karpenter may replace at once, always or at `schedule`."""

    nodes: str = "10%"
    reasons: tuple[str, ...] = ()
    schedule: str | None = None


class Disruption(Wire, frozen=True):
    """The rules for the replacement of a NodePool's nodes by Karpenter."""

    budgets: tuple[DisruptionBudget, ...] = ()


class NodePoolSpec(Wire, frozen=True):
    """`spec` of a NodePool."""

    disruption: Disruption = Disruption()


class NodePool(Object, frozen=True, kw_only=True):
    """A group of nodes of Karpenter."""

    spec: NodePoolSpec = NodePoolSpec()


class PlanSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Plan: which nodes it updates, how many at once, and to which version (or that of `channel`)."""

    concurrency: int = 1
    node_selector: LabelSelector | None = None
    version: str = ""
    channel: str = ""


class PlanStatus(Wire, frozen=True, kw_only=True):
    """`status` of a Plan; `applying` are the nodes that it is updating."""

    conditions: tuple[Condition, ...] = ()
    latest_version: str = ""
    latest_hash: str = ""
    applying: tuple[str, ...] = ()


class Plan(Object, frozen=True, kw_only=True):
    """An update of nodes by the system-upgrade-controller."""

    spec: PlanSpec = PlanSpec()
    status: PlanStatus = PlanStatus()
