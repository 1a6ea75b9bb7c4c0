"""Validation of NetworkPolicies, PriorityClasses and RuntimeClasses."""

from __future__ import annotations

import ipaddress
from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, not_supported
from kubesandbox.apiserver.schema.name_rules import dns1123_label_faults
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, changed_paths, port_name, port_number

JSON = dict[str, Any]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DIRECTIONS = ("Ingress", "Egress")
# The greatest value of a class that is not the system's own (pkg/apis/scheduling: HighestUserDefinablePriority).
_GREATEST = 1_000_000_000
_SYSTEM = "system-"
# The classes of the system's own pods and their values (SystemPriorityClasses).
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTION = ("PreemptLowerPriority", "Never")


def network_policy(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a NetworkPolicy: ports, peers, types."""
    spec = obj.get("spec") or {}
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _port_faults(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_faults(peer, f"{path}.{peers}[{number}]")
    types = spec.get("policyTypes") or ()
    if len(types) > len(_DIRECTIONS):
        yield FieldError(Fault.INVALID, "spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, policy_type in enumerate(types):
        if policy_type not in _DIRECTIONS:
            yield not_supported(f"spec.policyTypes[{index}]", policy_type, _DIRECTIONS)


def _port_faults(port: JSON, path: str) -> Faults:
    """Yields the faults of a NetworkPolicy's port."""
    protocol, number, end = port.get("protocol") or "TCP", port.get("port"), port.get("endPort")
    if protocol not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    if number is None:
        if end is not None:
            why = "may not be specified when `port` is not specified"
            yield FieldError(Fault.INVALID, f"{path}.endPort", end, why)
    elif isinstance(number, str):
        if end is not None:
            why = "may not be specified when `port` is non-numeric"
            yield FieldError(Fault.INVALID, f"{path}.endPort", end, why)
        for why in port_name(number):
            yield FieldError(Fault.INVALID, f"{path}.port", number, why)
    else:
        yield from port_number(number, f"{path}.port")
        if end is not None:
            if end < number:
                yield FieldError(Fault.INVALID, f"{path}.endPort", number, "must be greater than or equal to `port`")
            yield from port_number(end, f"{path}.endPort")


def _peer_faults(peer: JSON, path: str) -> Faults:
    """Yields a fault for a NetworkPolicy's peer without a selector, or with one beside an ipBlock."""
    if not any(peer.get(key) is not None for key in ("podSelector", "namespaceSelector", "ipBlock")):
        yield FieldError(Fault.REQUIRED, path, detail="must specify a peer")
    elif peer.get("ipBlock") is not None and len([key for key, value in peer.items() if value is not None]) > 1:
        why = "may not specify both ipBlock and another peer"
        yield FieldError(Fault.FORBIDDEN, path, detail=why)
    if (block := peer.get("ipBlock")) is not None:
        yield from _block_faults(block, f"{path}.ipBlock")


def _block_faults(block: JSON, path: str) -> Faults:
    """Yields the faults of a NetworkPolicy's ipBlock; its exceptions must be within its CIDR."""
    cidr = block.get("cidr")
    if not cidr:
        yield FieldError(Fault.REQUIRED, f"{path}.cidr")
        return
    network = _network(cidr)
    if network is None:
        yield FieldError(Fault.INVALID, f"{path}.cidr", cidr, _CIDR_RULE)
        return
    for index, text in enumerate(block.get("except") or ()):
        part = _network(text)
        if part is None:
            yield FieldError(Fault.INVALID, f"{path}.except[{index}]", text, _CIDR_RULE)
        elif not _is_within(part, network):
            yield FieldError(Fault.INVALID, f"{path}.except[{index}]", text, "must be a strict subset of `cidr`")


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _is_within(part: Network, network: Network) -> bool:
    return part.network_address in network and part.prefixlen > network.prefixlen


def priority_class(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PriorityClass: reserved names, the greatest value, what may not change."""
    name, value = obj["metadata"].get("name", ""), obj.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield FieldError(Fault.FORBIDDEN, "value", detail="may not be changed in an update.")
        yield from changed_paths(obj, old, "preemptionPolicy")
        return
    if name.startswith(_SYSTEM):
        if why := _why_reserved_name(name, value, obj):
            reserved = "priority class names with 'system-' prefix are reserved for system use only."
            yield FieldError(Fault.FORBIDDEN, "metadata.name", detail=f"{reserved} error: {why}")
    elif value > _GREATEST:
        why = f"maximum allowed value of a user defined priority is {_GREATEST}"
        yield FieldError(Fault.FORBIDDEN, "value", detail=why)
    if (policy := obj.get("preemptionPolicy")) is not None and policy not in _PREEMPTION:
        yield not_supported("preemptionPolicy", policy, _PREEMPTION)


def runtime_class(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a RuntimeClass: an overhead below 0, and a handler that is no DNS label, or that changes."""
    for name, amount in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        if str(amount).startswith("-"):
            yield FieldError(Fault.INVALID, f"overhead.limits[{name}]", str(amount), NOT_NEGATIVE)
    if old is not None:
        yield from changed_paths(obj, old, "handler")
        return
    handler = obj.get("handler") or ""
    if why := "must not contain dots" if "." in handler else dns1123_label_faults(handler):
        yield FieldError(Fault.INVALID, "handler", handler, why)


def _why_reserved_name(name: str, value: int, obj: JSON) -> str:
    """Returns why a PriorityClass cannot have a name of the system's, or ""."""
    system_class = SYSTEM_CLASSES.get(name)
    if system_class is None:
        return f"{name} is not a known system priority class"
    if value != system_class:
        return f"value of {name} PriorityClass must be {system_class}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""
