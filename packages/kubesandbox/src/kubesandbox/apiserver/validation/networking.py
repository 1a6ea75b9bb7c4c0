"""Validation of Services, Ingresses, IngressClasses and NetworkPolicies."""

from __future__ import annotations

import ipaddress
from typing import Any

from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.schema.field_errors import duplicate, forbidden, invalid, not_supported, one_of, required
from kubesandbox.apiserver.validation import common

JSON = dict[str, Any]

_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def service_faults(obj: JSON, old: JSON | None) -> common.Faults:
    """Yields the faults of a Service: ports, type, selector, and a changed address."""
    spec = obj.get("spec") or {}
    kind, ports, address = spec.get("type") or "", spec.get("ports") or (), spec.get("clusterIP")
    # Headless and ExternalName Services need no ports.
    if not ports and address != "None" and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name") or ""
        if (len(ports) > 1) and not name:
            yield required(f"{path}.name")
        elif name:
            if why := object_meta.dns1123_label_faults(name):
                yield invalid(f"{path}.name", name, why)
            if name in names:
                yield duplicate(f"{path}.name", name)
            names.add(name)
        yield from common.port_number(port.get("port") or 0, f"{path}.port")
        target = port.get("targetPort")
        if isinstance(target, str):
            for why in common.port_name(target) if target else ():
                yield invalid(f"{path}.targetPort", target, why)
        elif target:
            yield from common.port_number(target, f"{path}.targetPort")
        yield from common.protocol_faults(port.get("protocol") or "", f"{path}.protocol")
    earlier_ports: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("port"), port.get("protocol"))
        if key in earlier_ports:
            yield duplicate(f"spec.ports[{index}]", {"port": key[0], "protocol": key[1]})
        earlier_ports.add(key)
    yield from object_meta.label_faults(spec.get("selector") or {}, "spec.selector")
    yield from one_of("spec.type", kind, ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    if affinity := spec.get("sessionAffinity"):
        yield from one_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        yield invalid("spec.ipFamilyPolicy", "RequireDualStack", why)
    for index, external in enumerate(spec.get("externalIPs") or ()):
        if not common.is_address(external):
            yield invalid(f"spec.externalIPs[{index}]", external, _ADDRESS_RULE)
    policy = spec.get("externalTrafficPolicy")
    outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if policy and not outside:
        yield invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    former = (old or {}).get("spec") or {}
    if address and address != "None" and not common.is_address(address):
        yield invalid("spec.clusterIPs[0]", address, _ADDRESS_RULE)
    elif former.get("clusterIP") and kind == former.get("type") and address != former["clusterIP"]:
        yield invalid("spec.clusterIPs[0]", spec.get("clusterIPs") or [address], "may not change once set")


# -- Ingresses ---------------------------------------------------------------------------------------------------------

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def ingress_faults(obj: JSON, _old: JSON | None) -> common.Faults:
    """Yields the faults of an Ingress: hosts, paths, backends, secrets."""
    spec = obj.get("spec") or {}
    rules, default = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and default is None:
        yield invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _backend_faults(default, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        path, host, http = f"spec.rules[{index}]", rule.get("host"), rule.get("http")
        if host and common.is_address(host):
            yield invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
        elif host:
            yield from _host_faults(host, f"{path}.host")
        if http is not None and not http.get("paths"):
            yield required(f"{path}.http.paths")
        for number, each in enumerate((http or {}).get("paths") or ()):
            yield from _path_faults(each, f"{path}.http.paths[{number}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            yield from _host_faults(host, f"spec.tls[{index}].hosts[{number}]")
        secret = tls.get("secretName")
        if secret and (why := object_meta.dns1123_subdomain_faults(secret)):
            yield invalid(f"spec.tls[{index}].secretName", secret, why)


def _host_faults(host: str, path: str) -> common.Faults:
    # Only the first label may be a wildcard.
    if "*" not in host and (why := object_meta.dns1123_subdomain_faults(host)):
        yield invalid(path, host, why)


def _path_faults(each: JSON, path: str) -> common.Faults:
    """Yields the faults of one path: its type, its text and its backend."""
    kind, text = each.get("pathType"), each.get("path") or ""
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield invalid(f"{path}.path", text, "must be an absolute path")
    else:
        if not text.startswith("/"):
            yield invalid(f"{path}.path", text, "must be an absolute path")
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                yield invalid(f"{path}.path", text, f"must not contain '{part}'")
        for part in ("/..", "/."):
            if text.endswith(part):
                yield invalid(f"{path}.path", text, f"cannot end with '{part}'")
    yield from _backend_faults(each.get("backend") or {}, f"{path}.backend")


def _backend_faults(backend: JSON, path: str) -> common.Faults:
    """Yields the faults of a backend, which is either a Service or another object."""
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                yield required(f"{path}.resource.{name}")
    elif service is None:
        yield required(path, "a service or resource backend is required")
    else:
        port = service.get("port") or {}
        if not service.get("name"):
            yield required(f"{path}.service.name")
        if port.get("name") and port.get("number"):
            yield invalid(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            for why in common.port_name(port["name"]):
                yield invalid(f"{path}.service.port.name", port["name"], why)
        elif port.get("number"):
            yield from common.port_number(port["number"], f"{path}.service.port.number")
        else:
            yield required(path, "port name or number is required")


def ingress_class(obj: JSON, old: JSON | None) -> common.Faults:
    """Yields the faults of an IngressClass: a controller, which stays, and parameters with kind and name."""
    spec = obj.get("spec") or {}
    if old is not None:
        yield from common.changed_paths(obj, old, "spec.controller")
    elif not spec.get("controller"):
        yield required("spec.controller")
    if spec.get("parameters") is not None:
        for name in ("kind", "name"):
            if not spec["parameters"].get(name):
                yield required(f"spec.parameters.{name}")


# -- NetworkPolicies ---------------------------------------------------------------------------------------------------

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_DIRECTIONS = ("Ingress", "Egress")


def network_policy(obj: JSON, _old: JSON | None) -> common.Faults:
    """Yields the faults of a NetworkPolicy: ports, peers, types."""
    spec = obj.get("spec") or {}
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_faults(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_faults(peer, f"{path}.{peers}[{number}]")
    types = spec.get("policyTypes") or ()
    if len(types) > len(_DIRECTIONS):
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, policy_type in enumerate(types):
        yield from one_of(f"spec.policyTypes[{index}]", policy_type, _DIRECTIONS)


def _policy_port_faults(port: JSON, path: str) -> common.Faults:
    """Yields the faults of a NetworkPolicy's port."""
    number, end = port.get("port"), port.get("endPort")
    yield from one_of(f"{path}.protocol", port.get("protocol") or "TCP", ("TCP", "UDP", "SCTP"))
    if number is None:
        if end is not None:
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        if end is not None:
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        for why in common.port_name(number):
            yield invalid(f"{path}.port", number, why)
    else:
        yield from common.port_number(number, f"{path}.port")
        if end is not None:
            if end < number:
                yield invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
            yield from common.port_number(end, f"{path}.endPort")


def _peer_faults(peer: JSON, path: str) -> common.Faults:
    """Yields a fault for a NetworkPolicy's peer without a selector, or with one next to an ipBlock."""
    if not any(peer.get(key) is not None for key in ("podSelector", "namespaceSelector", "ipBlock")):
        yield required(path, "must specify a peer")
    elif peer.get("ipBlock") is not None and len([key for key, value in peer.items() if value is not None]) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")
    if (block := peer.get("ipBlock")) is None:
        return
    cidr = block.get("cidr")
    network = _network(cidr or "")
    if not cidr:
        yield required(f"{path}.ipBlock.cidr")
    elif network is None:
        yield invalid(f"{path}.ipBlock.cidr", cidr, _CIDR_RULE)
    else:
        for index, text in enumerate(block.get("except") or ()):
            part = _network(text)
            if part is None:
                yield invalid(f"{path}.ipBlock.except[{index}]", text, _CIDR_RULE)
            elif part.network_address not in network or part.prefixlen <= network.prefixlen:
                yield invalid(f"{path}.ipBlock.except[{index}]", text, "must be a strict subset of `cidr`")


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
