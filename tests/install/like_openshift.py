"""What makes a server look like OpenShift to whoever installs on it: its definitions, namespaces and ClusterVersion."""

from __future__ import annotations

from typing import Any

from tests.documents import document
from tests.servers import CRD, CRDS, eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient

NAMESPACE = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
NODE = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
PRIORITY = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)
ROLE = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
CLUSTER_VERSION = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
OPERATOR = Resource(
    group="config.openshift.io", version="v1", kind="ClusterOperator", plural="clusteroperators", namespaced=False
)
KEPT = (
    "0000_00_cluster-version-operator_01_clusterversions-CustomNoUpgrade.crd.yaml",
    "0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
    "0000_10_config-operator_01_featuregates.crd.yaml",
    "0000_50_cluster-monitoring-operator_01_prometheusrules.crd.yaml",
    "0000_50_cluster-monitoring-operator_01_servicemonitors.crd.yaml",
)
CONSTRAINTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "securitycontextconstraints.security.openshift.io"},
    "spec": {
        "group": "security.openshift.io",
        "names": {"kind": "SecurityContextConstraints", "plural": "securitycontextconstraints"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def furnish(client: SyncClient) -> None:
    """Makes all of it; the ClusterVersion is that of a cluster of 5.0.0, with one operator."""
    for definition in (*(document(CRDS / name) for name in KEPT), CONSTRAINTS):
        client.send(calls.create(CRD, definition))
    for name in ("machine-config-operator", "monitoring", "config-managed", "cluster-version-operator"):
        _create(client, NAMESPACE, f"openshift-{name}")
    for node in client.listing_raw(NODE).items:
        labels = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
        client.send(calls.merge_patch(NODE, node["metadata"]["name"], labels))
    _create(client, PRIORITY, "openshift-user-critical", value=1000000000)
    for name in ("cluster-monitoring-view", "cluster-reader"):
        try:
            client.send(calls.get_raw(ROLE, name))
        except NotFound:
            _create(client, ROLE, name, rules=[])
    eventually(lambda: _served(client, CLUSTER_VERSION) and _served(client, OPERATOR), "their kinds are served")
    spec = {"clusterID": "4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b7", "channel": "stable-5.0"}
    desired = {"version": "5.0.0", "image": "quay.io/release@sha256:" + "0" * 64}
    done = {"state": "Completed", "verified": False, "startedTime": "2026-11-01T00:00:00Z", **desired}
    history = [{**done, "completionTime": "2026-11-01T01:00:00Z"}]
    condition = {"lastTransitionTime": "2026-11-01T00:00:00Z", "reason": "AsExpected", "message": ""}
    shown = {"Available": "True", "Failing": "False", "Progressing": "False"}
    conditions = [{**condition, "type": name, "status": value} for name, value in shown.items()]
    status = {
        "availableUpdates": None,
        "conditions": conditions,
        "desired": desired,
        "history": history,
        "observedGeneration": 1,
        "versionHash": "x",
    }
    _with_status(client, CLUSTER_VERSION, name="version", spec=spec, status=status)
    versions = [{"name": "operator", "version": "5.0.0"}]
    _with_status(client, OPERATOR, name="etcd", spec={}, status={"conditions": conditions[:1], "versions": versions})


def _create(client: SyncClient, resource: Resource, name: str, **content: Any) -> dict[str, Any]:
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **content}
    return client.send(calls.create(resource, obj))


def _with_status(client: SyncClient, resource: Resource, name: str, spec: Any, status: Any) -> None:
    made = _create(client, resource, name, spec=spec)
    client.send(calls.replace(resource, {**made, "status": status}, subresource="status"))


def _served(client: SyncClient, resource: Resource) -> bool:
    try:
        return resource in client.send(calls.list_kinds(resource.api_version))
    except NotFound:
        return False
