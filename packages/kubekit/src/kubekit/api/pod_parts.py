"""Pods with only the parts that checks read: a cluster may have hundreds of thousands.

Apart from `core_v1`, which every command imports: each type takes a command's start some of its time.
"""

from datetime import datetime

import msgspec

from kubekit.api.core_v1 import ContainerStateWaiting
from kubekit.api.meta_v1 import ConditionStatus, Object, Wire


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


class Requests(Wire, frozen=True):
    """The resources that a container requests, as quantities; a number is one too. Other resources are not read."""

    cpu: str | int | float = 0
    memory: str | int | float = 0


class Limits(Wire, frozen=True):
    """The limits of a container, as quantities; None for an absent limit. Other resources are not read."""

    cpu: str | int | float | None = None
    memory: str | int | float | None = None


class ResourceRequests(Wire, frozen=True):
    """A container's `resources`."""

    requests: Requests = Requests()
    limits: Limits = Limits()


class Capabilities(Wire, frozen=True):
    """The capabilities that a container is given and denied."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SeccompProfile(Wire, frozen=True):
    """The profile of system calls: RuntimeDefault, Localhost or Unconfined."""

    type: str = ""


class SELinuxOptions(Wire, frozen=True):
    """The SELinux label of a pod or container."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityContext(Wire, frozen=True, kw_only=True):
    """The fields of `securityContext` that concern the SELinux label and pod security."""

    privileged: bool = False
    allow_privilege_escalation: bool = True
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    capabilities: Capabilities = Capabilities()
    seccomp_profile: SeccompProfile | None = None
    se_linux_options: SELinuxOptions | None = None
    se_linux_change_policy: str = ""


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


class VolumeSource(Wire, frozen=True):
    """A volume's source, whose parameters are not read."""


class PodVolume(Wire, frozen=True, kw_only=True):
    """A volume of a pod: whether it is a folder of the node, which claim it uses, or which in-tree plug-in it names."""

    host_path: HostPath | None = None
    persistent_volume_claim: ClaimReference | None = None
    aws_elastic_block_store: VolumeSource | None = None
    azure_disk: VolumeSource | None = None
    azure_file: VolumeSource | None = None
    cephfs: VolumeSource | None = None
    cinder: VolumeSource | None = None
    flocker: VolumeSource | None = None
    gce_persistent_disk: VolumeSource | None = None
    git_repo: VolumeSource | None = None
    glusterfs: VolumeSource | None = None
    portworx_volume: VolumeSource | None = None
    quobyte: VolumeSource | None = None
    rbd: VolumeSource | None = None
    scale_io: VolumeSource | None = msgspec.field(default=None, name="scaleIO")
    storageos: VolumeSource | None = None
    vsphere_volume: VolumeSource | None = None

    @property
    def plugin(self) -> str:
        """The in-tree plug-in that the volume names, as the API calls it; empty if it names none."""
        return next((name for field, name in IN_TREE_PLUGINS if getattr(self, field) is not None), "")


# The fields of a `PodVolume` that are in-tree plug-ins, each with its name in the API.
IN_TREE_PLUGINS = tuple(
    (field, name)
    for field, name in zip(PodVolume.__struct_fields__, PodVolume.__struct_encode_fields__, strict=True)
    if field not in ("host_path", "persistent_volume_claim")
)


class PodOS(Wire, frozen=True):
    """The operating system of a pod: `linux` or `windows`, or empty if the pod does not say."""

    name: str = ""


class PodPlace(Wire, frozen=True, kw_only=True):
    """The part of a Pod's `spec` with its node, its grace period in seconds, its requests and its security."""

    node_name: str = ""
    termination_grace_period_seconds: int = 30
    containers: tuple[RequestingContainer, ...] = ()
    init_containers: tuple[RequestingContainer, ...] = ()
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    security_context: SecurityContext | None = None
    # Of the whole pod.
    resources: ResourceRequests | None = None
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


class PodPhase(Wire, frozen=True, kw_only=True):
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
    """The object that owns a Pod; `controller` is true of the one that replaces it."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class PodAnnotations(Wire, frozen=True):
    """The annotations that name the security context constraints of a pod on OpenShift, and mark a static pod."""

    scc: str = msgspec.field(default="", name="openshift.io/scc")
    mirror: str = msgspec.field(default="", name="kubernetes.io/config.mirror")


class ListedPodMeta(Wire, frozen=True, kw_only=True):
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
    """The common `metadata` of the pods of one workload."""

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


class Violation(Wire, frozen=True, kw_only=True):
    """A violation of a level of the Pod Security Standards, which has the rule since Kubernetes 1.`since_minor`."""

    level: str
    why: str
    since_minor: int = 0


class PodDemands(Wire, frozen=True, kw_only=True):
    """The demands of a Pod: the sum of its containers' requests, and the fields that depend on more than one node.

    `violations` are of the Pod Security Standards; `claims` are the names of its PersistentVolumeClaims, `plugins` the
    in-tree plug-ins of its other volumes, and `addons` the images of its containers that belong to known add-ons.
    `undeclared` are the amounts that some container does not declare, as a quota calls them (`limits.memory`).
    `se_linux` is the label with which volumes are mounted for the pod, if any.
    `withdrawn` are the images that their registries no longer have.
    """

    cpu_milli: int = 0
    memory_bytes: int = 0
    violations: tuple[Violation, ...] = ()
    claims: tuple[str, ...] = ()
    addons: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    se_linux: str = ""
    withdrawn: tuple[str, ...] = ()


class ListedPod(Object, frozen=True, kw_only=True):
    """A Pod as it is decoded, before it becomes a `PlacedPod`."""

    # Narrower than ObjectMeta: annotations and times, which are not used, would be most of the decoded data.
    metadata: ListedPodMeta = ListedPodMeta()  # type: ignore[assignment]
    spec: PodPlace = PodPlace()
    status: PodPhase = PodPhase()


class PlacedPod(Object, frozen=True, kw_only=True):
    """A Pod with little more than its node and phase: a cluster may have hundreds of thousands.

    `demands`, and in its status `ready`, `waiting` and `pending`, are not fields of a Pod: the code that stores a pod
    computes them from fields that it then drops. They are in separate structs because many pods share one.
    """

    metadata: PodMeta = PodMeta()  # type: ignore[assignment]
    spec: PodPlace = PodPlace()
    status: PodPhase = PodPhase()
    demands: PodDemands = PodDemands()
