"""The objects that every new cluster has: the first namespaces, roles, bindings and priority classes.

The names and rights are Kubernetes' own (reference/access-authn-authz/rbac), and OpenShift's `cluster-reader`.
"""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.objects.strategies import SERVER_ADDRESS
from kubesandbox.apiserver.validation.policies import SYSTEM_CLASSES

JSON = dict[str, Any]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
# The resources of the roles view and edit in a namespace; view does not include Secrets.
_WORKLOADS: tuple[JSON, ...] = (
    {
        "apiGroups": [""],
        "resources": [
            "configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "pods/log", "pods/status",
            "replicationcontrollers", "serviceaccounts", "services", "namespaces",
        ],
    },
    {
        "apiGroups": ["apps"],
        "resources": ["daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
                      "statefulsets", "statefulsets/scale"],
    },
    {"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "networkpolicies"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"]},
)  # fmt: skip
_SECRETS: JSON = {"apiGroups": [""], "resources": ["secrets"]}
_ACCOUNTS: JSON = {"apiGroups": [""], "resources": ["serviceaccounts/token", "pods/eviction"]}
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
              "/version", "/version/"]  # fmt: skip
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]


def initial_objects() -> list[JSON]:
    """Returns the objects that are created at start if they are missing."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    bindings = [
        _role_binding("cluster-admin", "system:masters"),
        _role_binding("system:basic-user", "system:authenticated"),
        _role_binding("system:discovery", "system:authenticated"),
        _role_binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
    ]
    # The two priority classes of the system's own pods (k8s.io/kubernetes/pkg/apis/scheduling).
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in SYSTEM_CLASSES.items()
    ]
    return [*namespaces, *_cluster_roles(), *bindings, *classes]


def of_server(host: str, port: int) -> list[JSON]:
    """Returns the Service `kubernetes` and its endpoints, by which a server lets pods find it.

    As pkg/controlplane/controller/kubernetesservice and pkg/controlplane/reconcilers write them.
    """
    metadata = {"name": "kubernetes", "namespace": "default"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port_entry = {"name": "https", "protocol": "TCP", "port": port}
    family = "IPv6" if ":" in host else "IPv4"
    service = {
        "ports": [{**port_entry, "port": 443, "targetPort": port}],
        "clusterIP": SERVER_ADDRESS,
        "clusterIPs": [SERVER_ADDRESS],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilyPolicy": "SingleStack",
    }
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "labels": labels}, "spec": service},
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": host}], "ports": [port_entry]}],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": family,
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
            "ports": [port_entry],
        },
    ]


def _cluster_roles() -> list[JSON]:
    """Returns the ClusterRoles that a new cluster has, with OpenShift's cluster-reader among them."""
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    view = _with_verbs(_WORKLOADS, _READ)
    edit = [*_with_verbs(_WORKLOADS, [*_READ, *_WRITE]), *_with_verbs((_SECRETS, _ACCOUNTS), [*_READ, *_WRITE])]
    roles_too: JSON = {"apiGroups": [_RBAC], "resources": ["roles", "rolebindings"]}
    reader: JSON = {"apiGroups": ["*"], "resources": ["*"], "verbs": _READ}
    # OpenShift's cluster-reader reads everything but Secrets; RBAC rules only add, so the core group is listed in full.
    core = [*_WORKLOADS[0]["resources"], "nodes", "nodes/status", "persistentvolumes", "limitranges", "resourcequotas"]
    groups = ["apps", "batch", "policy", "networking.k8s.io", "discovery.k8s.io", "coordination.k8s.io", _RBAC,
              "storage.k8s.io", "scheduling.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
              "admissionregistration.k8s.io", "events.k8s.io", "config.openshift.io", "apiserver.openshift.io",
              "machineconfiguration.openshift.io"]  # fmt: skip
    cluster_reader = [{**reader, "apiGroups": [""], "resources": core}, {**reader, "apiGroups": groups}]
    reviews: JSON = {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    }
    whoami: JSON = {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]}
    return [
        _cluster_role("cluster-admin", everything),
        _aggregated_role("admin"),
        _aggregated_role("edit", "admin"),
        _aggregated_role("view", "edit"),
        _cluster_role("system:aggregate-to-admin", [{**roles_too, "verbs": [*_READ, *_WRITE]}], "admin"),
        _cluster_role("system:aggregate-to-edit", edit, "edit"),
        _cluster_role("system:aggregate-to-view", view, "view"),
        _cluster_role("cluster-reader", cluster_reader),
        _cluster_role("system:basic-user", [reviews, whoami]),
        _cluster_role("system:discovery", [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}]),
        _cluster_role("system:public-info-viewer", [{"nonResourceURLs": _HEALTH, "verbs": ["get"]}]),
    ]


def _with_verbs(rules: tuple[JSON, ...], verbs: list[str]) -> list[JSON]:
    return [{**rule, "verbs": verbs} for rule in rules]


def _cluster_role(name: str, rules: list[JSON], *part_of: str) -> JSON:
    """Returns a ClusterRole, with the labels of the aggregated roles that it is part of."""
    labels = {f"{_RBAC}/aggregate-to-{whole}": "true" for whole in part_of}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}},
        "rules": rules,
    }


def _aggregated_role(name: str, *part_of: str) -> JSON:
    """Returns an aggregated ClusterRole, whose rules are those of the roles with its label."""
    selector = {"matchLabels": {f"{_RBAC}/aggregate-to-{name}": "true"}}
    return {**_cluster_role(name, [], *part_of), "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _role_binding(role: str, *groups: str) -> JSON:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups],
    }
