"""What a pod asks for, read once: containers, environment, volumes, limits. Values in, values out.

The rules are the kubelet's: `$(NAME)` references, downward API fields, quantities, grace periods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runup.api.whole_v1 import WholePod

JSON = dict[str, Any]
DEFAULT_GRACE_S = 30
SERVICE_ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# Powers and their suffixes (apimachinery's resource.Quantity); `m` is thousandths.
_SUFFIXES = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMGTP]i?|Ki|m)?")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class BadPod(Exception):
    """The pod cannot be run as it is written; `reason` is the kubelet's word for the waiting container."""

    def __init__(self, message: str, *, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a container sees a volume; `sub_path` is a path inside the volume."""

    volume: str
    path: str
    read_only: bool = False
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container; `memory_bytes` 0 means no limit."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[JSON, ...] = ()
    env_from: tuple[JSON, ...] = ()
    mounts: tuple[Mount, ...] = ()
    memory_bytes: int = 0
    read_only_root: bool = False
    readiness: JSON | None = None
    message_policy: str = "File"
    message_path: str = "/dev/termination-log"


def bytes_of(quantity: str | float) -> int:
    """A quantity such as `128Mi` in bytes; raises BadPod."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise BadPod(f"quantities must match the regular expression: {quantity!r} does not")
    number, suffix = float(match[1]), match[2] or ""
    return int(number / 1000) if suffix == "m" else int(number * _SUFFIXES[suffix])


def container_spec(container: JSON) -> ContainerSpec:
    """One entry of `spec.containers` or `spec.initContainers`; raises BadPod."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return ContainerSpec(
        name=container["name"],
        image=container.get("image", ""),
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        working_dir=container.get("workingDir") or "",
        env=tuple(container.get("env") or ()),
        env_from=tuple(container.get("envFrom") or ()),
        mounts=tuple(
            Mount(
                volume=mount["name"],
                path=mount["mountPath"].rstrip("/") or "/",
                read_only=bool(mount.get("readOnly")),
                sub_path=mount.get("subPath") or "",
            )
            for mount in container.get("volumeMounts") or ()
        ),
        memory_bytes=bytes_of(limits["memory"]) if "memory" in limits else 0,
        read_only_root=bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        readiness=container.get("readinessProbe"),
        message_policy=container.get("terminationMessagePolicy") or "File",
        message_path=container.get("terminationMessagePath") or "/dev/termination-log",
    )


def containers(pod: WholePod) -> tuple[ContainerSpec, ...]:
    """The pod's containers."""
    return tuple(container_spec(container) for container in pod.spec.get("containers") or ())


def init_containers(pod: WholePod) -> tuple[ContainerSpec, ...]:
    """The pod's init containers, which run one after the other before the rest."""
    return tuple(container_spec(container) for container in pod.spec.get("initContainers") or ())


def service_account(pod: WholePod) -> str:
    """The ServiceAccount that the pod runs as."""
    return pod.spec.get("serviceAccountName") or "default"


def wants_token(pod: WholePod) -> bool:
    """Whether the pod is to be given a token of its ServiceAccount."""
    return pod.spec.get("automountServiceAccountToken") is not False


def grace_s(pod: WholePod, *, now: datetime) -> float:
    """Seconds left between SIGTERM and SIGKILL: until the time that its deletion set, else what the pod says."""
    if pod.metadata.deletion_timestamp is not None:
        return max(0.0, (pod.metadata.deletion_timestamp - now).total_seconds())
    given = pod.spec.get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if given is None else int(given)


def field_value(pod: WholePod, path: str, *, host_ip: str) -> str:
    """What a downward API `fieldRef` stands for; raises BadPod for a path that the kubelet does not know either."""
    metadata = pod.metadata
    known = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.get("nodeName") or "",
        "spec.serviceAccountName": service_account(pod),
        "status.hostIP": host_ip,
        "status.podIP": host_ip,
    }
    if path in known:
        return known[path]
    for prefix, values in (("metadata.labels", metadata.labels), ("metadata.annotations", metadata.annotations)):
        if path.startswith(f"{prefix}['") and path.endswith("']"):
            return values.get(path[len(prefix) + 2 : -2], "")
    raise BadPod(f"unsupported fieldPath: {path}")


Lookup = Callable[[str, str], Mapping[str, str] | None]


def environment(pod: WholePod, container: ContainerSpec, *, host_ip: str, lookup: Lookup) -> dict[str, str]:
    """The container's environment. `lookup("ConfigMap"|"Secret", name)` gives the data, or None where there is none.

    Raises BadPod where something that is not optional is missing.
    """
    result: dict[str, str] = {}
    for source in container.env_from:
        result.update(_env_from(source, lookup))
    for entry in container.env:
        value = _env_value(pod, container, entry, host_ip=host_ip, lookup=lookup)
        if value is not None:
            result[entry["name"]] = expand(value, result)
    return result


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` replaced; `$$` is a dollar sign; an unknown name stays as it is written."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def config_references(pod: WholePod) -> set[tuple[str, str]]:
    """Every (kind, name) of ConfigMap and Secret that the pod's environment or volumes need."""
    found: set[tuple[str, str]] = set()
    for container in (*init_containers(pod), *containers(pod)):
        for entry in container.env:
            source = entry.get("valueFrom") or {}
            found |= _named(source, {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}, "name")
        for source in container.env_from:
            found |= _named(source, {"configMapRef": "ConfigMap", "secretRef": "Secret"}, "name")
    for volume in pod.spec.get("volumes") or ():
        found |= _named(volume, {"configMap": "ConfigMap"}, "name") | _named(volume, {"secret": "Secret"}, "secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            found |= _named(source, {"configMap": "ConfigMap", "secret": "Secret"}, "name")
    return found


def _named(source: JSON, kinds: Mapping[str, str], key: str) -> set[tuple[str, str]]:
    return {(kind, source[field][key]) for field, kind in kinds.items() if (source.get(field) or {}).get(key)}


def _env_from(source: JSON, lookup: Lookup) -> dict[str, str]:
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = source.get(field)
        if reference:
            data = _required(kind, reference, lookup)
            return {f"{source.get('prefix') or ''}{key}": value for key, value in data.items()}
    return {}


def _env_value(pod: WholePod, container: ContainerSpec, entry: JSON, *, host_ip: str, lookup: Lookup) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], host_ip=host_ip)
    if "resourceFieldRef" in source:
        return str(container.memory_bytes) if source["resourceFieldRef"].get("resource") == "limits.memory" else "0"
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = source.get(field)
        if reference:
            value = _required(kind, reference, lookup).get(reference["key"])
            if value is None and not reference.get("optional"):
                raise BadPod(f"couldn't find key {reference['key']} in {kind} {reference['name']}")
            return value
    raise BadPod(f"environment variable {entry['name']}: no source that this node agent knows")


def _required(kind: str, reference: JSON, lookup: Lookup) -> Mapping[str, str]:
    data = lookup(kind, reference["name"])
    if data is None and not reference.get("optional"):
        raise BadPod(f'{kind.lower()} "{reference["name"]}" not found')
    return data or {}
