"""Objects as the rows that `kubectl get` prints: the columns of kube-apiserver's printers, and those of a CRD.

Columns of priority 1 are for `-o wide`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.published.tables import cells
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
_NO_FORMAT = {"format": "", "description": ""}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading and the function of its cells."""

    name: str
    cell: cells.Cell
    type: str = "string"
    priority: int = 0

    def definition(self) -> JSON:
        """Returns the column's definition in a Table."""
        named = {"format": "name", "description": "The object's name."} if self.name == "Name" else _NO_FORMAT
        return {"name": self.name, "type": self.type, **named, "priority": self.priority}


def _wide_column(name: str, cell: cells.Cell) -> Column:
    return Column(name, cell, priority=1)


def _number_column(name: str, path: str) -> Column:
    return Column(name, cells.value_cell(path, 0), "integer")


_NAME = Column("Name", cells.name_of)
_AGE = Column("Age", cells.age_of)
_CREATED = Column("Created At", cells.value_cell(".metadata.creationTimestamp"), "date")
_TEMPLATE = ".spec.template.spec.containers"
_CONTAINERS = (
    _wide_column("Containers", cells.list_cell(_TEMPLATE, "name")),
    _wide_column("Images", cells.list_cell(_TEMPLATE, "image")),
)
_SELECTOR = _wide_column("Selector", cells.selector_cell(".spec.selector"))
_READY = Column("Ready", cells.ratio_cell(".status.readyReplicas", ".spec.replicas"))
_BINDING = (
    Column("Role", cells.role_ref),
    _AGE,
    _wide_column("Users", cells.subjects_cell("User")),
    _wide_column("Groups", cells.subjects_cell("Group")),
    _wide_column("ServiceAccounts", cells.subjects_cell("ServiceAccount")),
)
_JOB = ".spec.jobTemplate.spec.template.spec.containers"

