"""Objects as the rows that `kubectl get` prints: the columns of Kubernetes' own printers, and those of a CRD."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from runup.sandbox.apiserver.jsonpath import PathError, find
from runup.sandbox.apiserver.kinds import Kind

JSON = dict[str, Any]
Cell = Callable[[JSON, datetime], Any]
Column = tuple[str, str, Cell]
NAME = {"name": "Name", "type": "string", "format": "name", "description": "The object's name.", "priority": 0}
_BY_PATH = "Custom resource definition column (in JSONPath format)"


class Tables:
    """Columns and cells by kind."""

    def columns(self, kind: Kind) -> list[JSON]:
        """The column definitions."""
        if kind.custom:
            declared = _declared(kind)
            shown = [
                {
                    "name": column["name"],
                    "type": column["type"],
                    "format": column.get("format", ""),
                    "description": column.get("description") or f"{_BY_PATH}: {column['jsonPath']}",
                    "priority": column.get("priority", 0),
                }
                for column in declared
            ]
            return [NAME, *shown] if declared else [NAME, _column("Age", "string")]
        return [NAME, *(_column(name, type_) for name, type_, _ in _columns_of(kind))]

    def cells(self, kind: Kind, obj: JSON, now: datetime) -> list[Any]:
        """The cells of one object."""
        name = obj["metadata"]["name"]
        if kind.custom:
            declared = _declared(kind)
            return [name, *(_custom(column, obj, now) for column in declared)] if declared else [name, age(obj, now)]
        return [name, *(cell(obj, now) for _, _, cell in _columns_of(kind))]


def duration(seconds: float) -> str:
    """As kubectl shortens ages (apimachinery's HumanDuration): two units while the first is small."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = days // 365, days % 365
    return f"{years}y{rest}d" if days < 8 * 365 and rest else f"{years}y"


def since(text: str | None, now: datetime) -> str:
    """The age of a time, `<unknown>` where there is none."""
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return "<invalid>"
    return duration((now - then) / timedelta(seconds=1))


def age(obj: JSON, now: datetime) -> str:
    """The object's age."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def _column(name: str, type_: str) -> JSON:
    return {"name": name, "type": type_, "format": "", "description": "", "priority": 0}


def _declared(kind: Kind) -> list[JSON]:
    versions = ((kind.crd or {}).get("spec") or {}).get("versions") or ()
    for version in versions:
        if version.get("name") == kind.version:
            columns: list[JSON] = version.get("additionalPrinterColumns") or []
            return columns
    return []


def _custom(column: JSON, obj: JSON, now: datetime) -> Any:
    try:
        found = find(column["jsonPath"], obj)
    except PathError:
        return None
    if not found:
        return None
    if column["type"] == "date":
        return since(found[0] if isinstance(found[0], str) else None, now)
    if column["type"] in {"integer", "number", "boolean"}:
        return found[0]
    value = found[0]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


def _at(path: str, otherwise: Any = "") -> Cell:
    def cell(obj: JSON, _now: datetime) -> Any:
        found = find(path, obj)
        return found[0] if found and found[0] is not None else otherwise

    return cell


def _count(path: str) -> Cell:
    return lambda obj, _now: len((find(path, obj) or [{}])[0] or {})


def _of(path: str, total: str) -> Cell:
    return lambda obj, _now: f"{(find(path, obj) or [0])[0] or 0}/{(find(total, obj) or [0])[0] or 0}"


def _pod_ready(obj: JSON, _now: datetime) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    total = len((obj.get("spec") or {}).get("containers") or ())
    return f"{sum(bool(each.get('ready')) for each in statuses)}/{total}"


def _pod_status(obj: JSON, _now: datetime) -> str:
    """The phase, unless a container has something more particular to say (printers.go: printPod)."""
    status = obj.get("status") or {}
    text = status.get("reason") or status.get("phase") or "Pending"
    for each in status.get("containerStatuses") or ():
        state = each.get("state") or {}
        if reason := (state.get("waiting") or {}).get("reason"):
            text = reason
        elif ended := state.get("terminated"):
            text = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else text


def _pod_restarts(obj: JSON, _now: datetime) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    return str(sum(each.get("restartCount", 0) for each in statuses))


def _node_status(obj: JSON, _now: datetime) -> str:
    conditions = {c.get("type"): c.get("status") for c in (obj.get("status") or {}).get("conditions") or ()}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    return f"{ready},SchedulingDisabled" if (obj.get("spec") or {}).get("unschedulable") else ready


def _node_roles(obj: JSON, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in obj["metadata"].get("labels") or {} if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _budget(key: str) -> Cell:
    def cell(obj: JSON, _now: datetime) -> str:
        value = (obj.get("spec") or {}).get(key)
        return "N/A" if value is None else str(value)

    return cell


def _event_object(obj: JSON, _now: datetime) -> str:
    involved = obj.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _event_seen(obj: JSON, now: datetime) -> str:
    return since(obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp"), now)


def _job_status(obj: JSON, _now: datetime) -> str:
    done = {c.get("type"): c.get("status") for c in (obj.get("status") or {}).get("conditions") or ()}
    return next((name for name in ("Complete", "Failed") if done.get(name) == "True"), "Running")


def _role_ref(obj: JSON, _now: datetime) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


_AGE: Column = ("Age", "string", age)
_CREATED: Column = ("Created At", "date", _at(".metadata.creationTimestamp"))
_ROLLED_OUT: tuple[Column, ...] = (
    ("Ready", "string", _of(".status.readyReplicas", ".spec.replicas")),
    ("Up-to-date", "string", _at(".status.updatedReplicas", 0)),
    ("Available", "string", _at(".status.availableReplicas", 0)),
    _AGE,
)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        ("Ready", "string", _pod_ready),
        ("Status", "string", _pod_status),
        ("Restarts", "string", _pod_restarts),
        _AGE,
    ),
    "deployments.apps": _ROLLED_OUT,
    "replicasets.apps": (
        ("Desired", "integer", _at(".spec.replicas", 0)),
        ("Current", "integer", _at(".status.replicas", 0)),
        ("Ready", "integer", _at(".status.readyReplicas", 0)),
        _AGE,
    ),
    "statefulsets.apps": (("Ready", "string", _of(".status.readyReplicas", ".spec.replicas")), _AGE),
    "daemonsets.apps": (
        ("Desired", "integer", _at(".status.desiredNumberScheduled", 0)),
        ("Current", "integer", _at(".status.currentNumberScheduled", 0)),
        ("Ready", "integer", _at(".status.numberReady", 0)),
        ("Up-to-date", "integer", _at(".status.updatedNumberScheduled", 0)),
        ("Available", "integer", _at(".status.numberAvailable", 0)),
        _AGE,
    ),
    "jobs.batch": (
        ("Status", "string", _job_status),
        ("Completions", "string", _of(".status.succeeded", ".spec.completions")),
        _AGE,
    ),
    "nodes": (
        ("Status", "string", _node_status),
        ("Roles", "string", _node_roles),
        _AGE,
        ("Version", "string", _at(".status.nodeInfo.kubeletVersion")),
    ),
    "namespaces": (("Status", "string", _at(".status.phase", "Active")), _AGE),
    "configmaps": (("Data", "integer", _count(".data")), _AGE),
    "secrets": (("Type", "string", _at(".type", "Opaque")), ("Data", "integer", _count(".data")), _AGE),
    "serviceaccounts": (("Secrets", "integer", _count(".secrets")), _AGE),
    "services": (
        ("Type", "string", _at(".spec.type", "ClusterIP")),
        ("Cluster-IP", "string", _at(".spec.clusterIP", "<none>")),
        _AGE,
    ),
    "events": (
        ("Last Seen", "string", _event_seen),
        ("Type", "string", _at(".type")),
        ("Reason", "string", _at(".reason")),
        ("Object", "string", _event_object),
        ("Message", "string", _at(".message")),
    ),
    "leases.coordination.k8s.io": (("Holder", "string", _at(".spec.holderIdentity")), _AGE),
    "poddisruptionbudgets.policy": (
        ("Min Available", "string", _budget("minAvailable")),
        ("Max Unavailable", "string", _budget("maxUnavailable")),
        ("Allowed Disruptions", "integer", _at(".status.disruptionsAllowed", 0)),
        _AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (_CREATED,),
    "roles.rbac.authorization.k8s.io": (_CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (_CREATED,),
    "rolebindings.rbac.authorization.k8s.io": (("Role", "string", _role_ref), _AGE),
    "clusterrolebindings.rbac.authorization.k8s.io": (("Role", "string", _role_ref), _AGE),
    "persistentvolumeclaims": (("Status", "string", _at(".status.phase")), _AGE),
    "persistentvolumes": (("Status", "string", _at(".status.phase")), _AGE),
}


def _columns_of(kind: Kind) -> tuple[Column, ...]:
    return COLUMNS.get(kind.resource, (_AGE,))
