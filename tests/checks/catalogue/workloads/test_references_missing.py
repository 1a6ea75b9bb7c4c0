"""Annotations of additional networks that no program can read."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import JSON, messages_of

NETWORKS = "k8s.v1.cni.cncf.io/networks"


def cluster(networks: str) -> tuple[JSON, ...]:
    """A Deployment with a pod, and this annotation in its template."""
    template = {"metadata": {"annotations": {NETWORKS: networks}}, "spec": {}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "template": template},
    }
    owners = [{"kind": "ReplicaSet", "name": "web-6d9f", "controller": True}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-6d9f-x2", "namespace": "shop", "ownerReferences": owners},
        "spec": {"nodeName": "worker-0"},
        "status": {"phase": "Running"},
    }
    return web, pod


@pytest.mark.parametrize(
    ("networks", "is_told"),
    [
        pytest.param('[{"name": "signal"}]', True, id="a network that is not there"),
        pytest.param('[{"name": ', False, id="cut off"),
        pytest.param('[{"name": "\ud800"}]', False, id="half a character"),
        pytest.param('[{"more": ' + "[" * 100_000, False, id="nested too deep"),
    ],
)
def test_networks_that_nobody_can_read(networks: str, is_told: bool) -> None:
    """Multus refuses such a pod today as well."""
    found = messages_of("PodReferencesMissing", *cluster(networks))
    assert ["there is no NetworkAttachmentDefinition shop/signal" in text for text in found] == [True] * is_told
