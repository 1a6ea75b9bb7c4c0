"""Pods as the scheduler and a drain see them: constraints, requests, volumes, conditions with their times."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubekit.api.meta_v1 import Condition, LabelSelector, LabelSelectorRequirement, Object, Wire

Amounts = dict[str, str | int | float]


class Toleration(Wire, frozen=True):
    """Taints that a pod tolerates: all of them without a key, of any value with operator Exists."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Wire, frozen=True):
    """Requirements on a node, by labels and by fields; it must meet all of them."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """The nodes that have what one of the terms demands."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Wire, frozen=True):
    """The nodes on which pods must be; what they would rather have is not read."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Wire, frozen=True):
    """Pods beside which, or away from which, a pod must be: in the same value of the nodes' label `topology_key`."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class PodAffinity(Wire, frozen=True):
    """The required terms of a pod's affinity or anti-affinity to other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(Wire, frozen=True):
    """The required part of `affinity`: to nodes, to pods, and away from pods."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class TopologySpreadConstraint(Wire, frozen=True):
    """A limit on how unevenly pods may be spread over the values of a node label."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ResourceRequirements(Wire, frozen=True):
    """The requests of a container or a pod, as quantities."""

    requests: Amounts = {}


class HostPort(Wire, frozen=True):
    """A port of a container; `host_port` is one of its node, 0 for none."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class SchedulingContainer(Wire, frozen=True):
    """A container's requests and ports; an init container that restarts always is a sidecar."""

    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[HostPort, ...] = ()
    restart_policy: str = ""


class ClaimSource(Wire, frozen=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""


class EmptyDir(Wire, frozen=True):
    """A folder that ends with its pod."""

    medium: str = ""


class HostFolder(Wire, frozen=True):
    """A folder of the node."""

    path: str = ""


class Ephemeral(Wire, frozen=True):
    """A claim that is made for the pod, and ends with it."""


class SchedulingVolume(Wire, frozen=True):
    """A volume of a pod, as far as it ties the pod to a node."""

    persistent_volume_claim: ClaimSource | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostFolder | None = None
    ephemeral: Ephemeral | None = None


class SchedulingGate(Wire, frozen=True):
    """A gate that has to be removed before the pod is scheduled."""

    name: str = ""


class SchedulingPodSpec(Wire, frozen=True):
    """`spec` of a Pod, as far as scheduler and drain read it."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[SchedulingContainer, ...] = ()
    init_containers: tuple[SchedulingContainer, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Amounts = {}
    volumes: tuple[SchedulingVolume, ...] = ()
    priority: int = 0
    preemption_policy: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    host_network: bool = False
    termination_grace_period_seconds: int = 30


class RestartedContainer(Wire, frozen=True):
    """The number of restarts of a container."""

    restart_count: int = 0


class SchedulingPodStatus(Wire, frozen=True):
    """`status` of a Pod: its phase, and when it became what it is."""

    phase: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[RestartedContainer, ...] = ()


class SchedulingPod(Object, frozen=True):
    """A Pod as scheduler and drain see it."""

    spec: SchedulingPodSpec = SchedulingPodSpec()
    status: SchedulingPodStatus = SchedulingPodStatus()
