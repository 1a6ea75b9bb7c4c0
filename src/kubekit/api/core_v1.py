"""`core/v1`: the kinds and fields that runup reads."""

from datetime import datetime

import msgspec

from kubekit.api.meta_v1 import Condition, ConditionStatus, Object, Wire


class Taint(Wire, frozen=True):
    """A node's repulsion; `effect` is NoSchedule, PreferNoSchedule or NoExecute. `time_added` may be absent."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Wire, frozen=True):
    """`spec` of a Node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeSystemInfo(Wire, frozen=True):
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


class Node(Object, frozen=True):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ContainerStateWaiting(Wire, frozen=True):
    """The reason why a container has not started."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Wire, frozen=True):
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


class ContainerStatus(Wire, frozen=True):
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
    """`spec` of a Pod."""

    node_name: str = ""
    service_account_name: str = ""
    containers: tuple[Container, ...] = ()


class PodStatus(Wire, frozen=True):
    """`status` of a Pod; `phase` is Pending, Running, Succeeded, Failed or Unknown."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class CommandContainer(Wire, frozen=True):
    """A container's name, and what it starts."""

    name: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class CommandPodSpec(Wire, frozen=True):
    """The part of a Pod's `spec` with what it starts."""

    containers: tuple[CommandContainer, ...] = ()


class CommandPod(Object, frozen=True):
    """A Pod with only the fields that say what its containers start."""

    spec: CommandPodSpec = CommandPodSpec()


class Pod(Object, frozen=True):
    """A running workload."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Requests(Wire, frozen=True):
    """The resources that a container requests, as quantities; a number is one too. Other resources are not read."""

    cpu: str | int | float = 0
    memory: str | int | float = 0


class ResourceRequests(Wire, frozen=True):
    """A container's `resources`."""

    requests: Requests = Requests()


class Capabilities(Wire, frozen=True):
    """The capabilities that a container is given and denied."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SeccompProfile(Wire, frozen=True):
    """The profile of system calls: RuntimeDefault, Localhost or Unconfined."""

    type: str = ""


class SecurityContext(Wire, frozen=True):
    """The part of a pod's or container's `securityContext` that the Pod Security Standards ask about."""

    privileged: bool = False
    allow_privilege_escalation: bool = True
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    capabilities: Capabilities = Capabilities()
    seccomp_profile: SeccompProfile | None = None


class ContainerPort(Wire, frozen=True):
    """A port of a container; `host_port` is one of its node."""

    host_port: int = 0


class RequestingContainer(Wire, frozen=True):
    """The part of a container's declaration with its image, its resource requests and its security."""

    image: str = ""
    resources: ResourceRequests = ResourceRequests()
    security_context: SecurityContext | None = None
    ports: tuple[ContainerPort, ...] = ()


class HostPath(Wire, frozen=True):
    """A folder of the node."""

    path: str = ""


class ClaimReference(Wire, frozen=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""


class PodVolume(Wire, frozen=True):
    """A volume of a pod, with only the fields that say whether it is a folder of the node, and which claim it uses."""

    host_path: HostPath | None = None
    persistent_volume_claim: ClaimReference | None = None


class PodOS(Wire, frozen=True):
    """The operating system of a pod: `linux` or `windows`, or empty if the pod does not say."""

    name: str = ""


class PodPlace(Wire, frozen=True):
    """The part of a Pod's `spec` with its node, its grace period in seconds, its requests and its security."""

    node_name: str = ""
    termination_grace_period_seconds: int = 30
    containers: tuple[RequestingContainer, ...] = ()
    init_containers: tuple[RequestingContainer, ...] = ()
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    security_context: SecurityContext | None = None
    os: PodOS = PodOS()
    volumes: tuple[PodVolume, ...] = ()


class WaitingState(Wire, frozen=True):
    """The part of a container's state that says why it has not started."""

    waiting: ContainerStateWaiting | None = None


class WaitingContainer(Wire, frozen=True):
    """A container, with the reason why it does not run."""

    name: str = ""
    state: WaitingState = WaitingState()


class PodCondition(Wire, frozen=True):
    """A Pod's condition without message and times."""

    type: str
    status: ConditionStatus
    reason: str = ""


class PodPhase(Wire, frozen=True):
    """The part of a Pod's `status` with its phase, its conditions, and why its containers do not run.

    `ready`, `waiting` (why a container does not run) and `pending` (what a pod that has not started waits for) are not
    fields of a Pod: see `PlacedPod`.
    """

    phase: str = ""
    ready: bool = False
    waiting: str = ""
    pending: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[WaitingContainer, ...] = ()
    init_container_statuses: tuple[WaitingContainer, ...] = ()


class PodOwner(Wire, frozen=True):
    """The object that owns a Pod."""

    kind: str = ""
    name: str = ""


class PodAnnotations(Wire, frozen=True):
    """The annotation that names the security context constraints by which OpenShift admitted a pod."""

    scc: str = msgspec.field(default="", name="openshift.io/scc")


class ListedPodMeta(Wire, frozen=True):
    """The part of a Pod's `metadata` with its name, its owners, its beginning and its deletion."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: PodAnnotations = PodAnnotations()
    owner_references: tuple[PodOwner, ...] = ()


class PodTraits(Wire, frozen=True):
    """What the `metadata` of pods of one workload have in common."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: PodAnnotations = PodAnnotations()


class PodMeta(Wire, frozen=True):
    """The `metadata` of a `PlacedPod`: each field takes megabytes in a large cluster, so that `traits` has most."""

    name: str = ""
    namespace: str = ""
    owner_references: tuple[PodOwner, ...] = ()
    traits: PodTraits = PodTraits()

    @property
    def resource_version(self) -> str:
        """Empty: it is not kept."""
        return ""

    @property
    def creation_timestamp(self) -> datetime | None:
        """When it was made; None for one that has started."""
        return self.traits.creation_timestamp

    @property
    def deletion_timestamp(self) -> datetime | None:
        """When its deletion was asked for."""
        return self.traits.deletion_timestamp

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return self.traits.labels

    @property
    def annotations(self) -> PodAnnotations:
        """Those of its annotations that checks read."""
        return self.traits.annotations


class PodDemands(Wire, frozen=True):
    """What a Pod demands: the requests of its containers together, and what of its spec needs more than a node.

    `exceeds` is the level of the Pod Security Standards that it violates, and why; `claims` are the names of its
    PersistentVolumeClaims, and `addons` the images of its containers that belong to known add-ons.
    """

    cpu_milli: int = 0
    memory_bytes: int = 0
    exceeds: tuple[str, str] | None = None
    claims: tuple[str, ...] = ()
    addons: tuple[str, ...] = ()


class ListedPod(Object, frozen=True):
    """A Pod as it is decoded, before it becomes a `PlacedPod`."""

    # Narrower than ObjectMeta: annotations and times, which are not used, would be most of the decoded data.
    metadata: ListedPodMeta = ListedPodMeta()  # type: ignore[assignment]
    spec: PodPlace = PodPlace()
    status: PodPhase = PodPhase()


class PlacedPod(Object, frozen=True):
    """A Pod with little more than its node and phase: a cluster may have hundreds of thousands.

    `demands`, and in its status `ready`, `waiting` and `pending`, are not fields of a Pod: the code that stores a pod
    computes them from fields that it then drops. They are in structs of their own because many pods share one.
    """

    metadata: PodMeta = PodMeta()  # type: ignore[assignment]
    spec: PodPlace = PodPlace()
    status: PodPhase = PodPhase()
    demands: PodDemands = PodDemands()


class ConfigMap(Object, frozen=True):
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


class Event(Object, frozen=True):
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
