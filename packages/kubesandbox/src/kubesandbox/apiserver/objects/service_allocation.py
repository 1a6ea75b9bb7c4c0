"""What a Service is allocated: its cluster IP, and the fields that follow from its type.

`allocate` completes a new Service, `reallocate` a changed one, as in pkg/registry/core/service/storage/alloc.go and the
service strategy. Cluster IPs are the only allocation: node ports and the addresses of load balancers stay as the client
gave them, so an allocator of node ports would be called in these two functions.
"""

from __future__ import annotations

import hashlib

from kubesandbox.apiserver.metadata import JSON, meta

SERVER_ADDRESS = "10.96.0.1"
"""The cluster IP of the Service `kubernetes`: the first address of the range."""
_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def allocate(service: JSON) -> None:
    """Sets the cluster IP of a new Service and the fields that follow from it; an ExternalName has none."""
    spec, metadata = service["spec"], meta(service)
    if not _has_cluster_ip(spec):
        return
    if not spec.get("clusterIP"):
        # Nothing listens there. The address derives from the name, so that a dry run shows the address of a real run.
        digest = hashlib.sha256(f"{metadata.get('namespace')}/{metadata.get('name')}".encode()).digest()
        spec["clusterIP"] = (spec.get("clusterIPs") or [f"10.96.{digest[0]}.{digest[1] % 254 + 1}"])[0]
    for key, value in (("clusterIPs", [spec["clusterIP"]]), ("ipFamilies", ["IPv4"])):
        if not spec.get(key):
            spec[key] = value
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def reallocate(new: JSON, old: JSON) -> None:
    """Keeps the allocated fields that an update leaves out, and drops those that only the former type has.

    A field of the former type is dropped where the update leaves it as it was (the service strategy's
    dropTypeDependentFields), so that a load balancer becomes a ClusterIP by its `type` alone.
    """
    before, after = old.get("spec") or {}, new["spec"]
    if _has_cluster_ip(before) and _has_cluster_ip(after):
        for key in _ADDRESS_FIELDS:
            if not after.get(key) and before.get(key):
                after[key] = before[key]
    fields = (
        ((*_ADDRESS_FIELDS, "internalTrafficPolicy"), _has_cluster_ip),
        (("externalTrafficPolicy",), _has_external_policy),
        (("allocateLoadBalancerNodePorts", "loadBalancerClass"), _is_load_balancer),
    )
    for keys, is_needed in fields:
        for key in keys if is_needed(before) and not is_needed(after) else ():
            if after.get(key) == before.get(key):
                after.pop(key, None)
    if _has_node_ports(before) and not _has_node_ports(after):
        former = [port.get("nodePort") for port in before.get("ports") or ()]
        if former == [port.get("nodePort") for port in after.get("ports") or ()]:
            after["ports"] = [{k: v for k, v in port.items() if k != "nodePort"} for port in after.get("ports") or ()]


def _has_cluster_ip(spec: JSON) -> bool:
    return spec.get("type") != "ExternalName"


def _is_load_balancer(spec: JSON) -> bool:
    return spec.get("type") == "LoadBalancer"


def _has_node_ports(spec: JSON) -> bool:
    if _is_load_balancer(spec):
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _has_external_policy(spec: JSON) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort") or bool(_has_cluster_ip(spec) and spec.get("externalIPs"))
