"""Validation of containers: names, ports, environment, mounts, probes, resources."""

from __future__ import annotations

import re
from typing import Any

from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver.schema import Fault, FieldError, not_supported
from kubesandbox.apiserver.schema.name_rules import dns1123_label_faults
from kubesandbox.apiserver.validation.common import PROTOCOLS, Faults, not_negative, port_name, port_number

JSON = dict[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
# Valid field labels (ConvertDownwardAPIFieldLabel) that environment variables do not support.
_OTHER_FIELDS = frozenset({"metadata.annotations", "metadata.labels", "spec.restartPolicy", "status.phase"})
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PRINTABLE = re.compile(r"[ -<>-~]+")


def container_faults(spec: JSON, path: str, volumes: set[str]) -> Faults:
    """Yields the faults of a pod's containers; `volumes` are the names that may be mounted."""
    names: set[str] = set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            container_path, name = f"{path}.{kind}[{index}]", container.get("name") or ""
            yield from _faults_of_container(container, container_path, volumes)
            if name and name in names:
                yield FieldError(Fault.DUPLICATE, f"{container_path}.name", name)
            names.add(name)


def _faults_of_container(container: JSON, path: str, volumes: set[str]) -> Faults:
    """Yields the faults of one container."""
    name = container.get("name") or ""
    if not name:
        yield FieldError(Fault.REQUIRED, f"{path}.name")
    elif why := dns1123_label_faults(name):
        yield FieldError(Fault.INVALID, f"{path}.name", name, why)
    if not container.get("image"):
        yield FieldError(Fault.REQUIRED, f"{path}.image")
    yield from _port_faults(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    yield from _mount_faults(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy") or ""
    if policy and policy not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    yield from _resource_faults(container.get("resources") or {}, f"{path}.resources")
    for probe in _PROBES:
        if container.get(probe) is not None:
            yield from _probe_faults(container[probe], f"{path}.{probe}", once=probe != "readinessProbe")


def _port_faults(ports: list[JSON] | tuple[()], path: str) -> Faults:
    """Yields the faults of a container's ports: names, numbers, protocols."""
    names: set[str] = set()
    for index, port in enumerate(ports):
        port_path, name, protocol = f"{path}[{index}]", port.get("name") or "", port.get("protocol") or ""
        if name and (whys := port_name(name)):
            for why in whys:
                yield FieldError(Fault.INVALID, f"{port_path}.name", name, why)
        elif name in names:
            yield FieldError(Fault.DUPLICATE, f"{port_path}.name", name)
        elif name:
            names.add(name)
        if not port.get("containerPort"):
            yield FieldError(Fault.REQUIRED, f"{port_path}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{port_path}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{port_path}.hostPort")
        if not protocol:
            yield FieldError(Fault.REQUIRED, f"{port_path}.protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(f"{port_path}.protocol", protocol, PROTOCOLS)


def _variable_faults(variable: JSON, path: str) -> Faults:
    """Yields the faults of an environment variable: its name, and the source of its value."""
    name, source = variable.get("name") or "", variable.get("valueFrom")
    if not name:
        yield FieldError(Fault.REQUIRED, f"{path}.name")
    elif not _PRINTABLE.fullmatch(name):
        why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield FieldError(Fault.INVALID, f"{path}.name", name, why)
    if source is None:
        return
    source_path = f"{path}.valueFrom"
    given_sources = [key for key in _SOURCES if source.get(key) is not None]
    if source.get("fieldRef") is not None:
        yield from _field_path_faults(source["fieldRef"].get("fieldPath") or "", f"{source_path}.fieldRef.fieldPath")
    if not given_sources:
        source_names = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield FieldError(Fault.INVALID, source_path, "", f"must specify one of: {source_names}")
    elif variable.get("value"):
        yield FieldError(Fault.INVALID, source_path, "", "may not be specified when `value` is not empty")
    elif len(given_sources) > 1:
        yield FieldError(Fault.INVALID, source_path, "", "may not have more than one field specified at a time")


def _field_path_faults(field_path: str, path: str) -> Faults:
    """Yields a fault if a fieldRef names no field that variables may have."""
    if not field_path:
        yield FieldError(Fault.REQUIRED, path)
    elif field_path in _OTHER_FIELDS:
        yield not_supported(path, field_path, _FIELDS)
    elif field_path not in _FIELDS and not re.fullmatch(r"metadata\.(annotations|labels)\['.*'\]", field_path):
        why = f"error converting fieldPath: field label not supported: {field_path}"
        yield FieldError(Fault.INVALID, path, field_path, why)


def _mount_faults(mounts: list[JSON] | tuple[()], path: str, volumes: set[str]) -> Faults:
    """Yields the faults of volume mounts: an unknown volume, or a path that is mounted twice."""
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        mount_path, name, place = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield FieldError(Fault.REQUIRED, f"{mount_path}.name")
        if name not in volumes:
            yield FieldError(Fault.NOT_FOUND, f"{mount_path}.name", name)
        if not place:
            yield FieldError(Fault.REQUIRED, f"{mount_path}.mountPath")
        if place in places:
            yield FieldError(Fault.INVALID, f"{mount_path}.mountPath", place, "must be unique")
        places.add(place)


def _probe_faults(probe: JSON, path: str, *, once: bool) -> Faults:
    """Yields the faults of a probe; `once` if it must have a success threshold of 1."""
    given_handlers = [name for name in _HANDLERS if probe.get(name) is not None]
    if not given_handlers:
        yield FieldError(Fault.REQUIRED, path, None, "must specify a handler type")
    for extra in given_handlers[1:]:
        why = "may not specify more than 1 handler type"
        yield FieldError(Fault.FORBIDDEN, f"{path}.{extra}", None, why)
    for name in ("httpGet", "tcpSocket"):
        port = (probe.get(name) or {}).get("port")
        if isinstance(port, int):
            yield from port_number(port, f"{path}.{name}.port")
    yield from not_negative(probe, path, *_PROBE_NUMBERS)
    if once and probe.get("successThreshold", 1) != 1:
        yield FieldError(Fault.INVALID, f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _resource_faults(resources: JSON, path: str) -> Faults:
    """Yields a fault for each request that exceeds its limit."""
    limits = resources.get("limits") or {}
    for name, requested in (resources.get("requests") or {}).items():
        limit = limits.get(name)
        if limit is not None and parse_quantity(str(requested)) > parse_quantity(str(limit)):
            why = f"must be less than or equal to {name} limit of {limit}"
            yield FieldError(Fault.INVALID, f"{path}.requests", str(requested), why)
