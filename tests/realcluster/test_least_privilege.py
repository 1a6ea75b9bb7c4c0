"""The operator without the rights to apply releases, on real nodes: installed, a preflight, removed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from bench.releases_world import events
from msgspec.structs import replace
from tests.install.listing import settled
from tests.realcluster.cluster import RealCluster
from tests.realcluster.installing import CONFIG
from tests.realcluster.kube import PODS, Kube
from tests.realcluster.releases import CHANNEL, ReleaseWorld

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Forbidden
from kubekit.kube.client_sync import SyncClient
from runup.process.names import NOBODY, OPERATOR_NAMESPACE

JSON = dict[str, Any]
OPERATOR = "k8s-app=cluster-version-operator"
PREFLIGHT = "app=cluster-version-operator-preflight"
ACCOUNT = f"system:serviceaccount:{OPERATOR_NAMESPACE}:"
RUNS, TARGET = "4.9.8", "4.9.9"
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)


@pytest.fixture
def images(release_world: ReleaseWorld) -> dict[str, str]:
    """Two releases by digest, which no other test knows."""
    return {RUNS: release_world.release(RUNS).image, TARGET: release_world.release(TARGET, previous=(RUNS,)).image}


@pytest.fixture
def before(kube: Kube) -> Iterator[set[str]]:
    """The names of all objects that were there; whatever the test left is removed all the same."""
    yield set(settled(kube.client))


def typed(cluster: RealCluster, *words: str) -> subprocess.CompletedProcess[str]:
    """`runup WORD...`"""
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "runup", *words], env=environ, capture_output=True, text=True, check=False, timeout=600
    )


def test_without_the_rights_to_apply(
    cluster: RealCluster, kube: Kube, release_world: ReleaseWorld, images: dict[str, str], before: set[str]
) -> None:
    """No pod is root or has a folder of its node, nothing that they ask for is refused, and nothing is left."""
    log = cluster.plane.audit_log
    since = log.stat().st_size
    done = typed(cluster, "install", "operator", "--least-privilege", "--image", images[RUNS], "--wait")
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        (pod,) = kube.running(OPERATOR_NAMESPACE, OPERATOR)
        _is_restricted(pod)
        _may_not_apply(cluster)
        spec = {"channel": CHANNEL, "upstream": f"{release_world.url}/graph"}
        kube.patch(CONFIG, "ClusterVersion", "version", {"spec": spec})
        kube.until(lambda: _offered(kube), f"{TARGET} is offered")
        done = typed(
            cluster,
            *("upgrade", "--preflight", f"--to={TARGET}", "--allow-not-recommended", "--force"),
            *("--wait", "--timeout=10m"),
        )
        assert done.returncode in (0, 2, 3), (
            done.stdout + done.stderr + kube.logs(OPERATOR_NAMESPACE, pod["metadata"]["name"])
        )
        _is_restricted(*kube.pods(OPERATOR_NAMESPACE, PREFLIGHT))
        # Before its roles go: then a process that ends is refused what it asks for last.
        ours = [event for event in events(log, since) if event["user"]["username"].startswith(ACCOUNT)]
    finally:
        removed = typed(cluster, "uninstall", "operator", "--definitions", "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert {each["verb"] for each in ours} >= {"list", "watch", "patch"}
    # In a namespace that is not there nobody can be given a right, and there is nothing to read.
    there = {each["metadata"]["name"] for each in kube.listed("v1", "Namespace")} | {"", OPERATOR_NAMESPACE}
    refused = {
        (each["user"]["username"], each["requestURI"])
        for each in ours
        if each["responseStatus"]["code"] == 403 and each.get("objectRef", {}).get("namespace", "") in there
    }
    assert refused == set(), sorted(refused)
    assert {name for name in settled(kube.client) if name not in before} == set()


def _offered(kube: Kube) -> bool:
    status = kube.get(CONFIG, "ClusterVersion", "version").get("status", {})
    updates = [
        *(status.get("availableUpdates") or ()),
        *(each["release"] for each in status.get("conditionalUpdates", ())),
    ]
    return TARGET in [each["version"] for each in updates]


def _is_restricted(*pods: JSON) -> None:
    for pod in pods:
        assert [each for each in pod["spec"]["volumes"] if "hostPath" in each] == []
        for container in pod["spec"]["containers"]:
            security = {**pod["spec"]["securityContext"], **container["securityContext"]}
            assert security["runAsNonRoot"] is True
            assert security["runAsUser"] == NOBODY
    assert pods


def _may_not_apply(cluster: RealCluster) -> None:
    """What only an administrator may write, the server refuses to the operator's account."""
    user = f"{ACCOUNT}cluster-version-operator"
    known = config.load(str(cluster.kubeconfig))
    with SyncClient(replace(known, headers=(("Impersonate-User", user),))) as client:
        for call in (
            calls.create(SECRETS, {"metadata": {"name": "x", "namespace": OPERATOR_NAMESPACE}}),
            calls.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "default"}}),
            calls.delete(PODS, "x", "kube-system"),
        ):
            with pytest.raises(Forbidden):
                client.send(call)
