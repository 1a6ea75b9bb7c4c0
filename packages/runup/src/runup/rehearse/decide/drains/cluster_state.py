"""The state of a simulated cluster: its workloads, pods and nodes, and what its quotas still allow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from kubekit.api.core_v1 import Node, Taint
from kubekit.api.scheduling import CsiNode, ResourceQuota
from kubekit.rules.node_rules import CORDON
from kubekit.rules.pod_requests import whole_number, whole_numbers
from runup.rehearse.decide.drains.pod_shapes import Port, Shape

_ANY = "0.0.0.0"  # noqa: S104 (an address of a pod's)
# Phases of a pod's life here: it waits for a node, starts on one, runs, ends; it is gone.
PENDING, STARTING, RUNNING, TERMINATING, GONE = "Pending", "Starting", "Running", "Terminating", "Gone"


class Workload:
    """A workload, which replaces its pods, and the number of them that are ready. Times are seconds from the beginning.

    `named` is its kind and name for texts. One with `one_by_one` creates the next pod when the last is gone, as a
    StatefulSet does; one with `on_node` creates it on the same node, when that is back. `least` is the lowest number of
    ready pods so far, `start_s` the seconds that a pod takes to become ready (None: it never is), and `started_s` those
    of its pods that it was learned from. `down_since` is the time and cause of an outage (no pod ready) that has not
    ended, `outages` are begin, end and cause of all others.
    """

    __slots__ = (
        "down_since",
        "least",
        "named",
        "on_node",
        "one_by_one",
        "outages",
        "pods",
        "ready",
        "start_s",
        "started_s",
    )

    def __init__(self, reason: str, *, one_by_one: bool, on_node: bool = False) -> None:
        self.named, self.one_by_one, self.on_node = reason, one_by_one, on_node
        self.pods = 0
        self.ready = 0
        self.least = 0
        self.start_s: int | None = 0
        self.started_s: list[int] = []
        self.down_since: tuple[int, str] | None = None
        self.outages: list[tuple[int, int | None, str]] = []


class PodState:
    """A pod. `since` is when its phase began, in seconds from the beginning; `why` the scheduler's reason if it waits,
    and `hint` a cause that it does not name.

    `moved_from` is the node on which its predecessor ran ("": none), `is_new` whether the simulation created it,
    `is_pending` whether its phase in the API was Pending, `rivals` are the workloads that got the room that it
    might have got.
    """

    __slots__ = (
        "begun_s",
        "hint",
        "id",
        "is_new",
        "is_pending",
        "moved_from",
        "name",
        "node",
        "phase",
        "ready",
        "reported",
        "rivals",
        "shape",
        "since",
        "why",
        "workload",
    )

    def __init__(self, number: int, name: str, shape: Shape, workload: Workload | None) -> None:
        self.id, self.name, self.shape, self.workload = number, name, shape, workload
        self.node: NodeRoom | None = None
        self.phase = PENDING
        self.ready = False
        self.since = 0
        # When the pod was started first, as a moment: the scheduler preempts those that started last.
        self.begun_s = 0.0
        self.why = self.hint = ""
        self.moved_from = ""
        self.is_new = self.is_pending = False
        self.reported = False
        self.rivals: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Returns `namespace/name`."""
        return f"{self.shape.namespace}/{self.name}"


