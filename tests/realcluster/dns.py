"""CoreDNS in the cluster, as a Deployment behind the Service that every pod's resolver names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.realcluster import build
from tests.realcluster.kube import metadata

from kubekit.oci.images import Execution
from runup.release.control.image_build import BuiltImage, build_image, layer_of

JSON = dict[str, Any]
NAMESPACE = "kube-system"
NAME = "coredns"
LABELS = {"k8s-app": "kube-dns"}
PORT = 1053
COREFILE = f""".:{PORT} {{
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa
    cache 5
}}
"""


def image(layout: Path) -> BuiltImage:
    """CoreDNS alone."""
    program = (build.dns() / NAME).read_bytes()
    layer = layer_of({NAME: program}, frozenset({NAME}))
    return build_image(layout, [layer], tag=NAME, config=Execution(entrypoint=(f"/{NAME}",)))


def objects(pullspec: str, address: str) -> Iterator[JSON]:
    """What runs it, with the rights that its plugin `kubernetes` asks for."""
    about = metadata(NAME, NAMESPACE)
    lists = {"verbs": ["list", "watch"]}
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], **lists},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], **lists},
    ]
    rbac = "rbac.authorization.k8s.io"
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": metadata(NAME), "rules": rules}
    yield {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(NAME),
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"Corefile": COREFILE}}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": _deployment(pullspec)}
    ports = [
        {"name": "dns", "port": 53, "targetPort": PORT, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "targetPort": PORT, "protocol": "TCP"},
    ]
    service = {"clusterIP": address, "selector": LABELS, "ports": ports}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata("kube-dns", NAMESPACE), "spec": service}


def _deployment(pullspec: str) -> JSON:
    container = {
        "name": NAME,
        "image": pullspec,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        # It is what the cluster's DNS asks others for.
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    return {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