# Without the name, which is the first column of all kinds except events.
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "runtimeclasses.node.k8s.io": (Column("Handler", cells.value_cell(".handler")), _AGE),
    "pods": (
        Column("Ready", cells.pod_ready),
        Column("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts),
        _AGE,
        _wide_column("IP", cells.cell_or_none(".status.podIP")),
        _wide_column("Node", cells.cell_or_none(".spec.nodeName")),
        _wide_column("Nominated Node", cells.cell_or_none(".status.nominatedNodeName")),
        _wide_column("Readiness Gates", cells.pod_gates),
    ),
    "deployments.apps": (
        _READY,
        Column("Up-to-date", cells.value_cell(".status.updatedReplicas", 0)),
        Column("Available", cells.value_cell(".status.availableReplicas", 0)),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "replicasets.apps": (
        _number_column("Desired", ".spec.replicas"),
        _number_column("Current", ".status.replicas"),
        _number_column("Ready", ".status.readyReplicas"),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "statefulsets.apps": (_READY, _AGE, *_CONTAINERS),
    "daemonsets.apps": (
        _number_column("Desired", ".status.desiredNumberScheduled"),
        _number_column("Current", ".status.currentNumberScheduled"),
        _number_column("Ready", ".status.numberReady"),
        _number_column("Up-to-date", ".status.updatedNumberScheduled"),
        _number_column("Available", ".status.numberAvailable"),
        Column("Node Selector", cells.labels_cell(".spec.template.spec.nodeSelector")),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "jobs.batch": (
        Column("Status", cells.job_status),
        Column("Completions", cells.ratio_cell(".status.succeeded", ".spec.completions")),
        Column("Duration", cells.job_duration),
        _AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "cronjobs.batch": (
        Column("Schedule", cells.value_cell(".spec.schedule")),
        Column("Timezone", cells.cell_or_none(".spec.timeZone")),
        Column("Suspend", cells.value_cell(".spec.suspend", False), "boolean"),
        Column("Active", cells.count_cell(".status.active"), "integer"),
        Column("Last Schedule", cells.last_schedule),
        _AGE,
        _wide_column("Containers", cells.list_cell(_JOB, "name")),
        _wide_column("Images", cells.list_cell(_JOB, "image")),
        _wide_column("Selector", cells.selector_cell(".spec.jobTemplate.spec.selector")),
    ),
    "nodes": (
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        _AGE,
        Column("Version", cells.value_cell(".status.nodeInfo.kubeletVersion")),
        _wide_column("Internal-IP", cells.address_cell("InternalIP")),
        _wide_column("External-IP", cells.address_cell("ExternalIP")),
        _wide_column("OS-Image", cells.value_cell(".status.nodeInfo.osImage", "<unknown>")),
        _wide_column("Kernel-Version", cells.value_cell(".status.nodeInfo.kernelVersion", "<unknown>")),
        _wide_column("Container-Runtime", cells.value_cell(".status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    ),
    "namespaces": (Column("Status", cells.value_cell(".status.phase", "Active")), _AGE),
    "configmaps": (Column("Data", cells.data_count), _AGE),
    "secrets": (Column("Type", cells.value_cell(".type", "Opaque")), Column("Data", cells.data_count), _AGE),
    "serviceaccounts": (Column("Secrets", cells.count_cell(".secrets")), _AGE),
    "services": (
        Column("Type", cells.value_cell(".spec.type", "ClusterIP")),
        Column("Cluster-IP", cells.cell_or_none(".spec.clusterIP")),
        Column("External-IP", cells.service_external),
        Column("Port(s)", cells.service_ports),
        _AGE,
        _wide_column("Selector", cells.labels_cell(".spec.selector")),
    ),
    "leases.coordination.k8s.io": (Column("Holder", cells.value_cell(".spec.holderIdentity")), _AGE),
    "poddisruptionbudgets.policy": (
        Column("Min Available", cells.budget_cell(".spec.minAvailable")),
        Column("Max Unavailable", cells.budget_cell(".spec.maxUnavailable")),
        _number_column("Allowed Disruptions", ".status.disruptionsAllowed"),
        _AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (_CREATED,),
    "roles.rbac.authorization.k8s.io": (_CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (_CREATED,),
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "persistentvolumeclaims": (Column("Status", cells.value_cell(".status.phase")), _AGE),
    "persistentvolumes": (Column("Status", cells.value_cell(".status.phase")), _AGE),
}
_EVENTS = (
    Column("Last Seen", cells.event_seen),
    Column("Type", cells.value_cell(".type")),
    Column("Reason", cells.value_cell(".reason")),
    Column("Object", cells.event_object),
    _wide_column("Subobject", cells.value_cell(".involvedObject.fieldPath")),
    _wide_column("Source", cells.event_source),
    Column("Message", cells.value_cell(".message")),
    _wide_column("First Seen", cells.event_first),
    _wide_column("Count", cells.event_count),
    Column("Name", cells.name_of, priority=1),
)


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Returns the columns of a built-in kind; by default, name and age."""
    if kind.resource in {"events", "events.events.k8s.io"}:
        return _EVENTS
    return (_NAME, *_COLUMNS.get(kind.resource, (_AGE,)))


# -- Rows --------------------------------------------------------------------------------------------------------------


class Tables:
    """The columns and cells by kind."""

    def columns(self, kind: Kind) -> list[JSON]:
        """Returns the column definitions of a kind."""
        definitions = [column.definition() for column in columns_of(kind)]
        if not (declared := _declared_columns(kind)):
            return definitions
        by_path = "Custom resource definition column (in JSONPath format)"
        return [
            _NAME.definition(),
            *(
                {
                    "name": column["name"],
                    "type": column["type"],
                    "format": column.get("format", ""),
                    "description": column.get("description") or f"{by_path}: {column['jsonPath']}",
                    "priority": column.get("priority", 0),
                }
                for column in declared
            ),
        ]

    def cells(self, kind: Kind, obj: JSON, now: datetime) -> list[Any]:
        """Returns the cells of one object."""
        if declared := _declared_columns(kind):
            return [obj["metadata"].get("name", ""), *(_custom_cell(column, obj, now) for column in declared)]
        return [column.cell(obj, now) for column in columns_of(kind)]


def _declared_columns(kind: Kind) -> list[JSON]:
    """Returns the additionalPrinterColumns of a custom kind's version; none for a built-in kind."""
    versions = ((kind.crd or {}).get("spec") or {}).get("versions") or () if kind.custom else ()
    return next((v.get("additionalPrinterColumns") or [] for v in versions if v.get("name") == kind.version), [])


def _custom_cell(column: JSON, obj: JSON, now: datetime) -> Any:
    """Returns the cell of a declared column: an age for a date, None if the path matches nothing."""
    try:
        values = cells.find_values(column["jsonPath"], obj)
    except cells.PathError:
        return None
    if not values:
        return None
    value = values[0]
    # Columns of type date show ages, as kubectl get does.
    if column["type"] == "date":
        return cells.age_since(value if isinstance(value, str) else None, now)
    if column["type"] in {"integer", "number", "boolean"}:
        return value
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
