"""Pods that a drain takes along: together, slowly or for good."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import pod_json


def stateful(name: str, *, on: str = "worker-0", grace_s: int = 30, metadata: JSON | None = None, **more: Any) -> JSON:
    """A pod of a StatefulSet, or of `owner`; `phase` and further fields are those of its status."""
    about = {"owner": more.pop("owner", "StatefulSet"), "phase": more.pop("phase", "Running"), "metadata": metadata}
    return pod_json(name, on=on, spec={"terminationGracePeriodSeconds": grace_s}, status=more, **about)


GOING = {"metadata": {"deletionTimestamp": "2026-01-14T09:59:59Z"}}


TOGETHER: dict[str, tuple[list[JSON], bool]] = {
    "two on one node": ([stateful("a"), stateful("b")], True),
    "two on two nodes": ([stateful("a"), stateful("b", on="worker-1")], False),
    "one": ([stateful("a")], False),
    "a third that ended elsewhere": (
        [stateful("a"), stateful("b"), stateful("c", on="worker-1", phase="Failed")],
        True,
    ),
    "a third that succeeded elsewhere": (
        [stateful("a"), stateful("b"), stateful("c", on="worker-1", phase="Succeeded")],
        True,
    ),
    "a third that ends elsewhere": (
        [stateful("a"), stateful("b"), stateful("c", on="worker-1", **GOING)],
        True,
    ),
    "a third that has no node yet": ([stateful("c", on=""), stateful("a"), stateful("b")], False),
    "of a DaemonSet": ([stateful("a", owner="DaemonSet"), stateful("b", owner="DaemonSet")], False),
    "of nobody, and two on one node": ([stateful("0", owner=""), stateful("a"), stateful("b")], True),
    "of a DaemonSet, and two on one node": (
        [stateful("0", owner="DaemonSet"), stateful("a"), stateful("b")],
        True,
    ),
}


@pytest.mark.parametrize(("pods", "applies"), TOGETHER.values(), ids=TOGETHER.keys())
def test_workloads_on_one_node(pods: list[JSON], applies: bool) -> None:
    """By the pods that run, or will; where they are all on one, a drain takes all."""
    assert len(messages_of("SpreadOnOneNode", *pods)) == applies


ONE_NODE: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"controlPlaneTopology": "SingleReplica", "infrastructureTopology": "SingleReplica"},
}


DRAINS: dict[str, list[JSON]] = {
    "SpreadOnOneNode": [stateful("a"), stateful("b")],
    "LongTerminationGrace": [stateful("a", grace_s=3601)],
    "UnmanagedPods": [stateful("a", owner="")],
}


@pytest.mark.parametrize("name", DRAINS)
def test_one_node_alone_is_not_drained(name: str) -> None:
    """So nothing that a drain would do is reported."""
    assert len(messages_of(name, *DRAINS[name])) == 1
    assert messages_of(name, ONE_NODE, *DRAINS[name]) == []


@pytest.mark.parametrize(("grace_s", "applies"), [(3600, False), (3601, True)])
def test_how_long_a_pod_may_take_to_end(grace_s: int, applies: bool) -> None:
    """As long as a drain waits."""
    assert bool(messages_of("LongTerminationGrace", stateful("a", grace_s=grace_s))) is applies


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(stateful("a", owner="", on=""), id="it has no node"),
        pytest.param(stateful("a", owner="", phase="Succeeded"), id="it has ended"),
        pytest.param(stateful("a", owner="", **GOING), id="it ends"),
        pytest.param(stateful("a"), id="it has an owner"),
        pytest.param(stateful("a", owner="", metadata={"namespace": "openshift-etcd"}), id="it is the platform's"),
    ],
)
def test_a_pod_that_nobody_loses(one: JSON) -> None:
    """No drain takes it, or somebody brings it back."""
    assert messages_of("UnmanagedPods", one) == []


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
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": "1", "controller": True}]
    meta = {"name": f"{app}-{owner}", "namespace": "shop", "labels": {"app": app}, "ownerReferences": owners}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }


SYNC_FAILED = {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "m"}]}
SYNC_FAILED_LONG = {
    "disruptionsAllowed": 0,
    "conditions": [{**SYNC_FAILED["conditions"][0], "lastTransitionTime": "2026-01-14T08:00:00Z"}],
}


def of_machine(budget: JSON) -> JSON:
    """The budget, as KubeVirt makes it for a virtual machine."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "a", "uid": "1"}
    return {**budget, "metadata": {**budget["metadata"], "ownerReferences": [owner]}}


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
        pytest.param(
            (budget("a", **SYNC_FAILED_LONG), owned("a", "ReplicaSet")),
            ["PodDisruptionBudgetBlocksDrain"],
            id="not computed for long, of a ReplicaSet",
        ),
        pytest.param(
            (budget("a", **SYNC_FAILED_LONG), owned("b", "ReplicaSet")),
            ["PodDisruptionBudgetBlocksDrainUnknown"],
            id="not computed for long, of no pod",
        ),
        pytest.param(
            (of_machine(budget("a")), owned("a", "VirtualMachineInstance")), [], id="of a virtual machine, which moves"
        ),
    ],
)
def test_budgets_over_pods_that_no_drain_moves(objects: tuple[JSON, ...], found: list[str]) -> None:
    """They block nothing."""
    assert [name for name, *_ in findings("PodDisruptionBudgetBlocksDrain", *objects)] == found


BROKEN = {"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
CREATED = {"metadata": {"creationTimestamp": "2026-01-14T08:00:00Z"}}
USED_UP = {"expectedPods": 2, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}


def pdb(**status: Any) -> JSON:
    """A budget over the pods of the shop."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, **status},
    }


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param((pdb(**USED_UP), stateful("a", **READY), stateful("b", **BROKEN)), True, id="a pod crashes"),
        pytest.param(
            (pdb(**USED_UP), stateful("a", **READY), stateful("b", on="", **{**CREATED, "phase": "Pending"})),
            True,
            id="a pod finds no node",
        ),
        pytest.param((pdb(**USED_UP), stateful("a", **READY), stateful("b")), False, id="a pod is about to be ready"),
        pytest.param(
            (pdb(**{**USED_UP, "disruptionsAllowed": 1}), stateful("a", **READY), stateful("b", **BROKEN)),
            False,
            id="room is left",
        ),
        pytest.param(
            (pdb(**{**USED_UP, "desiredHealthy": 2}), stateful("a", **READY), stateful("b", **BROKEN)),
            False,
            id="it never allows one: another risk",
        ),
        pytest.param(
            (
                pdb(**USED_UP),
                stateful("a", owner="DaemonSet", **READY),
                stateful("b", owner="DaemonSet", **BROKEN),
            ),
            False,
            id="no drain moves the healthy one",
        ),
    ],
)
def test_a_budget_that_broken_pods_use_up(objects: tuple[JSON, ...], found: bool) -> None:
    """It lets no healthy pod go, though it would if all were healthy."""
    told_of = [name for name, *_ in findings("PodDisruptionBudgetPods", *objects)]
    assert told_of == ["PodDisruptionBudgetSpent"] * found
