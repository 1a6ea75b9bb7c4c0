"""A preflight as a Job on real nodes, of a cluster that has no ClusterVersion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.realcluster import images
from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube
from tests.servers import eventually

from kubekit.api.conditions import status_of
from kubekit.api.workloads_v1 import Job
from kubekit.kube import config
from kubekit.kube.client_sync import SyncClient
from runup.preflight.control.cluster_runs import labelled_metadata
from runup.preflight.decide.cluster_run import KINDS, NAMESPACE, RUN_LABEL
from runup.preflight.decide.schedule import SCHEDULED_LABEL

JSON = dict[str, Any]
UPDATE = ("--from", "5.0.0", "--to", "5.1.0")


@pytest.fixture(scope="module")
def image(cluster: RealCluster) -> str:
    """The operator's image of this checkout, by digest."""
    return cluster.registry.push(images.operator(cluster.folder / "own"), "runup")


def typed(cluster: RealCluster, *words: str) -> subprocess.CompletedProcess[str]:
    """`runup preflight` as typed."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "runup", "preflight", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    print(f"\n{' '.join(words)}: {done.returncode} in {time.monotonic() - began:.1f} s\n{done.stderr}", file=sys.stderr)
    return done


@pytest.fixture(scope="module")
def client(cluster: RealCluster) -> Iterator[SyncClient]:
    """The administrator's."""
    with SyncClient(config.load(str(cluster.kubeconfig))) as made:
        yield made


def left(client: SyncClient) -> list[tuple[str, str]]:
    """The kinds and names of a run's objects that are there."""
    return [(kind.kind, found["name"]) for kind in KINDS for found in labelled_metadata(client, kind, RUN_LABEL)]


def test_a_run(cluster: RealCluster, client: SyncClient, image: str) -> None:
    """The pod is restricted, its report is shown and kept, and nothing else is left."""
    done = typed(cluster, "run", "--in-cluster", "--image", image, *UPDATE, "-o", "json")
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["source"], found["target"]) == ("5.0.0", "5.1.0")
    results = Counter(check["result"] for check in found["checks"])
    print(dict(results), file=sys.stderr)
    assert results["Clear"] > results["Unknown"]
    assert "NodeCordoned" not in [risk["name"] for risk in found["risks"]]
    assert left(client) == []
    shown = typed(cluster, "show", "--in-cluster", "-o", "json")
    assert shown.returncode == done.returncode


def test_an_image_that_nobody_has(cluster: RealCluster, client: SyncClient, image: str) -> None:
    """In containerd's words, while the command waits."""
    missing = f"{image.partition('@')[0]}@sha256:{'0' * 64}"
    done = typed(cluster, "run", "--in-cluster", "--image", missing, *UPDATE, "--timeout", "15")
    assert done.returncode == 1
    assert done.stderr.count("its image could not be pulled") == 2
    assert left(client) == []


@pytest.fixture
def quota(kube: Kube) -> Iterator[None]:
    """No pod fits in."""
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": NAMESPACE},
            "spec": {"hard": {"pods": "0"}},
        }
    )
    kube.until(
        lambda: kube.get("v1", "ResourceQuota", "none", NAMESPACE).get("status", {}).get("hard"), "the quota counts"
    )
    yield
    kube.delete("v1", "ResourceQuota", "none", NAMESPACE)


@pytest.mark.usefixtures("quota")
def test_a_quota(cluster: RealCluster, client: SyncClient, image: str) -> None:
    """Told at once, and given up soon: only a change helps."""
    done = typed(cluster, "run", "--in-cluster", "--image", image, *UPDATE)
    assert done.returncode == 1
    assert "exceeded quota: none" in done.stderr
    assert left(client) == []


def test_no_node(cluster: RealCluster, kube: Kube, client: SyncClient, image: str) -> None:
    """The scheduler's own words."""
    for node in ("node-1", "node-2"):
        kube.patch("v1", "Node", node, {"spec": {"unschedulable": True}})
    try:
        done = typed(cluster, "run", "--in-cluster", "--image", image, *UPDATE, "--timeout", "12")
    finally:
        for node in ("node-1", "node-2"):
            kube.patch("v1", "Node", node, {"spec": {"unschedulable": None}})
    assert done.returncode == 1
    assert "no node takes the target's pod: 0/2 nodes are available" in done.stderr
    assert left(client) == []


def test_a_schedule(cluster: RealCluster, client: SyncClient, image: str) -> None:
    """The CronJob controller starts it within minutes; its Job ends, and `schedule` says how."""
    done = typed(cluster, "schedule", "--every", "15m", "--to", "5.1.0", "--image", image)
    assert done.returncode == 0

    def ended() -> bool:
        jobs = client.list_all(Job, NAMESPACE, label_selector=SCHEDULED_LABEL)[0]
        return any(status_of(job.status.conditions, end) == "True" for job in jobs for end in ("Complete", "Failed"))

    try:
        eventually(ended, "the first Job has ended", 400)
        shown = typed(cluster, "schedule", "-o", "json")
        assert shown.returncode == json.loads(shown.stdout)["exitCode"]
        assert json.loads(shown.stdout)["failed"] or json.loads(shown.stdout)["last"]
    finally:
        assert typed(cluster, "schedule", "--remove").returncode == 0
    assert [found["name"] for kind in KINDS for found in labelled_metadata(client, kind, SCHEDULED_LABEL)] == []
