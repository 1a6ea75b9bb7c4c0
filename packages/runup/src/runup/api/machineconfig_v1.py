"""`machineconfiguration.openshift.io/v1`: pools of nodes and their configuration, as far as runup reads them."""

from datetime import datetime
from typing import Any

from kubekit.api.meta_v1 import Condition, LabelSelector, LooseCondition, Object, Wire


class ConfigurationSource(Wire, frozen=True):
    """A MachineConfig by name."""

    name: str = ""


class ConfigurationReference(Wire, frozen=True):
    """A rendered MachineConfig by name, and the MachineConfigs of which it was rendered."""

    name: str = ""
    source: tuple[ConfigurationSource, ...] = ()


class MachineConfigPoolSpec(Wire, frozen=True):
    """`spec` of a MachineConfigPool; `max_unavailable` is a number of machines or a share like `10%`."""

    paused: bool = False
    max_unavailable: int | str | None = None
    node_selector: LabelSelector | None = None
    configuration: ConfigurationReference = ConfigurationReference()


class CertExpiry(Wire, frozen=True):
    """The end of a certificate that the nodes of a pool have; `bundle` is the file's name in the configuration."""

    bundle: str = ""
    subject: str = ""
    expiry: datetime | None = None


class MachineConfigPoolStatus(Wire, frozen=True, kw_only=True):
    """`status` of a MachineConfigPool, all counts in machines."""

    observed_generation: int = 0
    configuration: ConfigurationReference = ConfigurationReference()
    machine_count: int = 0
    ready_machine_count: int = 0
    updated_machine_count: int = 0
    unavailable_machine_count: int = 0
    degraded_machine_count: int = 0
    cert_expirys: tuple[CertExpiry, ...] = ()
    conditions: tuple[Condition, ...] = ()


class MachineConfigPool(Object, frozen=True, kw_only=True):
    """A pool of nodes that share a configuration and are updated together."""

    spec: MachineConfigPoolSpec = MachineConfigPoolSpec()
    status: MachineConfigPoolStatus = MachineConfigPoolStatus()


class MachineConfig(Object, frozen=True):
    """A configuration of nodes; only its metadata is read."""


class KubeletConfigSpec(Wire, frozen=True):
    """`spec` of a KubeletConfig; `kubelet_config` is a part of the kubelet's own configuration file."""

    kubelet_config: dict[str, Any] = {}


class NodeConfigStatus(Wire, frozen=True):
    """`status` of a KubeletConfig or a ContainerRuntimeConfig: a condition for each attempt, the last one last."""

    conditions: tuple[LooseCondition, ...] = ()


class KubeletConfig(Object, frozen=True, kw_only=True):
    """Settings of the kubelets in some pools."""

    spec: KubeletConfigSpec = KubeletConfigSpec()
    status: NodeConfigStatus = NodeConfigStatus()


class ContainerRuntimeConfig(Object, frozen=True):
    """Settings of the container runtimes in some pools; only its status is read."""

    status: NodeConfigStatus = NodeConfigStatus()


class PoolReference(Wire, frozen=True):
    """A MachineConfigPool by name."""

    name: str = ""


class MachineOSConfigSpec(Wire, frozen=True):
    """`spec` of a MachineOSConfig."""

    machine_config_pool: PoolReference = PoolReference()


class MachineOSConfig(Object, frozen=True):
    """An image of the nodes' operating system that the cluster builds for a pool."""

    spec: MachineOSConfigSpec = MachineOSConfigSpec()


class MachineConfigNodeStatus(Wire, frozen=True):
    """`status` of a MachineConfigNode: a condition for each step of an update, Unknown while it is under way."""

    conditions: tuple[Condition, ...] = ()


class MachineConfigNode(Object, frozen=True):
    """The progress of the update of the node with that name; releases before 4.20 may not have it."""

    status: MachineConfigNodeStatus = MachineConfigNodeStatus()
