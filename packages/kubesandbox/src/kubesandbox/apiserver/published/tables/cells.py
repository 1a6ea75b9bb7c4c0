"""The cells of tables: functions from an object and the present time to the value in a column.

The texts are those of kube-apiserver's printers (pkg/printers/internalversion), which people know from `kubectl get`.
Columns of CustomResourceDefinitions have JSONPaths: members, indexes, wildcards, `[?(@.a=="b")]`. A path that matches
nothing is an empty list, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]
_TOKEN = re.compile(
    r"""\.(?P<member>(?:\\.|[^.\[\\])+)
      | \[\?\(@(?P<path>[^=!<>\s]*)\s*(?P<op>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
      | \[\?\(@(?P<exists>[^=!<>\s)]+)\)\]
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
      | \[(?P<index>-?\d+)\]
      | (?P<all>\[\*\]|\.\*)""",
    re.VERBOSE,
)


class PathError(ValueError):
    """A path that is not in the supported subset."""


def find_values(path: str, obj: Any) -> list[Any]:
    """Returns every value that the path matches."""
    values = [obj]
    for step in compile_path(path):
        values = [match for value in values for match in step(value)]
    return values


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Returns the steps of a path. Raises PathError."""
    # CRDs write .spec.x, kubectl {.spec.x} or {$.spec.x}.
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    text = text if not text or text[0] in ".[" else f".{text}"
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PathError(f"{path}: cannot be read from {text[at:]!r} on")
        steps.append(_parse_step(match))
        at = match.end()
    return tuple(steps)


def _parse_step(match: re.Match[str]) -> Step:
    """Returns the step of one part of a path, such as `.name`, `[0]` or `[?(@.a=="b")]`.

    A negative index counts from the end; a filter keeps items by their value at a path, or by its existence.
    """
    index = int(match["index"]) if match["index"] else 0
    wanted_value = _parse_literal(match["value"]) if match["op"] else None
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["member"] or "")

    def step(value: Any) -> Iterator[Any]:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if match["all"]:
            yield from members
        elif match["index"]:
            if isinstance(value, list) and -len(value) <= index < len(value):
                yield value[index]
        elif match["op"]:
            for item in members:
                values = find_values(match["path"], item)
                if values and (values[0] == wanted_value) is (match["op"] == "=="):
                    yield item
        elif match["exists"]:
            yield from (item for item in members if find_values(match["exists"], item))
        elif isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _parse_literal(text: str) -> Any:
    """Returns the value of a literal in a filter: text, boolean or integer."""
    if text[0] in "\"'":
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


JSON = dict[str, Any]
Cell = Callable[[JSON, datetime], Any]

_NONE = "<none>"


def human_duration(seconds: float) -> str:
    """Formats a duration as kubectl does for ages (apimachinery's HumanDuration): two units if the first is small."""
    whole = int(seconds)
    minutes, hours, days, years = whole // 60, whole // 3600, whole // 86400, whole // 86400 // 365
    # HumanDuration tolerates a clock skew of less than two seconds.
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"

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
    return f"{years}y{days % 365}d" if years < 8 and days % 365 else f"{years}y"


def age_since(text: str | None, now: datetime) -> str:
    """Returns the age of a time, or `<unknown>` if it does not exist."""
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return "<invalid>"
    return human_duration((now - then) / timedelta(seconds=1))


def age_of(obj: JSON, now: datetime) -> str:
    """Returns the object's age."""
    return age_since(obj["metadata"].get("creationTimestamp"), now)


def value_cell(path: str, otherwise: Any = "") -> Cell:
    """Returns a cell with the first value at a path."""
    return lambda obj, _now: otherwise if (value := _value_at(path, obj)) is None else value


def _value_at(path: str, obj: JSON) -> Any:
    return next(iter(find_values(path, obj)), None)


def count_cell(path: str) -> Cell:
    """Returns a cell with the number of members at a path."""
    return lambda obj, _now: len(_value_at(path, obj) or ())


def ratio_cell(path: str, total: str) -> Cell:
    """Returns a cell such as `1/3` from two paths."""
    return lambda obj, _now: f"{_value_at(path, obj) or 0}/{_value_at(total, obj) or 0}"


def pod_ready(obj: JSON, _now: datetime) -> str:
    """Returns the number of ready containers and of all."""
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    total = len((obj.get("spec") or {}).get("containers") or ())
    return f"{sum(bool(container_status.get('ready')) for container_status in statuses)}/{total}"


def pod_status(obj: JSON, _now: datetime) -> str:
    """Returns the phase, or the reason that a container's state gives (printers.go: printPod)."""
    status = obj.get("status") or {}
    text = status.get("reason") or status.get("phase") or "Pending"
    for container_status in status.get("containerStatuses") or ():
        state = container_status.get("state") or {}
        if reason := (state.get("waiting") or {}).get("reason"):
            text = reason
        elif ended := state.get("terminated"):
            text = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    # Terminating is no phase; kubectl shows it for every pod that is being deleted.
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else text


def pod_restarts(obj: JSON, _now: datetime) -> str:
    """Returns the number of container restarts."""
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    return str(sum(container_status.get("restartCount", 0) for container_status in statuses))


def node_status(obj: JSON, _now: datetime) -> str:
    """Returns the node's readiness, and whether it is cordoned."""
    conditions = {c.get("type"): c.get("status") for c in (obj.get("status") or {}).get("conditions") or ()}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    return f"{ready},SchedulingDisabled" if (obj.get("spec") or {}).get("unschedulable") else ready


def node_roles(obj: JSON, _now: datetime) -> str:
    """Returns the node's roles from its labels."""
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in obj["metadata"].get("labels") or {} if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def budget_cell(path: str) -> Cell:
    """Returns a cell with a number or percentage of a budget's spec, as text."""
    return lambda obj, _now: "N/A" if (value := _value_at(path, obj)) is None else str(value)


def event_object(obj: JSON, _now: datetime) -> str:
    """Returns the event's object as `pod/name`."""
    involved = obj.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def event_seen(obj: JSON, now: datetime) -> str:
    """Returns the time since the event was last seen."""
    return age_since(obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp"), now)


def job_status(obj: JSON, _now: datetime) -> str:
    """Returns `Complete`, `Failed` or `Running`."""
    status_by_type = {c.get("type"): c.get("status") for c in (obj.get("status") or {}).get("conditions") or ()}
    return next((name for name in ("Complete", "Failed") if status_by_type.get(name) == "True"), "Running")


def role_ref(obj: JSON, _now: datetime) -> str:
    """Returns the referenced role as `Role/name`."""
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def name_of(obj: JSON, _now: datetime) -> str:
    """Returns the object's name."""
    return str(obj["metadata"].get("name", ""))


def cell_or_none(path: str) -> Cell:
    """Returns a cell with the value at a path, or `<none>`."""
    return value_cell(path, _NONE)


def labels_cell(path: str) -> Cell:
    """Returns a cell with labels as `a=b,c=d`."""
    return lambda obj, _now: _labels_text(_value_at(path, obj)) or _NONE


def _labels_text(labels: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector_cell(path: str) -> Cell:
    """Returns a cell with a label selector in kubectl's text form, `<none>` without one."""

    def cell(obj: JSON, _now: datetime) -> str:
        selector = _value_at(path, obj) or {}
        parts = [text] if (text := _labels_text(selector.get("matchLabels"))) else []
        for expression in selector.get("matchExpressions") or ():
            key, operator = expression.get("key", ""), expression.get("operator")
            if operator in ("In", "NotIn"):
                parts.append(f"{key} {operator.lower()} ({','.join(sorted(expression.get('values') or ()))})")
            else:
                parts.append(key if operator == "Exists" else f"!{key}")
        return ",".join(parts) or _NONE

    return cell


def list_cell(path: str, member: str) -> Cell:
    """Returns a cell with one member of each item of a list."""
    return lambda obj, _now: ",".join(str(item.get(member, "")) for item in _value_at(path, obj) or ())


def subjects_cell(kind: str) -> Cell:
    """Returns a cell with the subjects of one kind in a binding."""

    def cell(obj: JSON, _now: datetime) -> str:
        matching = [subject for subject in obj.get("subjects") or () if subject.get("kind") == kind]
        names = [f"{e.get('namespace', '')}/{e['name']}" if kind == "ServiceAccount" else e["name"] for e in matching]
        return ", ".join(names) if kind == "ServiceAccount" else ",".join(names)

    return cell


def pod_gates(obj: JSON, _now: datetime) -> str:
    """Returns the number of satisfied readiness gates and of all."""
    gates = (obj.get("spec") or {}).get("readinessGates") or ()
    if not gates:
        return _NONE
    true = {c.get("type") for c in (obj.get("status") or {}).get("conditions") or () if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def address_cell(kind: str) -> Cell:
    """Returns a cell with a node's address of one type."""

    def cell(obj: JSON, _now: datetime) -> str:
        addresses = (obj.get("status") or {}).get("addresses") or ()
        return next((each["address"] for each in addresses if each.get("type") == kind), _NONE)

    return cell


def service_external(obj: JSON, _now: datetime) -> str:
    """Returns the external addresses of a Service, or `<pending>` for a load balancer without one."""
    spec = obj.get("spec") or {}
    addresses = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        addresses = [*(point.get("ip") or point.get("hostname", "") for point in ingress), *addresses]
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or _NONE


def service_ports(obj: JSON, _now: datetime) -> str:
    """Returns the ports as `80:30080/TCP,443/TCP`."""
    ports = []
    for port in (obj.get("spec") or {}).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(ports) or _NONE


def job_duration(obj: JSON, now: datetime) -> str:
    """Returns the time from a job's start to its end, or to now."""
    status = obj.get("status") or {}
    if not status.get("startTime"):
        return ""
    until = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
    return age_since(status["startTime"], until)


def event_source(obj: JSON, _now: datetime) -> str:
    """Returns the event's reporter and host."""
    source = obj.get("source") or {}
    return ", ".join(filter(None, (source.get("component") or obj.get("reportingComponent"), source.get("host"))))


def event_first(obj: JSON, now: datetime) -> str:
    """Returns the time since the event was first seen."""
    return age_since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def event_count(obj: JSON, _now: datetime) -> int:
    """Returns the number of the event's occurrences."""
    # events.k8s.io counts in series, core/v1 in count; a single event has neither.
    return int((obj.get("series") or {}).get("count") or obj.get("count") or 1)


def data_count(obj: JSON, _now: datetime) -> int:
    """Returns the number of keys in `data` and `binaryData`."""
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def last_schedule(obj: JSON, now: datetime) -> str:
    """Returns the time since a CronJob was last scheduled."""
    last = (obj.get("status") or {}).get("lastScheduleTime")
    return age_since(last, now) if last else _NONE
