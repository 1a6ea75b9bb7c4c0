"""Quotas of amounts that a pod must declare: pods that were made before the quota are not recreated."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import context


def quota(*hard: str, **spec: object) -> JSON:
    """A quota with room."""
    status = {"hard": dict.fromkeys(hard, "8Gi"), "used": dict.fromkeys(hard, "1Gi")}
    meta = {"name": "cap", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec, "status": status}


def pod(resources: dict[str, Any] | None = None, owner: str = "ReplicaSet", **spec: object) -> JSON:
    """A pod with one container."""
    owners = [{"kind": owner, "name": "web-1", "controller": True}] if owner else []
    meta = {"name": "web-1-x", "namespace": "shop", "ownerReferences": owners}
    containers = [{"name": "c", "image": "i", "resources": resources or {}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": "n", "containers": containers, **spec},
        "status": {"phase": "Running"},
    }


def limit_range(**defaults: object) -> JSON:
    """Defaults of containers."""
    meta = {"name": "defaults", "namespace": "shop"}
    limits = [{"type": "Container", **defaults}]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}


LIMITED, REQUESTED = {"limits": {"memory": "1Gi"}}, {"requests": {"memory": "1Gi"}}


@pytest.mark.parametrize(
    ("objects", "is_told"),
    [
        pytest.param([quota("limits.memory"), pod(REQUESTED)], True, id="no limit"),
        pytest.param([quota("limits.memory"), pod(LIMITED)], False, id="a limit"),
        pytest.param([quota("memory"), pod()], True, id="no request"),
        pytest.param([quota("requests.memory"), pod(LIMITED)], False, id="a limit is the request, too"),
        pytest.param([quota("requests.cpu"), pod(LIMITED)], True, id="a request of another resource"),
        pytest.param([quota("requests.storage"), pod()], False, id="a quota of storage"),
        pytest.param([quota("limits.memory", scopes=["Terminating"]), pod()], False, id="a quota of some pods"),
        pytest.param(
            [quota("limits.memory", scopes=["NotTerminating", "NotBestEffort"]), pod(REQUESTED)],
            True,
            id="a quota of pods that run on",
        ),
        pytest.param(
            [quota("limits.memory", scopes=["NotBestEffort"]), pod()], False, id="a pod without any amount, elsewhere"
        ),
        pytest.param(
            [quota("limits.memory", scopes=["NotTerminating"]), pod(owner="Job")],
            False,
            id="a pod that may have an end",
        ),
        pytest.param([quota("limits.memory"), pod(owner="")], False, id="a pod that nothing makes again"),
        pytest.param([quota("limits.memory"), pod(owner="DaemonSet")], False, id="a pod that is not evicted"),
        pytest.param([quota("limits.memory"), limit_range(default={"memory": "1Gi"}), pod()], False, id="a default"),
        pytest.param(
            [quota("limits.memory"), limit_range(defaultRequest={"memory": "1Gi"}), pod()], True, id="another default"
        ),
    ],
)
def test_what_a_pod_must_declare(objects: list[JSON], is_told: bool) -> None:
    """pkg/quota/v1/evaluator/core/pods.go, Constraints."""
    shown = [name for name, *_ in findings("QuotaFull", *objects, to=context())]
    assert shown == ["QuotaFull-Demands"] * is_told


def test_a_pod_with_amounts_of_its_own() -> None:
    """With resources of the whole pod, containers need none (PodLevelResources)."""
    whole = pod()
    whole["spec"]["resources"] = LIMITED
    assert findings("QuotaFull", quota("limits.memory"), whole, to=context()) == []
