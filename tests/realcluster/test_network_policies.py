"""Our components under the NetworkPolicies that come with them: they work, and what no policy allows is refused.

The engine is a stand-in, tests/realcluster/policies.py; docs/contributing/real-cluster.md says why.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from tests.realcluster import images
from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube
from tests.realcluster.policies import PolicyEngine
from tests.realcluster.test_nodes import web

API = "10.0.0.1"
HEALTH, WEB = 8081, 8080
_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)"


@dataclass(frozen=True)
class Component:
    """A component; whether its policy lets it connect to any port, as registries may have any."""

    name: str
    namespace: str
    labels: str
    pods: int
    anywhere: bool


COMPONENTS = (
    Component(
        "update-status",
        "openshift-update-status-controller",
        "app=update-status-controller",
        1,
        anywhere=False,
    ),
    Component(
        "kernel-modules",
        "openshift-kernel-module-preflight",
        "app=kernel-module-preflight",
        2,
        anywhere=True,
    ),
)


@pytest.fixture(scope="module")
def image(cluster: RealCluster) -> str:
    """The operator's image of this checkout, by digest."""
    return cluster.registry.push(images.operator(cluster.folder / "own"), "runup")


def typed(cluster: RealCluster, *words: str) -> None:
    """`runup WORD...`, which must succeed."""
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "runup", *words], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def connects(cluster: RealCluster, source: str, target: str, port: int) -> bool:
    """Whether a connection from the pod with the address `source` is made; refused and unanswered are not."""
    for node in cluster.nodes.values():
        for name in node.run("ls", "/run/netns", check=False).split():
            inside = ("nsenter", f"--net=/run/netns/{name}", "--")
            if f" {source}/" in node.run(*inside, "ip", "-o", "addr", check=False):
                said = node.run(
                    *inside, sys.executable, "-c", f"{_CONNECT}; print('made')", target, str(port), check=False
                )
                return "made" in said
    raise AssertionError(f"no pod has {source}")


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda each: each.name)
def test_a_component_under_its_policies(
    cluster: RealCluster, kube: Kube, namespace: str, image: str, python_image: str, component: Component
) -> None:
    """It is installed, leads and continues leading; others do not reach it, nor it others."""
    kube.apply(*web(namespace, python_image))
    other = kube.running(namespace, "app=web", count=2)[0]["status"]["podIP"]
    try:
        with PolicyEngine(cluster) as engine:
            typed(cluster, "install", component.name, "--image", image, "--wait")
            pods = kube.running(component.namespace, component.labels, component.pods)
            addresses = {pod["status"]["podIP"] for pod in pods}
            kube.until(lambda: addresses <= engine.refused_pods, "the policies are in force")
            renewed = _renewed(kube, component)
            kube.until(lambda: _renewed(kube, component) > renewed, "the lease is renewed")
            for own in addresses:
                assert connects(cluster, own, API, 443)
                assert connects(cluster, own, other, WEB) is component.anywhere
                assert not connects(cluster, other, own, HEALTH)
        # Without the engine nothing is refused: it was the policies.
        for own in addresses:
            assert connects(cluster, own, other, WEB)
            assert connects(cluster, other, own, HEALTH)
    finally:
        typed(cluster, "uninstall", component.name, "--definitions", "--yes")


def _renewed(kube: Kube, component: Component) -> str:
    """When the leader renewed its Lease; "" before there is one."""
    leases = kube.listed("coordination.k8s.io/v1", "Lease", component.namespace)
    return max((str(each["spec"].get("renewTime", "")) for each in leases), default="")
