"""Usage of a ResourceQuota by objects of every kind, and which objects a quota is about. Pure.

As pkg/quota/v1 of Kubernetes: pods, Services and PersistentVolumeClaims use more than their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_CEILING
from typing import Any

from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver.quotas import pod_usage
from kubesandbox.apiserver.quotas.amounts import Amounts, add_amounts, select_names

JSON = dict[str, Any]
PODS, SERVICES, CLAIMS = "pods", "services", "persistentvolumeclaims"
DETAILED = (PODS, SERVICES, CLAIMS)
"""The kinds of which more than the number counts."""

_BY_CLASS = ".storageclass.storage.k8s.io/"
_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = (CLAIMS, "requests.storage")
# The kinds that have a name of their own besides `count/`.
_ALIASES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


def resources_counting(resource: str, names: Iterable[str]) -> list[str]:
    """Returns which of a quota's resources count objects of a kind (`plural.group`)."""
    return [name for name in names if _counts_kind(resource, name)]


def usage_of_object(resource: str, obj: JSON, now: datetime) -> dict[str, str]:
    """Returns what an object uses."""
    if resource == PODS:
        return pod_usage.usage_of_pod(obj, now)
    used = {f"count/{resource}": "1"}
    if resource == SERVICES:
        return {**used, **_usage_of_service(obj.get("spec") or {})}
    if resource == CLAIMS:
        return {**used, **_usage_of_claim(obj)}
    return {**used, resource: "1"} if resource in _ALIASES else used


def is_about(quota: JSON, resource: str, obj: JSON) -> bool:
    """Returns whether a quota is about an object: each of its scopes is one of the object."""
    return all(_in_scope(resource, obj, expression) for expression in _scope_expressions(quota["spec"]))


def used_of_quota(quota: JSON, objects: Iterable[tuple[str, JSON]], now: datetime) -> dict[str, str]:
    """Returns `status.used` of a quota: what `objects` (with their kinds) use of its limits together."""
    hard = quota["spec"].get("hard") or {}
    used: dict[str, str] = {}
    for resource, obj in objects:
        names = resources_counting(resource, hard)
        if names and is_about(quota, resource, obj):
            used = add_amounts(used, select_names(usage_of_object(resource, obj, now), names))
    return {name: used.get(name, "0") for name in hard}


def counted_kinds(hard: Amounts) -> set[str]:
    """Returns the kinds whose objects a quota's limits count, by the names of the limits."""
    kinds = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    return kinds | {kind for kind in (*DETAILED, *_ALIASES) if resources_counting(kind, hard)}


def _counts_kind(resource: str, name: str) -> bool:
    """Returns whether a quota's resource `name` counts objects of the kind `resource` (`plural.group`)."""
    if resource == PODS:
        return pod_usage.is_pod_resource(name)
    if resource == SERVICES:
        return name in _SERVICE_NAMES
    if resource == CLAIMS and (
        name in _CLAIM_NAMES or name.endswith(tuple(_BY_CLASS + claim for claim in _CLAIM_NAMES))
    ):
        return True
    return name == f"count/{resource}" or (name == resource and resource in _ALIASES)


def _usage_of_service(spec: JSON) -> dict[str, str]:
    """Returns what a Service uses: node ports and load balancers."""
    ports, kind = spec.get("ports") or (), spec.get("type")
    node_ports = len(ports) if kind in {"NodePort", "LoadBalancer"} else 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    balancers = str(int(kind == "LoadBalancer"))
    return {"services": "1", "services.nodeports": str(node_ports), "services.loadbalancers": balancers}


def _usage_of_claim(claim: JSON) -> dict[str, str]:
    """Returns what a PersistentVolumeClaim uses: storage, and the same by its storage class."""
    spec = claim.get("spec") or {}
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName") or ""
    used = {CLAIMS: "1"}
    if storage := ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        used["requests.storage"] = _whole_bytes(str(storage))
    if storage_class:
        used |= {f"{storage_class}{_BY_CLASS}{name}": amount for name, amount in used.items()}
    return used


def _whole_bytes(amount: str) -> str:
    """Returns an amount in whole bytes, which is all that a quota takes."""
    value = parse_quantity(amount)
    return amount if value == value.to_integral_value() else f"{value.to_integral_value(ROUND_CEILING):f}"


def _scope_expressions(spec: JSON) -> list[JSON]:
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return [*({"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()), *expressions]


def _in_scope(resource: str, obj: JSON, scope: JSON) -> bool:
    values = scope.get("values") or ()
    return resource == PODS and pod_usage.in_scope(obj, scope["scopeName"], scope.get("operator", ""), values)
