"""What is read from an audit log: rows as a kube-apiserver of 1.34 wrote them, shortened."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.realcluster import drain_record

JSON = dict[str, Any]
SCHEDULER, KUBELET, ADMIN = "system:kube-scheduler", "system:node:node-1", "kubernetes-admin"
STATEFUL_SETS = "system:serviceaccount:kube-system:statefulset-controller"
BEGUN = datetime(2026, 11, 24, 1, 2, tzinfo=UTC)
FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable"


def event(
    verb: str,
    resource: str = "pods/",
    *,
    user: str = ADMIN,
    code: int = 200,
    name: str = "elder-1",
    namespace: str | None = "drained-2",
    at: float = 1.0,
    **more: Any,
) -> JSON:
    """An event of the log, `resource` with its subresource."""
    kind, _, sub = resource.partition("/")
    about = {"resource": kind, "subresource": sub, "name": name, "namespace": namespace}
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "objectRef": {key: value for key, value in about.items() if value},
        "responseStatus": {"code": code, **more.pop("status", {})},
        "stageTimestamp": (BEGUN + timedelta(seconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        **more,
    }


def pod_with_condition(condition: str, status: str, message: str = "", **metadata: Any) -> JSON:
    """A pod with one condition, as an answer has it."""
    said = {"type": condition, "status": status, "message": message}
    return {"metadata": {"name": "elder-1", **metadata}, "status": {"conditions": [said]}}


CAUSES = {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget elder-0 needs 2 healthy pods"}]}
EVENTS = {
    "an eviction": (event("create", "pods/eviction", code=201), "elder-1: evicted"),
    "a refused one": (
        event("create", "pods/eviction", code=429, status={"message": "Cannot evict", "details": CAUSES}),
        "elder-1: not evicted: The disruption budget elder-0 needs 2 healthy pods",
    ),
    "one that two budgets refuse": (
        event("create", "pods/eviction", code=500, status={"message": "more than one PodDisruptionBudget"}),
        "elder-1: not evicted: more than one PodDisruptionBudget",
    ),
    "a pod of a controller's, which has its name from the server": (
        event("create", code=201, name="", user=STATEFUL_SETS, responseObject={"metadata": {"name": "apple-x7k"}}),
        "apple-x7k: made",
    ),
    "one that a quota refuses": (event("create", code=403, name="", responseObject={}), None),
    "a place": (
        event("create", "pods/binding", user=SCHEDULER, code=201, requestObject={"target": {"name": "node-2"}}),
        "elder-1: placed on node-2",
    ),
    "no place": (
        event(
            "patch",
            "pods/status",
            user=SCHEDULER,
            responseObject=pod_with_condition(
                "PodScheduled", "False", f"{FULL}. no new claims to deallocate, preemption: 0/2"
            ),
        ),
        f"elder-1: no place: {FULL}",
    ),
    "a pod that is ready": (
        event("patch", "pods/status", user=KUBELET, responseObject=pod_with_condition("Ready", "True")),
        "elder-1: ready",
    ),
    "one that is not yet": (
        event("patch", "pods/status", user=KUBELET, responseObject=pod_with_condition("Ready", "False")),
        None,
    ),
    "one that still is while it ends": (
        event(
            "patch",
            "pods/status",
            user=KUBELET,
            responseObject=pod_with_condition("Ready", "True", deletionTimestamp="x"),
        ),
        None,
    ),
    "an end": (event("delete", user=KUBELET), "elder-1: gone"),
    "a deletion by hand": (event("delete"), "elder-1: deleted by kubernetes-admin"),
    "one by a controller": (event("delete", user=STATEFUL_SETS), "elder-1: deleted by statefulset-controller"),
    "one for a pod of higher priority": (event("delete", user=SCHEDULER), "elder-1: preempted"),
    "one of a pod that is not there": (event("delete", code=404), None),
    "a cordon": (
        event("patch", "nodes/", name="node-1", namespace=None, requestObject={"spec": {"unschedulable": True}}),
        "node-1: cordoned",
    ),
    "its end": (
        event("patch", "nodes/", name="node-1", namespace=None, requestObject={"spec": {"unschedulable": None}}),
        "node-1: takes pods again",
    ),
    "a node's label": (
        event("patch", "nodes/", name="node-1", namespace=None, requestObject={"metadata": {"labels": {}}}),
        None,
    ),
    "a pod of somebody else's": (event("delete", user=KUBELET, namespace="kube-system"), None),
    "a request that is not answered yet": ({**event("delete", user=KUBELET), "stage": "ResponseStarted"}, None),
    "a list": (event("list", name=""), None),
}


def step_lines(*events: JSON) -> list[str]:
    """The lines that those events make."""
    return [step.after(BEGUN) for step in drain_record.steps(map(json.dumps, events), "drained-2")]


@pytest.mark.parametrize(("audited", "expected"), EVENTS.values(), ids=EVENTS)
def test_what_an_event_says(audited: JSON, expected: str | None) -> None:
    """A line of what changed something, nothing of the rest."""
    assert step_lines(audited) == ([f"  1.000 s  {expected}"] if expected else [])


def test_the_order_is_the_servers_and_what_is_said_again_is_left_out() -> None:
    """An eviction that is tried each tenth of a second is refused once, until something else has happened."""
    refused = [event("create", "pods/eviction", code=429, at=at, status={"message": "no"}) for at in (0.2, 0.1, 0.5)]
    gone = event("delete", user=KUBELET, name="elder-2", at=0.3)
    allowed = event("create", "pods/eviction", code=201, at=0.6)
    assert step_lines(allowed, *refused, gone) == [
        "  0.100 s  elder-1: not evicted: no",
        "  0.300 s  elder-2: gone",
        "  0.600 s  elder-1: evicted",
    ]
