"""Warnings about pods and their templates: duplicate ports and variables (pkg/api/pod/warnings.go).

In: a pod's spec and its path. Out: texts for `Warning` headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

JSON = dict[str, Any]


def pod_spec(spec: JSON, path: str) -> list[str]:
    """Returns the warnings about each container's variables, then those about all ports."""
    containers = [
        (f"{path}.{kind}[{index}]", container)
        for kind in ("initContainers", "containers")
        for index, container in enumerate(spec.get(kind) or ())
    ]
    ports = [
        (f"{where}.ports[{index}]", port)
        for where, container in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    return [*_variables(containers), *_ports(ports), *_names(ports)]


def _variables(containers: list[tuple[str, JSON]]) -> Iterator[str]:
    for where, container in containers:
        names: set[str] = set()
        for index, variable in enumerate(container.get("env") or ()):
            name = variable.get("name") or ""
            if name in names and f"$({name})" not in (variable.get("value") or "").removeprefix(f"$({name})"):
                hidden = f'hides previous definition of "{name}"'
                yield f"{where}.env[{index}]: {hidden}, which may be dropped when using apply"
            names.add(name)


def _ports(ports: list[tuple[str, JSON]]) -> Iterator[str]:
    for index, (where, port) in enumerate(ports):
        for other_where, other in ports[:index]:
            if _key(port) == _key(other) and (how := _clash(port, other)):
                yield f"{where}: {how} port definition with {other_where}"


def _key(port: JSON) -> tuple[Any, Any]:
    return port.get("containerPort"), port.get("protocol")


def _clash(port: JSON, other: JSON) -> str:
    address, host = port.get("hostIP") or "", port.get("hostPort") or 0
    other_address, other_host = other.get("hostIP") or "", other.get("hostPort") or 0
    if (address, host) == (other_address, other_host):
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    return "dangerously ambiguous" if host == other_host and bool(address) != bool(other_address) else ""


def _names(ports: list[tuple[str, JSON]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for where, port in ports:
        name = port.get("name") or ""
        if name and name in first:
            other = first[name]
            yield (
                f'{where}: duplicate port name "{name}" with {other}, services and probes that select ports by name '
                f"will use {other}"
            )
        elif name:
            first[name] = where
