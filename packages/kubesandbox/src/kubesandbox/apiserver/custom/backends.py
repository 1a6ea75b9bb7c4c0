"""Routing from a Service of the cluster to one of its ready pods, for the API server's own calls.

The sandbox has no network of Services: pods listen on the machine's own addresses, which their status has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]


class Unreachable(Exception):
    """A Service without a ready pod; the message gives the reason, as a real server's would."""


def find_backend(store: Store, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Returns host and port of a ready pod behind a Service's port. Raises Unreachable."""
    entry = store.get("services", namespace, name)
    if entry is None:
        raise Unreachable(f'service "{name}" not found')
    spec = entry.load().get("spec") or {}
    port_entry = next((port_entry for port_entry in spec.get("ports") or () if port_entry.get("port") == port), None)
    if port_entry is None:
        raise Unreachable(f'no service port {port} found for service "{name}"')
    selector = spec.get("selector") or {}
    for candidate in store.items("pods", namespace):
        if selector and selector.items() <= candidate.labels.items():
            pod = candidate.load()
            at = _container_port(pod, port_entry.get("targetPort") or port)
            if at and _is_ready(pod):
                return pod["status"]["podIP"], at
    raise Unreachable(f'no endpoints available for service "{name}"')


def _is_ready(pod: JSON) -> bool:
    status = pod.get("status") or {}
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    return ready and bool(status.get("podIP")) and not pod["metadata"].get("deletionTimestamp")


def _container_port(pod: JSON, target: int | str) -> int:
    if isinstance(target, int):
        return target
    return next((int(port["containerPort"]) for port in _container_ports(pod) if port.get("name") == target), 0)


def _container_ports(pod: JSON) -> Iterator[JSON]:
    for container in (pod.get("spec") or {}).get("containers") or ():
        yield from container.get("ports") or ()
