"""Pods that a drain takes along: together, slowly or for good."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings, told


def pod(name: str, *, on: str = "worker-0", owner: str = "StatefulSet", grace_s: int = 30, **changes: Any) -> JSON:
    """A pod of the shop."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1"}] if owner else []
    metadata = {"name": name, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": owners}
    spec = {"nodeName": on, "terminationGracePeriodSeconds": grace_s}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | changes.pop("metadata", {}),
        "spec": spec,
        "status": {"phase": "Running", **changes},
    }


GOING = {"metadata": {"deletionTimestamp": "2026-01-14T09:59:59Z"}}


TOGETHER: dict[str, tuple[list[JSON], bool]] = {
    "two on one node": ([pod("a"), pod("b")], True),
    "two on two nodes": ([pod("a"), pod("b", on="worker-1")], False),
    "one": ([pod("a")], False),
    "a third that ended elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", phase="Failed")], True),
    "a third that succeeded elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", phase="Succeeded")], True),
    "a third that ends elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", **GOING)], True),
    "a third that has no node yet": ([pod("c", on=""), pod("a"), pod("b")], False),
    "of a DaemonSet": ([pod("a", owner="DaemonSet"), pod("b", owner="DaemonSet")], False),
    "of nobody, and two on one node": ([pod("0", owner=""), pod("a"), pod("b")], True),
    "of a DaemonSet, and two on one node": ([pod("0", owner="DaemonSet"), pod("a"), pod("b")], True),
}


@pytest.mark.parametrize(("pods", "applies"), TOGETHER.values(), ids=TOGETHER.keys())
def test_workloads_on_one_node(pods: list[JSON], applies: bool) -> None:
    """By the pods that run, or will; where they are all on one, a drain takes all."""
    assert len(told("SpreadOnOneNode", *pods)) == applies


ONE_NODE: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"controlPlaneTopology": "SingleReplica", "infrastructureTopology": "SingleReplica"},
}


DRAINS: dict[str, list[JSON]] = {
    "SpreadOnOneNode": [pod("a"), pod("b")],
    "LongTerminationGrace": [pod("a", grace_s=3601)],
    "UnmanagedPods": [pod("a", owner="")],
}


@pytest.mark.parametrize("name", DRAINS)
def test_one_node_alone_is_not_drained(name: str) -> None:
    """So nothing that a drain would do is told."""
    assert len(told(name, *DRAINS[name])) == 1
    assert told(name, ONE_NODE, *DRAINS[name]) == []


@pytest.mark.parametrize(("grace_s", "applies"), [(3600, False), (3601, True)])
def test_how_long_a_pod_may_take_to_end(grace_s: int, applies: bool) -> None:
    """As long as a drain waits."""
    assert bool(told("LongTerminationGrace", pod("a", grace_s=grace_s))) is applies


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(pod("a", owner="", on=""), id="it has no node"),
        pytest.param(pod("a", owner="", phase="Succeeded"), id="it has ended"),
        pytest.param(pod("a", owner="", **GOING), id="it ends"),
        pytest.param(pod("a"), id="it has an owner"),
        pytest.param(pod("a", owner="", metadata={"namespace": "openshift-etcd"}), id="it is the platform's"),
    ],
)
def test_a_pod_that_nobody_loses(one: JSON) -> None:
    """No drain takes it, or somebody brings it back."""
    assert told("UnmanagedPods", one) == []


def budget(name: str, **status: Any) -> JSON:
    """A budget that demands all of its three pods."""
    counted = {"currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3, "disruptionsAllowed": 0}
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": name}}}
    meta = {"name": name, "namespace": "shop"}
    api = "policy/v1"
    return {
        "apiVersion": api,
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": spec,
        "status": counted | status,
    }


def owned(app: str, owner: str) -> JSON:
    """A pod of that application."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": "1"}]
    meta = {"name": f"{app}-{owner}", "namespace": "shop", "labels": {"app": app}, "ownerReferences": owners}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }


SYNC_FAILED = {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "m"}]}


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param((budget("a"), owned("a", "ReplicaSet")), ["PodDisruptionBudgetBlocksDrain"], id="of a ReplicaSet"),
        pytest.param((budget("a"), owned("a", "DaemonSet")), [], id="of a DaemonSet, which no drain moves"),
        pytest.param((budget("a"), owned("a", "Node")), [], id="of the node itself"),
        pytest.param(
            (budget("a"), owned("a", "DaemonSet"), owned("a", "ReplicaSet")),
            ["PodDisruptionBudgetBlocksDrain"],
            id="of both",
        ),
        pytest.param((budget("a"), owned("b", "DaemonSet")), ["PodDisruptionBudgetBlocksDrain"], id="of another one"),
        pytest.param((budget("a", **SYNC_FAILED), owned("a", "DaemonSet")), [], id="not computed, of a DaemonSet"),
        pytest.param(
            (budget("a", **SYNC_FAILED), owned("a", "ReplicaSet")),
            ["PodDisruptionBudgetBlocksDrainUnknown"],
            id="not computed, of a ReplicaSet",
        ),
    ],
)
def test_budgets_over_pods_that_no_drain_moves(objects: tuple[JSON, ...], found: list[str]) -> None:
    """They block nothing."""
    assert [name for name, *_ in findings("PodDisruptionBudgetBlocksDrain", *objects)] == found
