"""The dedicated account that a preflight may run under (decision D9): objects to apply, and to delete again.

It reads what this release's own checks read and no Secret, and writes nothing but its own report where that goes into a
ConfigMap. A target whose checks read more says which rule it lacked, and that check is Unknown.
"""

from __future__ import annotations

from typing import Any

from runup.api.config_v1 import ClusterVersion, FeatureGate
from runup.api.meta_v1 import NamespacedName
from runup.api.scheme import Resource, resource_of
from runup.domain.checks.catalogue import CHECKS
from runup.domain.plan import Apply, Delete
from runup.domain.preflight.workloads import APP_LABEL, NAME, Workplace, report_map

RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
CLUSTER_ROLE = Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE = Resource(RBAC, "v1", "Role", "roles", namespaced=True)
ROLE_BINDING = Resource(RBAC, "v1", "RoleBinding", "rolebindings", namespaced=True)

JSON = dict[str, Any]


def applies(place: Workplace, preflight_id: str) -> tuple[Apply, ...]:
    """The account, what it may read, and where it may write its report; nothing where the operator's is used."""
    return tuple(Apply(resource, obj) for resource, obj in _objects(place, preflight_id))


def deletes(place: Workplace, preflight_id: str) -> tuple[Delete, ...]:
    """The same objects, in the opposite order: rights go before the account that has them."""
    return tuple(
        Delete(resource, NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        for resource, obj in reversed(_objects(place, preflight_id))
    )


def read_rules() -> list[JSON]:
    """get, list and watch for what the built-in checks read, and for the two objects that say which checks apply."""
    reads = {resource for check in CHECKS for resource in check.reads}
    reads |= {resource_of(ClusterVersion), resource_of(FeatureGate)}
    by_group: dict[str, set[str]] = {}
    for resource in reads:
        by_group.setdefault(resource.group, set()).add(resource.plural)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": ["get", "list", "watch"]}
        for group, plurals in sorted(by_group.items())
    ]


def _objects(place: Workplace, preflight_id: str) -> tuple[tuple[Resource, JSON], ...]:
    if place.service_account != "dedicated":
        return ()
    found = [
        (SERVICE_ACCOUNT, _object(SERVICE_ACCOUNT, place.namespace)),
        (CLUSTER_ROLE, _object(CLUSTER_ROLE, rules=read_rules())),
        (CLUSTER_ROLE_BINDING, _object(CLUSTER_ROLE_BINDING, **_binding(CLUSTER_ROLE, place))),
    ]
    if place.report_sink == "configmap":
        rule = {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [report_map(preflight_id)],
            "verbs": ["get", "create", "patch"],
        }
        found.append((ROLE, _object(ROLE, place.namespace, rules=[rule])))
        found.append((ROLE_BINDING, _object(ROLE_BINDING, place.namespace, **_binding(ROLE, place))))
    return tuple(found)


def _object(resource: Resource, namespace: str = "", **content: Any) -> JSON:
    metadata = {"name": NAME, "labels": {APP_LABEL: NAME}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def _binding(role: Resource, place: Workplace) -> JSON:
    return {
        "roleRef": {"apiGroup": RBAC, "kind": role.kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": place.namespace}],
    }
