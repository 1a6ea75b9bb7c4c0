"""`core/v1`: the kinds and fields that runup reads."""

from datetime import datetime

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire


class Taint(Wire, frozen=True):
    """A node's repulsion; `effect` is NoSchedule, PreferNoSchedule or NoExecute. `time_added` may be absent."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeSystemInfo(Wire, frozen=True, kw_only=True):
    """The kubelet's report about itself and its machine."""

    architecture: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    os_image: str = msgspec.field(default="", name="osImage")


class NodeStatus(Wire, frozen=True):
    """`status` of a Node; the heartbeat fields change every few minutes and are not read."""

    conditions: tuple[Condition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    # The resources that pods may request, such as cpu and memory, as quantities.
    allocatable: dict[str, str] = {}


class Node(Object, frozen=True, kw_only=True):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ContainerStateWaiting(Wire, frozen=True):
    """The reason why a container has not started."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Wire, frozen=True, kw_only=True):
    """The result of an ended container; `reason` is Completed, Error, OOMKilled, ..."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerStateRunning(Wire, frozen=True):
    """The time since which a container runs."""

    started_at: datetime | None = None


class ContainerState(Wire, frozen=True):
    """The state of a container: exactly one of the three is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """A container as the kubelet reports it."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Container(Wire, frozen=True):
    """The part of a container's declaration that checks read."""

    name: str = ""
    image: str = ""


class PodSpec(Wire, frozen=True):
    node_name: str = ""
    service_account_name: str = ""
    containers: tuple[Container, ...] = ()


class PodStatus(Wire, frozen=True, kw_only=True):
    """`status` of a Pod; `phase` is Pending, Running, Succeeded, Failed or Unknown."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Object, frozen=True, kw_only=True):
    """A running workload."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ConfigMap(Object, frozen=True, kw_only=True):
    """Configuration data; `binary_data` holds base64 text on the wire and bytes here."""

    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class ObjectReference(Wire, frozen=True):
    """A reference to the object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSeries(Wire, frozen=True):
    """The number of occurrences of an event, from newer reporters."""

    count: int = 0
    last_observed_time: datetime | None = None


class Event(Object, frozen=True, kw_only=True):
    """A component's message about an object. Older reporters count in `count`, newer ones in `series`."""

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    series: EventSeries | None = None

    @property
    def seen_at(self) -> datetime | None:
        """The time of the last occurrence."""
        # Newer reporters set `series` and `eventTime`, older ones `lastTimestamp`.
        last = self.series.last_observed_time if self.series else None
        return last or self.last_timestamp or self.event_time or self.metadata.creation_timestamp


class Namespace(Object, frozen=True):
    """A namespace."""


class LocalObjectReference(Wire, frozen=True):
    """An object in the same namespace."""

    name: str = ""


class ServiceAccount(Object, frozen=True):
    """An identity for pods; `image_pull_secrets` are the Secrets with which they pull images."""

    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
