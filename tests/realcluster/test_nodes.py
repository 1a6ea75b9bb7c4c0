"""The cluster is one: what every other test of this folder takes for granted."""

from __future__ import annotations

from typing import Any
from urllib.request import urlopen

from tests.realcluster import dns
from tests.realcluster.cluster import RealCluster, ready
from tests.realcluster.kube import Kube, metadata

JSON = dict[str, Any]
WEB = (
    "busybox mkdir -p /tmp/web; busybox hostname > /tmp/web/index.html; exec python3 -u -m http.server -d /tmp/web 8080"
)


def web(namespace: str, image: str) -> list[JSON]:
    """A server on each node that says its pod's name, and its Service."""
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": image,
        "command": ["/bin/sh", "-c", WEB],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {"containers": [container], "topologySpreadConstraints": [apart], "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    ports = [{"port": 80, "targetPort": 8080}]
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web", namespace), "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("web", namespace),
            "spec": {"selector": labels, "ports": ports},
        },
    ]


def test_a_deployment_runs_on_both_nodes_behind_a_service(
    cluster: RealCluster, kube: Kube, namespace: str, python_image: str
) -> None:
    """Images are pulled, probes are made, logs are read, and kube-proxy spreads what comes to the Service."""
    kube.apply(*web(namespace, python_image))
    pods = kube.running(namespace, "app=web", count=2)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
    for pod in pods:
        assert "Serving HTTP" in kube.logs(namespace, pod["metadata"]["name"])
    address = kube.get("v1", "Service", "web", namespace)["spec"]["clusterIP"]
    names = {pod["metadata"]["name"] for pod in pods}
    answered: set[str] = set()

    def ask() -> bool:
        with urlopen(f"http://{address}/", timeout=10) as response:
            answered.add(response.read().decode().strip())
        return answered == names

    kube.until(ask, "both pods answer for the Service")


def test_a_pod_knows_services_by_their_names(kube: Kube, namespace: str, python_image: str) -> None:
    """By the cluster's DNS, from whichever node."""
    kube.running(dns.NAMESPACE, "k8s-app=kube-dns")
    kube.apply(*web(namespace, python_image))
    kube.running(namespace, "app=web", count=2)
    ask = f"until busybox wget -qO- http://web.{namespace}.svc.cluster.local/; do busybox sleep 1; done"
    container = {"name": "ask", "image": python_image, "command": ["/bin/sh", "-c", ask]}
    spec = {"containers": [container], "restartPolicy": "Never"}
    kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("ask", namespace), "spec": spec})
    kube.until(
        lambda: kube.get("v1", "Pod", "ask", namespace)["status"].get("phase") == "Succeeded", "the name is resolved"
    )
    assert kube.logs(namespace, "ask").splitlines()[-1].startswith("web-")


def test_a_node_that_loses_its_power_comes_back_with_its_pods(
    cluster: RealCluster, kube: Kube, namespace: str, python_image: str
) -> None:
    """Containers are started again in the same pods, as after a reboot."""
    kube.apply(*web(namespace, python_image))
    before = {pod["spec"]["nodeName"]: pod for pod in kube.running(namespace, "app=web", count=2)}
    cluster.nodes["node-2"].power_off()
    kube.until(lambda: not ready(kube.get("v1", "Node", "node-2")), "node-2 is not Ready")
    cluster.boot("node-2")
    kube.until(lambda: ready(kube.get("v1", "Node", "node-2")), "node-2 is Ready")
    name = before["node-2"]["metadata"]["name"]

    def restarted() -> bool:
        status = kube.get("v1", "Pod", name, namespace)["status"]
        containers = status.get("containerStatuses", [])
        return all(each["ready"] and each["restartCount"] > 0 for each in containers) and bool(containers)

    kube.until(restarted, "the pod of node-2 runs again")
    other = kube.get("v1", "Pod", before["node-1"]["metadata"]["name"], namespace)
    assert other["status"]["containerStatuses"][0]["restartCount"] == 0
