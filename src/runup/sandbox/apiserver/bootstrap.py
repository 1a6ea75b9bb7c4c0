"""What every cluster has before anybody does anything: the first namespaces, and the roles that clients count on.

Names and rules are those of a real server (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), as far as the sandbox has
the kinds: without `cluster-admin` no binding to it means anything, without `system:basic-user` nobody may ask
`kubectl auth can-i`.
"""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_WORKLOADS: list[JSON] = [
    {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"]},
    {"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"]},
    {
        "apiGroups": [""],
        "resources": [
            "configmaps",
            "events",
            "persistentvolumeclaims",
            "pods",
            "pods/log",
            "serviceaccounts",
            "services",
        ],
    },
]
_SECRETS: JSON = {"apiGroups": [""], "resources": ["secrets"]}
_EVERYTHING: list[JSON] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_REVIEWS: list[JSON] = [
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    },
    {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]

ROLES: dict[str, list[JSON]] = {
    "cluster-admin": _EVERYTHING,
    "admin": [
        *({**rule, "verbs": [*_READ, *_WRITE]} for rule in (*_WORKLOADS, _SECRETS)),
        {"apiGroups": [_RBAC], "resources": ["rolebindings", "roles"], "verbs": [*_READ, *_WRITE]},
    ],
    "edit": [{**rule, "verbs": [*_READ, *_WRITE]} for rule in (*_WORKLOADS, _SECRETS)],
    "view": [{**rule, "verbs": _READ} for rule in _WORKLOADS],
    "system:basic-user": _REVIEWS,
    "system:discovery": [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}],
    "system:public-info-viewer": [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}],
}
BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
}


def objects() -> list[JSON]:
    """The objects to create at start when they are missing."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    return [
        *namespaces,
        *(_role(name, rules) for name, rules in ROLES.items()),
        *(_binding(name, groups) for name, groups in BINDINGS.items()),
    ]


def _metadata(name: str) -> JSON:
    return {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}


def _role(name: str, rules: list[JSON]) -> JSON:
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": _metadata(name), "rules": rules}


def _binding(name: str, groups: tuple[str, ...]) -> JSON:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups],
    }
