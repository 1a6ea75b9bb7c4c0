"""The dedicated account that a preflight may run under (decision D9): objects to apply, and to delete again.

It reads what the target's checks declare and no Secret, and writes nothing but its own report where that goes into a
ConfigMap. A target whose checks read more says which rule it lacked, and that check is Unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from kubekit.api.meta_v1 import NamespacedName, Wire
from kubekit.api.scheme import Resource
from runup.preflight.decide import containers
from runup.preflight.decide.workloads import APP_LABEL, NAME, Workplace, report_map
from runup.process.plan import Apply, Delete

RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
CLUSTER_ROLE = Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE = Resource(RBAC, "v1", "Role", "roles", namespaced=True)
ROLE_BINDING = Resource(RBAC, "v1", "RoleBinding", "rolebindings", namespaced=True)
READ = ("get", "list", "watch")

JSON = dict[str, Any]


class Right(Wire, frozen=True):
    """To read one kind: `resource` is its plural, `namespace` empty for the whole cluster."""

    group: str
    resource: str
    namespace: str = ""


def applies(place: Workplace, preflight_id: str, rights: Iterable[Right]) -> tuple[Apply, ...]:
    """The account, what it may read, and where it may write its report; nothing where the operator's is used."""
    if place.service_account != "dedicated":
        return ()
    rights = tuple(rights)
    return tuple(
        # A namespace that is not there holds nothing that could be read.
        Apply(resource, obj, where_namespace=obj["metadata"].get("namespace", place.namespace) != place.namespace)
        for resource, obj in (*_account(place, preflight_id, rights), *_elsewhere(place, rights))
    )


def deletes(place: Workplace, preflight_id: str, namespaces: Iterable[str] = ()) -> tuple[Delete, ...]:
    """All that the account may have been given, whatever is set today; rights go before the account that has them.

    `namespaces` are those in which it got a Role (`role_namespaces`).
    """
    everything = replace(place, service_account="dedicated", report_sink="configmap")
    given = tuple(Right("", "", namespace) for namespace in namespaces)
    objects = (*_account(everything, preflight_id, ()), *_elsewhere(everything, given))
    return tuple(
        Delete(resource, NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        for resource, obj in reversed(objects)
    )


def role_namespaces(place: Workplace, rights: Iterable[Right]) -> tuple[str, ...]:
    """The other namespaces in which the account needs a Role; none where it is not used."""
    if place.service_account != "dedicated":
        return ()
    return tuple(sorted({right.namespace for right in rights} - {"", place.namespace}))


def read_rules(rights: Iterable[Right], namespace: str = "") -> list[JSON]:
    """get, list and watch for what `rights` has for `namespace`, or for the whole cluster."""
    by_group: dict[str, set[str]] = {}
    for right in rights:
        if right.namespace == namespace:
            by_group.setdefault(right.group, set()).add(right.resource)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(READ)}
        for group, plurals in sorted(by_group.items())
    ]


def _account(place: Workplace, preflight_id: str, rights: tuple[Right, ...]) -> list[tuple[Resource, JSON]]:
    return [
        (SERVICE_ACCOUNT, _object(SERVICE_ACCOUNT, place.namespace)),
        (CLUSTER_ROLE, _object(CLUSTER_ROLE, rules=read_rules(rights))),
        (CLUSTER_ROLE_BINDING, _object(CLUSTER_ROLE_BINDING, **_binding(CLUSTER_ROLE, place))),
        (ROLE, _object(ROLE, place.namespace, rules=_own_rules(place, preflight_id, rights))),
        (ROLE_BINDING, _object(ROLE_BINDING, place.namespace, **_binding(ROLE, place))),
    ]


def _own_rules(place: Workplace, preflight_id: str, rights: tuple[Right, ...]) -> list[JSON]:
    """In the operator's namespace: constraints (of OpenShift), its report, container checks' Pods, what checks read."""
    constraints = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [place.security_context_constraints],
        "verbs": ["use"],
    }
    report = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [report_map(preflight_id)],
        "verbs": ["get", "create", "patch"],
    }
    writes = [report] if place.report_sink == "configmap" else []
    pods: JSON = {"apiGroups": [""], "resources": ["pods"], "verbs": list(READ)}
    # Of container checks alone: the operator's own log is none of its business.
    logs = {
        "apiGroups": [""],
        "resources": ["pods/log"],
        "resourceNames": list(containers.pod_names()),
        "verbs": ["get"],
    }
    return [constraints, *writes, pods, logs, *read_rules(rights, place.namespace)]


def _elsewhere(place: Workplace, rights: tuple[Right, ...]) -> list[tuple[Resource, JSON]]:
    found = []
    for namespace in role_namespaces(place, rights):
        found.append((ROLE, _object(ROLE, namespace, rules=read_rules(rights, namespace))))
        found.append((ROLE_BINDING, _object(ROLE_BINDING, namespace, **_binding(ROLE, place))))
    return found


def _object(resource: Resource, namespace: str = "", **content: Any) -> JSON:
    metadata = {"name": NAME, "labels": {APP_LABEL: NAME}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def _binding(role: Resource, place: Workplace) -> JSON:
    return {
        "roleRef": {"apiGroup": RBAC, "kind": role.kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": place.namespace}],
    }
