"""The columns of built-in kinds, as kube-apiserver's printers have them; those of priority 1 are for `-o wide`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubesandbox.apiserver.published.tables import cells
from kubesandbox.apiserver.published.tables.cells import Cell, at, labels, listed, or_none, selector
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading and the function of its cells."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> JSON:
        """Returns the column's definition in a Table."""
        what = "The object's name." if self.format == "name" else ""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": what,
            "priority": self.priority,
        }


def _wide(name: str, cell: Cell) -> Column:
    return Column(name, cell, priority=1)


def _number(name: str, path: str) -> Column:
    return Column(name, at(path, 0), "integer")


_NAME = Column("Name", cells.name, format="name")
_AGE = Column("Age", cells.age)
_CREATED = Column("Created At", at(".metadata.creationTimestamp"), "date")
_TEMPLATE = ".spec.template.spec.containers"
_CONTAINERS = (_wide("Containers", listed(_TEMPLATE, "name")), _wide("Images", listed(_TEMPLATE, "image")))
_SELECTOR = _wide("Selector", selector(".spec.selector"))
_READY = Column("Ready", cells.of(".status.readyReplicas", ".spec.replicas"))
_BINDING = (
    Column("Role", cells.role_ref),
    _AGE,
    _wide("Users", cells.subjects("User")),
    _wide("Groups", cells.subjects("Group")),
    _wide("ServiceAccounts", cells.subjects("ServiceAccount")),
)
_JOB = ".spec.jobTemplate.spec.template.spec.containers"

# Without the name, which is the first column of all kinds except events.
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "runtimeclasses.node.k8s.io": (Column("Handler", at(".handler")), _AGE),
    "pods": (
        Column("Ready", cells.pod_ready),
        Column("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts),
        _AGE,
        _wide("IP", or_none(".status.podIP")),
        _wide("Node", or_none(".spec.nodeName")),
        _wide("Nominated Node", or_none(".status.nominatedNodeName")),
        _wide("Readiness Gates", cells.pod_gates),
    ),
    "deployments.apps": (
        _READY,
        Column("Up-to-date", at(".status.updatedReplicas", 0)),
        Column("Available", at(".status.availableReplicas", 0)),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "replicasets.apps": (
        _number("Desired", ".spec.replicas"),
        _number("Current", ".status.replicas"),
        _number("Ready", ".status.readyReplicas"),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "statefulsets.apps": (_READY, _AGE, *_CONTAINERS),
    "daemonsets.apps": (
        _number("Desired", ".status.desiredNumberScheduled"),
        _number("Current", ".status.currentNumberScheduled"),
        _number("Ready", ".status.numberReady"),
        _number("Up-to-date", ".status.updatedNumberScheduled"),
        _number("Available", ".status.numberAvailable"),
        Column("Node Selector", labels(".spec.template.spec.nodeSelector")),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "jobs.batch": (
        Column("Status", cells.job_status),
        Column("Completions", cells.of(".status.succeeded", ".spec.completions")),
        Column("Duration", cells.job_duration),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "cronjobs.batch": (
        Column("Schedule", at(".spec.schedule")),
        Column("Timezone", or_none(".spec.timeZone")),
        Column("Suspend", at(".spec.suspend", False), "boolean"),
        Column("Active", cells.count(".status.active"), "integer"),
        Column("Last Schedule", cells.last_schedule),
        _AGE,
        _wide("Containers", listed(_JOB, "name")),
        _wide("Images", listed(_JOB, "image")),
        _wide("Selector", selector(".spec.jobTemplate.spec.selector")),
    ),
    "nodes": (
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        _AGE,
        Column("Version", at(".status.nodeInfo.kubeletVersion")),
        _wide("Internal-IP", cells.address("InternalIP")),
        _wide("External-IP", cells.address("ExternalIP")),
        _wide("OS-Image", at(".status.nodeInfo.osImage", "<unknown>")),
        _wide("Kernel-Version", at(".status.nodeInfo.kernelVersion", "<unknown>")),
        _wide("Container-Runtime", at(".status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    ),
    "namespaces": (Column("Status", at(".status.phase", "Active")), _AGE),
    "configmaps": (Column("Data", cells.data_count), _AGE),
    "secrets": (Column("Type", at(".type", "Opaque")), Column("Data", cells.data_count), _AGE),
    "serviceaccounts": (Column("Secrets", cells.count(".secrets")), _AGE),
    "services": (
        Column("Type", at(".spec.type", "ClusterIP")),
        Column("Cluster-IP", or_none(".spec.clusterIP")),
        Column("External-IP", cells.service_external),
        Column("Port(s)", cells.service_ports),
        _AGE,
        _wide("Selector", labels(".spec.selector")),
    ),
    "leases.coordination.k8s.io": (Column("Holder", at(".spec.holderIdentity")), _AGE),
    "poddisruptionbudgets.policy": (
        Column("Min Available", cells.budget("minAvailable")),
        Column("Max Unavailable", cells.budget("maxUnavailable")),
        _number("Allowed Disruptions", ".status.disruptionsAllowed"),
        _AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (_CREATED,),
    "roles.rbac.authorization.k8s.io": (_CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (_CREATED,),
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "persistentvolumeclaims": (Column("Status", at(".status.phase")), _AGE),
    "persistentvolumes": (Column("Status", at(".status.phase")), _AGE),
}
_EVENTS = (
    Column("Last Seen", cells.event_seen),
    Column("Type", at(".type")),
    Column("Reason", at(".reason")),
    Column("Object", cells.event_object),
    _wide("Subobject", at(".involvedObject.fieldPath")),
    _wide("Source", cells.event_source),
    Column("Message", at(".message")),
    _wide("First Seen", cells.event_first),
    _wide("Count", cells.event_count),
    Column("Name", cells.name, priority=1, format="name"),
)


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Returns the columns of a built-in kind: name and age if the table has none for it."""
    if kind.resource in {"events", "events.events.k8s.io"}:
        return _EVENTS
    return (_NAME, *_COLUMNS.get(kind.resource, (_AGE,)))
