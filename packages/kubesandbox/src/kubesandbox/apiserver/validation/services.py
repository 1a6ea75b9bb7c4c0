"""Validation of Services."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, not_supported, object_meta
from kubesandbox.apiserver.schema.name_rules import dns1123_label_faults
from kubesandbox.apiserver.validation.common import PROTOCOLS, Faults, is_address, port_name, port_number

JSON = dict[str, Any]

_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_AFFINITIES = ("ClientIP", "None")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def service_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Service: ports, type, selector, and a changed address."""
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or ()
    headless = spec.get("clusterIP") == "None"
    # Headless and ExternalName Services need no ports.
    if not ports and not headless and kind != "ExternalName":
        yield FieldError(Fault.REQUIRED, "spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield FieldError(Fault.REQUIRED, "spec.externalName")
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _port_faults(port, f"spec.ports[{index}]", names, name_required=len(ports) > 1)
    yield from _repeated_ports(ports)
    yield from object_meta.label_faults(spec.get("selector") or {}, "spec.selector")
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    yield from _traffic_faults(spec, kind)
    former = (old or {}).get("spec") or {}
    address = spec.get("clusterIP")
    if address and address != "None" and not is_address(address):
        yield FieldError(Fault.INVALID, "spec.clusterIPs[0]", address, _ADDRESS_RULE)
    elif former.get("clusterIP") and kind == former.get("type") and spec.get("clusterIP") != former["clusterIP"]:
        value = spec.get("clusterIPs") or [spec.get("clusterIP")]
        yield FieldError(Fault.INVALID, "spec.clusterIPs[0]", value, "may not change once set")


def _traffic_faults(spec: JSON, kind: str) -> Faults:
    """Yields the faults of how a Service is reached: affinity, families of addresses, traffic from outside."""
    affinity = spec.get("sessionAffinity")
    if affinity and affinity not in _AFFINITIES:
        yield not_supported("spec.sessionAffinity", affinity, _AFFINITIES)
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        yield FieldError(Fault.INVALID, "spec.ipFamilyPolicy", "RequireDualStack", why)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        if not is_address(address):
            yield FieldError(Fault.INVALID, f"spec.externalIPs[{index}]", address, _ADDRESS_RULE)
    policy = spec.get("externalTrafficPolicy")
    outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if policy and not outside:
        why = "may only be set for externally-accessible services"
        yield FieldError(Fault.INVALID, "spec.externalTrafficPolicy", policy, why)


def _port_faults(port: JSON, path: str, names_seen: set[str], *, name_required: bool) -> Faults:
    """Yields the faults of a Service's port; adds its name to `names_seen`."""
    name = port.get("name") or ""
    if name_required and not name:
        yield FieldError(Fault.REQUIRED, f"{path}.name")
    elif name:
        if why := dns1123_label_faults(name):
            yield FieldError(Fault.INVALID, f"{path}.name", name, why)
        if name in names_seen:
            yield FieldError(Fault.DUPLICATE, f"{path}.name", name)
        names_seen.add(name)
    yield from port_number(port.get("port") or 0, f"{path}.port")
    target = port.get("targetPort")
    if isinstance(target, str):
        for why in port_name(target) if target else ():
            yield FieldError(Fault.INVALID, f"{path}.targetPort", target, why)
    elif target:
        yield from port_number(target, f"{path}.targetPort")
    protocol = port.get("protocol") or ""
    if not protocol:
        yield FieldError(Fault.REQUIRED, f"{path}.protocol")
    elif protocol not in PROTOCOLS:
        yield not_supported(f"{path}.protocol", protocol, PROTOCOLS)


def _repeated_ports(ports: list[JSON] | tuple[()]) -> Faults:
    """Yields a fault for each port and protocol that occur again."""
    earlier_ports: list[tuple[Any, Any]] = []
    for index, port in enumerate(ports):
        key = (port.get("port"), port.get("protocol"))
        if key in earlier_ports:
            shown_port = {"port": key[0], "protocol": key[1]}
            yield FieldError(Fault.DUPLICATE, f"spec.ports[{index}]", shown_port)
        earlier_ports.append(key)
