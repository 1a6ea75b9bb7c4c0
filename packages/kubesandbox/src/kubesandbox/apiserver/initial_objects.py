"""The objects that every new cluster has: the first namespaces, roles, bindings and priority classes.

The roles and their bindings are Kubernetes' own (`tools/generate_bootstrap_rbac.py`), and OpenShift's `cluster-reader`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubesandbox.apiserver import kubernetes_version, version_tables
from kubesandbox.apiserver.objects.strategies import SERVER_ADDRESS
from kubesandbox.apiserver.validation.policies import SYSTEM_CLASSES

JSON = dict[str, Any]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_BOOTSTRAP = Path(__file__).parent / "access" / "bootstrap_rbac.json"
# OpenShift's cluster-reader reads everything but Secrets; RBAC rules only add, so the core group is listed in full.
_READ_CORE = [
    "configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "nodes/status", "persistentvolumeclaims",
    "persistentvolumes", "pods", "pods/log", "pods/status", "replicationcontrollers", "resourcequotas",
    "serviceaccounts", "services",
]  # fmt: skip
_READ_GROUPS = [
    "apps", "batch", "policy", "networking.k8s.io", "discovery.k8s.io", "coordination.k8s.io",
    "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "apiextensions.k8s.io",
    "apiregistration.k8s.io", "admissionregistration.k8s.io", "events.k8s.io", "config.openshift.io",
    "apiserver.openshift.io", "machineconfiguration.openshift.io",
]  # fmt: skip


def initial_objects() -> list[JSON]:
    """Returns the objects that are created at start if they are missing."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    # The two priority classes of the system's own pods (k8s.io/kubernetes/pkg/apis/scheduling).
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in SYSTEM_CLASSES.items()
    ]
    roles = kubernetes_version.table("rbac", version_tables.parse_rbac(_BOOTSTRAP.read_bytes()))
    return [*namespaces, *roles.values(), cluster_reader(), *classes]


def cluster_reader() -> JSON:
    """Returns OpenShift's ClusterRole that reads everything but Secrets."""
    read = {"verbs": ["get", "list", "watch"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "cluster-reader", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": [
            {"apiGroups": [""], "resources": _READ_CORE, **read},
            {"apiGroups": _READ_GROUPS, "resources": ["*"], **read},
        ],
    }


def of_server(host: str, port: int, ca: bytes) -> list[JSON]:
    """Returns the Service `kubernetes` and its endpoints, by which a server lets pods find it, and its authority (PEM).

    As pkg/controlplane/controller/{kubernetesservice,clusterauthenticationtrust} and pkg/controlplane/reconcilers write
    them.
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
    authentication = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": authentication, "data": {"client-ca-file": ca.decode()}},
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
