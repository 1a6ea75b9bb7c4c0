"""The dedicated ServiceAccount of a preflight, with its RBAC objects: what to apply and what to delete.

Source: docs/decisions/0072 D9.

The account reads what the target's checks declare and no Secret. It writes nothing but its own report, where the report
goes into a ConfigMap. A check that reads more than the account may is Unknown and names the missing rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from runup.api.preflight_reads_v1 import Right
from runup.preflight.decide import container_check_pods
from runup.preflight.decide.preflight_deployment import APP_LABEL, NAME, PodSettings, report_map
from runup.process.plan import Apply, Delete

RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
CLUSTER_ROLE = Resource(group=RBAC, version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(
    group=RBAC, version="v1", kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
)
ROLE = Resource(group=RBAC, version="v1", kind="Role", plural="roles", namespaced=True)
ROLE_BINDING = Resource(group=RBAC, version="v1", kind="RoleBinding", plural="rolebindings", namespaced=True)
READ = ("get", "list", "watch")

JSON = dict[str, Any]


def account_objects(settings: PodSettings, preflight_id: str, rights: Iterable[Right]) -> tuple[Apply, ...]:
    """Returns the account, its read permissions and its permission to write the report.

    Returns nothing if preflights run under the operator's own account.
    """
    if settings.service_account != "dedicated":
        return ()
    rights = tuple(rights)
    return tuple(
        # A namespace that does not exist holds nothing to read, so its Role is not needed.
        Apply(
            resource=resource,
            object=obj,
            where_namespace=obj["metadata"].get("namespace", settings.namespace) != settings.namespace,
        )
        for resource, obj in (*_account(settings, preflight_id, rights), *_roles_elsewhere(settings, rights))
    )


def account_deletions(settings: PodSettings, preflight_id: str, namespaces: Iterable[str] = ()) -> tuple[Delete, ...]:
    """Returns deletions of every object that the account may have been given, whatever the settings are today.

    Bindings and roles are deleted before the account itself. `namespaces` are those in which it got a Role
    (`role_namespaces`).
    """
    everything = replace(settings, service_account="dedicated", report_sink="configmap")
    rights = tuple(Right("", "", namespace) for namespace in namespaces)
    objects = (*_account(everything, preflight_id, ()), *_roles_elsewhere(everything, rights))
    return tuple(
        Delete(resource, NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        # Bindings first and the account last, so that nothing that is left over has rights.
        for resource, obj in reversed(objects)
    )


def role_namespaces(settings: PodSettings, rights: Iterable[Right]) -> tuple[str, ...]:
    """Returns the other namespaces in which the account needs a Role; none if the account is not used."""
    if settings.service_account != "dedicated":
        return ()
    # Cluster-wide rights are in the ClusterRole, those for the operator's namespace in its own Role.
    return tuple(sorted({right.namespace for right in rights} - {"", settings.namespace}))


def read_rules(rights: Iterable[Right], namespace: str = "") -> list[JSON]:
    """Returns RBAC rules for get, list and watch of what `rights` has for `namespace`, or for the whole cluster."""
    by_group: dict[str, set[str]] = {}
    for right in rights:
        if right.namespace == namespace:
            by_group.setdefault(right.group, set()).add(right.resource)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(READ)}
        for group, plurals in sorted(by_group.items())
    ]


def _account(settings: PodSettings, preflight_id: str, rights: tuple[Right, ...]) -> list[tuple[Resource, JSON]]:
    """Returns the account with its cluster-wide permissions, and those in the operator's namespace."""
    own = settings.namespace
    return [
        (SERVICE_ACCOUNT, _labelled_object(SERVICE_ACCOUNT, settings.namespace)),
        (CLUSTER_ROLE, _labelled_object(CLUSTER_ROLE, rules=read_rules(rights))),
        (CLUSTER_ROLE_BINDING, _labelled_object(CLUSTER_ROLE_BINDING, **role_binding(CLUSTER_ROLE, NAME, own))),
        (ROLE, _labelled_object(ROLE, settings.namespace, rules=_own_rules(settings, preflight_id, rights))),
        (ROLE_BINDING, _labelled_object(ROLE_BINDING, own, **role_binding(ROLE, NAME, own))),
    ]


def _own_rules(settings: PodSettings, preflight_id: str, rights: tuple[Right, ...]) -> list[JSON]:
    """Returns the rules for the operator's namespace: use of an SCC, report, Pods and logs, and what checks read."""
    constraints = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [settings.security_context_constraints],
        # An SCC can be used only with this permission on it.
        "verbs": ["use"],
    }
    report = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        # Server-side apply needs `create` to make the ConfigMap; unlike a plain create, its request names the object.
        "resourceNames": [report_map(preflight_id)],
        "verbs": ["get", "create", "patch"],
    }
    writes = [report] if settings.report_sink == "configmap" else []
    pods: JSON = {"apiGroups": [""], "resources": ["pods"], "verbs": list(READ)}
    # Logs of container checks only: the account must not read the operator's own log.
    logs = {
        "apiGroups": [""],
        "resources": ["pods/log"],
        "resourceNames": list(container_check_pods.pod_names()),
        "verbs": ["get"],
    }
    return [constraints, *writes, pods, logs, *read_rules(rights, settings.namespace)]


def _roles_elsewhere(settings: PodSettings, rights: tuple[Right, ...]) -> list[tuple[Resource, JSON]]:
    """Returns the Roles and RoleBindings for namespaces other than the operator's."""
    objects = []
    for namespace in role_namespaces(settings, rights):
        objects.append((ROLE, _labelled_object(ROLE, namespace, rules=read_rules(rights, namespace))))
        binding = role_binding(ROLE, NAME, settings.namespace)
        objects.append((ROLE_BINDING, _labelled_object(ROLE_BINDING, namespace, **binding)))
    return objects


def _labelled_object(resource: Resource, namespace: str = "", **content: Any) -> JSON:
    metadata = {"name": NAME, "labels": {APP_LABEL: NAME}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def role_binding(role: Resource, name: str, namespace: str) -> JSON:
    """Returns the content of a binding of the role `name` to the account of the same name."""
    return {
        "roleRef": {"apiGroup": RBAC, "kind": role.kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
