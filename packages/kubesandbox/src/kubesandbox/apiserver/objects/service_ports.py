"""Node ports of Services: allocated, unique, and kept (pkg/registry/core/service/storage/alloc.go)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.metadata import JSON, key_of, meta
from kubesandbox.apiserver.objects.strategies import has_node_ports
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.store import Store

_FIRST, _LAST = 30_000, 32_767


def allocate_node_ports(store: Store, service: JSON, old: JSON | None) -> None:
    """Assigns a node port to each port of a Service that needs one; an update without node ports keeps the present
    ones.

    Raises ApiError 422 for a port that another Service has, or that is out of the range.
    """
    spec = service.get("spec") or {}
    if not has_node_ports(spec):
        return
    taken = set(_taken_ports(store, service))  # of any protocol
    former = {_identity(port): port.get("nodePort") for port in ((old or {}).get("spec") or {}).get("ports") or ()}
    own: dict[int, set[str]] = {}
    faults = []
    for index, port in enumerate(spec.get("ports") or ()):
        protocol = port.get("protocol") or "TCP"
        wanted = port.get("nodePort") or former.get(_identity(port)) or 0
        path = f"spec.ports[{index}].nodePort"
        if not wanted:
            # The same port of two protocols may share one; a name gives the same port in a dry run and a real one.
            same = [
                p["nodePort"] for p in spec["ports"][:index] if p.get("port") == port.get("port") and p.get("nodePort")
            ]
            free = [each for each in same if protocol not in own.get(each, ())]
            wanted = free[0] if free else _free_port(service, index, taken | own.keys())
        elif wanted in taken:
            faults.append(field.invalid(path, wanted, "provided port is already allocated"))
        elif not _FIRST <= wanted <= _LAST and wanted not in former.values():
            why = f"provided port is not in the valid range. The range of valid ports is {_FIRST}-{_LAST}"
            faults.append(field.invalid(path, wanted, why))
        port["nodePort"] = wanted
        own.setdefault(wanted, set()).add(protocol)
    if faults:
        raise status_errors.invalid("Service", "", meta(service).get("name", ""), faults[:1])


def _identity(port: JSON) -> tuple[str, object]:
    return port.get("protocol") or "TCP", port.get("port")


def _taken_ports(store: Store, service: JSON) -> Iterator[int]:
    """Yields the node ports of other Services."""
    own = key_of(service)
    for entry in store.items("services"):
        if entry.key == own:
            continue
        spec = entry.load().get("spec") or {}
        for port in spec.get("ports") or ():
            if port.get("nodePort"):
                yield port["nodePort"]
        if spec.get("healthCheckNodePort"):
            yield spec["healthCheckNodePort"]


def _free_port(service: JSON, index: int, taken: set[int]) -> int:
    """Returns a free port, the same for the same Service; 0 if all are taken."""
    count = _LAST - _FIRST + 1
    text = f"{meta(service).get('namespace')}/{meta(service).get('name')}/{index}"
    start = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % count
    ports = (_FIRST + (start + step) % count for step in range(count))
    return next((port for port in ports if port not in taken), 0)
