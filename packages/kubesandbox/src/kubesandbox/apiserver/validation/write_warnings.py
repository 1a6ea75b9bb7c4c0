"""Warnings about writes that are not refused: the `WarningsOnCreate` and `WarningsOnUpdate` of registries.

In: a kind, the object and the one before it. Out: texts for `Warning` headers.
"""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema.crd import unrecognized_formats
from kubesandbox.apiserver.schema.object_meta import STANDARD_FINALIZERS, qualified_name
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.validation.common import value_at

JSON = dict[str, Any]
# Of a port: its place in the list, port of the host, address, and path.
_Port = tuple[int, int, str, str]


def warnings_of_write(kind: Kind, obj: JSON, old: JSON | None) -> Iterable[str]:
    """Returns the warnings of a write, without those that already applied to the old object.

    There may be many more than an answer has room for: those of a pod are made as they are asked for.
    """
    if kind.custom:
        new = {*(meta(obj).get("finalizers") or ())} - {*(meta(old or {}).get("finalizers") or ())}
        warnings = []
        for name in sorted(new):
            whys = qualified_name(name)
            # Another writer of finalizers may have the same name.
            if "/" not in name and name not in STANDARD_FINALIZERS:
                hint = f"finalizer name{' including a path (/)' if '.' in name else ''} to avoid accidental conflicts"
                whys = [*whys, f"prefer a domain-qualified {hint} with other finalizer writers"]
            warnings += [f'metadata.finalizers: "{name}": {why}' for why in whys]
        return warnings
    if (path := _TEMPLATES.get(kind.resource)) is not None:
        # A pod's spec does not change; a template's change raises the generation.
        if old is not None and (kind.kind == "Pod" or meta(obj).get("generation") == meta(old).get("generation")):
            return []
        return _pod_spec_warnings(value_at(obj, path) or {}, path)
    if kind.kind == "CustomResourceDefinition":
        old_formats = unrecognized_formats(old) if old else []
        return [f'unrecognized format "{name}"' for name in unrecognized_formats(obj) if name not in old_formats]
    return []


# The path of the pod spec, by resource.
_TEMPLATES = {
    "pods": "spec",
    "jobs.batch": "spec.template.spec",
    "cronjobs.batch": "spec.jobTemplate.spec.template.spec",
    **{f"{name}.apps": "spec.template.spec" for name in ("deployments", "replicasets", "statefulsets", "daemonsets")},
}


def _pod_spec_warnings(spec: JSON, path: str) -> Iterator[str]:
    """Yields the warnings about spreads, each container's variables, and all ports (pkg/api/pod/warnings.go)."""
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            at = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            yield f"{at}: a null labelSelector results in matching no pod"
    containers = [
        (f"{path}.{kind}[{index}]", container)
        for kind in ("initContainers", "containers")
        for index, container in enumerate(spec.get(kind) or ())
    ]
    for container_path, container in containers:
        for resource, side in product(("memory", "ephemeral-storage"), ("limits", "requests")):
            amount = ((container.get("resources") or {}).get(side) or {}).get(resource)
            if amount is not None and (number := parse_quantity(str(amount))) != number.to_integral_value():
                at = f"{container_path}.resources.{side}[{resource}]"
                yield f"{at}: fractional byte value {json.dumps(str(amount))} is invalid, must be an integer"
        names: set[str] = set()
        for index, variable in enumerate(container.get("env") or ()):
            name = variable.get("name") or ""
            if name in names and f"$({name})" not in (variable.get("value") or "").removeprefix(f"$({name})"):
                hidden = f'hides previous definition of "{name}"'
                yield f"{container_path}.env[{index}]: {hidden}, which may be dropped when using apply"
            names.add(name)
    yield from _port_warnings(
        [
            (f"{container_path}.ports[{index}]", port)
            for container_path, container in containers
            for index, port in enumerate(container.get("ports") or ())
        ]
    )


def _port_warnings(ports: list[tuple[str, JSON]]) -> Iterator[str]:
    """Yields a warning for each port that an earlier one clashes with, and for each name that an earlier one has."""
    # The earlier ports of each number and protocol, by their port of the host. Only those of the same one, or of none,
    # can clash, so that many different ones are not compared with each other.
    earlier: defaultdict[tuple[Any, Any], dict[int, list[_Port]]] = defaultdict(dict)
    for index, (port_path, port) in enumerate(ports):
        by_host = earlier[port.get("containerPort"), port.get("protocol")]
        address, host = port.get("hostIP") or "", port.get("hostPort") or 0
        near = heapq.merge(by_host.get(0, []), by_host.get(host, [])) if host else heapq.merge(*by_host.values())
        for _, other_host, other_address, other_path in near:
            if (address, host) == (other_address, other_host):
                yield f"{port_path}: duplicate port definition with {other_path}"
            elif not host or not other_host:
                yield f"{port_path}: overlapping port definition with {other_path}"
            elif host == other_host and bool(address) != bool(other_address):
                yield f"{port_path}: dangerously ambiguous port definition with {other_path}"
        by_host.setdefault(host, []).append((index, host, address, port_path))
    first: dict[str, str] = {}
    for port_path, port in ports:
        name = port.get("name") or ""
        if name and name in first:
            ending = f"services and probes that select ports by name will use {first[name]}"
            yield f'{port_path}: duplicate port name "{name}" with {first[name]}, {ending}'
        elif name:
            first[name] = port_path