class NodeRoom:
    """A node, and the room that its pods leave.

    `cpu`, `memory`, `slots` (pods) and `others` are what is still free of each resource. `limits` are the numbers of
    volumes that may be attached, by CSI driver, and `attached` the handles of those that are, each with the number of
    its pods. `own_taints` are without that of a cordon; `was_cordoned` is whether it was cordoned at the beginning.
    """

    __slots__ = (
        "allocatable",
        "attached",
        "cordoned",
        "cpu",
        "labels",
        "limits",
        "memory",
        "name",
        "others",
        "own_taints",
        "pods",
        "ports",
        "removed",
        "slots",
        "source",
        "was_cordoned",
    )

    def __init__(self, node: Node, csi: CsiNode | None, name: str = "") -> None:
        self.source = node
        self.name = name or node.metadata.name
        self.labels = node.metadata.labels
        # A cordon is the field; the node controller's taint follows it.
        self.own_taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON.key)
        self.cordoned = self.was_cordoned = node.spec.unschedulable
        self.removed = False
        self.allocatable = whole_numbers(node.status.allocatable)
        self.cpu = self.allocatable.get("cpu", 0)
        self.memory = self.allocatable.get("memory", 0)
        self.slots = self.allocatable.get("pods", 0)
        self.others = {name: value for name, value in self.allocatable.items() if name not in ("cpu", "memory", "pods")}
        self.ports: Counter[Port] = Counter()
        self.pods: dict[int, PodState] = {}
        self.limits = {
            driver.name: driver.allocatable.count
            for driver in (csi.spec.drivers if csi else ())
            if driver.allocatable.count is not None
        }
        self.attached: dict[str, Counter[str]] = {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints of the node as it is now."""
        return (*self.own_taints, CORDON) if self.cordoned else self.own_taints

    def add(self, pod: PodState, csi_volume_handles: tuple[tuple[str, str], ...]) -> None:
        """Puts a pod on the node; `csi_volume_handles` are driver and handle of each of its volumes."""
        self._change_room(pod.shape, csi_volume_handles, 1)
        self.pods[pod.id] = pod

    def remove(self, pod: PodState, csi_volume_handles: tuple[tuple[str, str], ...]) -> None:
        """Takes a pod off the node."""
        self._change_room(pod.shape, csi_volume_handles, -1)
        del self.pods[pod.id]

    def _change_room(self, shape: Shape, csi_volume_handles: tuple[tuple[str, str], ...], sign: int) -> None:
        """Takes the room of a pod of the shape, or gives it back if `sign` is -1."""
        self.cpu -= sign * shape.cpu
        self.memory -= sign * shape.memory
        self.slots -= sign
        for name, value in shape.others:
            self.others[name] = self.others.get(name, 0) - sign * value
        for port in shape.ports:
            self.ports[port] += sign
            if not self.ports[port]:
                del self.ports[port]
        for driver, handle in csi_volume_handles:
            by_handle = self.attached.setdefault(driver, Counter())
            by_handle[handle] += sign
            if not by_handle[handle]:
                del by_handle[handle]

    def has_room(self, shape: Shape) -> bool:
        """Returns whether the resources that the shape requests are free."""
        # Asked for each pod and many nodes: the most likely shortages first. What is not requested may be overdrawn.
        if self.slots < 1 or (shape.cpu and shape.cpu > self.cpu) or (shape.memory and shape.memory > self.memory):
            return False
        return all(value <= self.others.get(name, 0) for name, value in shape.others)

    def short_of(self, shape: Shape) -> tuple[str, ...]:
        """Returns the resources that are not free for the shape, in the scheduler's words."""
        shortages = [] if self.slots >= 1 else ["Too many pods"]
        if shape.cpu and shape.cpu > self.cpu:
            shortages.append("Insufficient cpu")
        if shape.memory and shape.memory > self.memory:
            shortages.append("Insufficient memory")
        shortages += [f"Insufficient {name}" for name, value in shape.others if value > self.others.get(name, 0)]
        return tuple(shortages)

    def has_ports(self, shape: Shape) -> bool:
        """Returns whether the host ports of the shape are free; address 0.0.0.0 conflicts with every address."""
        if not shape.ports or not self.ports:
            return True
        for address, protocol, number in shape.ports:
            for used_address, used_protocol, used_number in self.ports:
                if (protocol, number) == (used_protocol, used_number) and (
                    address == used_address or _ANY in (address, used_address)
                ):
                    return False
        return True

    def exceeds_attachments(self, csi_volume_handles: tuple[tuple[str, str], ...]) -> bool:
        """Returns whether a CSI driver's limit of volumes on the node would be exceeded by these volumes."""
        if not csi_volume_handles or not self.limits:
            return False
        new: Counter[str] = Counter()
        for driver, handle in set(csi_volume_handles):
            if handle not in self.attached.get(driver, ()):
                new[driver] += 1
        return any(
            len(self.attached.get(driver, ())) + attachments > self.limits[driver]
            for driver, attachments in new.items()
            if driver in self.limits
        )


_PODS = ("pods", "count/pods")


def is_simulated(quota: ResourceQuota) -> bool:
    """Returns whether the quota is over all pods of its namespace."""
    return not quota.spec.scopes and quota.spec.scope_selector is None


class Quotas:
    """The quotas of a cluster, by namespace, and what the pods use of them."""

    def __init__(self, quotas: Iterable[ResourceQuota], pods: Iterable[PodState]) -> None:
        self._hard: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for quota in quotas:
            if is_simulated(quota):
                for name, value in quota.spec.hard.items():
                    resource = _limited_resource(name)
                    if resource:
                        hard = (quota.metadata.name, resource, whole_number(resource, value))
                        self._hard[quota.metadata.namespace].append(hard)
        self._used: dict[str, dict[str, int]] = {namespace: defaultdict(int) for namespace in self._hard}
        for pod in pods:
            self.take(pod.shape)

    def why_not(self, shape: Shape) -> str:
        """Returns which quota refuses one more pod of the shape, or an empty string."""
        if shape.namespace not in self._hard:
            return ""
        used, requested = self._used[shape.namespace], dict(_uses_of_pod(shape))
        for name, resource, hard in self._hard[shape.namespace]:
            request = requested.get(resource, 0)
            if request and used[resource] + request > hard:
                return f"exceeded quota: {name}"
        return ""

    def take(self, shape: Shape, pods: int = 1) -> None:
        """Counts a pod that was created or, with -1, deleted."""
        used = self._used.get(shape.namespace)
        if used is not None:
            for resource, value in _uses_of_pod(shape):
                used[resource] += pods * value


def _limited_resource(name: str) -> str:
    """Returns the resource whose requests a name in a quota's `spec.hard` limits: `cpu` for `cpu` and `requests.cpu`.

    Returns an empty string for what is not simulated: limits, storage, and numbers of other objects.
    """
    if name in _PODS:
        return "pods"
    if name in ("cpu", "memory", "ephemeral-storage"):
        return name
    resource = name.removeprefix("requests.")
    return resource if resource != name and resource != "storage" else ""


def _uses_of_pod(shape: Shape) -> Iterator[tuple[str, int]]:
    yield "pods", 1
    yield from shape.requested.items()
