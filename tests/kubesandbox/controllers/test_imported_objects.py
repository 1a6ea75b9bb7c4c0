"""Objects out of a dump are stored as they were, and no controller touches them or makes anything of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.few_or_many import first_and_rest
from tests.kubesandbox.controllers import real
from tests.kubesandbox.controllers.conftest import Cluster

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeNode, WholePod
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import ManualClock
from kubesandbox.controllers.owned_pods import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS
from kubesandbox.controllers.scheduler import Scheduler
from runup.sandbox.setup import scenario_objects as imports

JSON = dict[str, Any]
BUDGETS = Resource(
    group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
)
THEN = "2023-11-03T17:26:54Z"
LABELS = {"app": "shop"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "shop"}]}}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "elsewhere", "controller": True}
COUNTS = {"replicas": 3, "readyReplicas": 2, "observedGeneration": 7}
BLOCKED = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
SELECTOR = {"selector": {"matchLabels": LABELS}}

pytestmark = pytest.mark.skipif(bool(real.PROGRAM), reason="Kubernetes' own controllers know no imported objects")


def imported(resource: Resource, spec: JSON, status: JSON, **metadata: Any) -> JSON:
    """An object as the importer sends it."""
    named = {"name": "old", "namespace": "default", "creationTimestamp": THEN, "labels": dict(LABELS)}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**named, **metadata}}
    return imports.mark_imported({**obj, "spec": spec, "status": status})


ROWS = {
    "a budget that blocks": (BUDGETS, {"minAvailable": 1, **SELECTOR}, BLOCKED, {"generation": 1}),
    "a deployment": (DEPLOYMENTS, {"replicas": 3, **SELECTOR, "template": TEMPLATE}, COUNTS, {"generation": 7}),
    "a replica set": (REPLICA_SETS, {"replicas": 3, **SELECTOR, "template": TEMPLATE}, COUNTS, {"generation": 7}),
    "a job that runs": (
        JOBS,
        {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},  # type: ignore[dict-item]
        {"active": 1, "startTime": THEN},
        {},
    ),
    "a pod that no node took": (PODS, TEMPLATE["spec"], {"phase": "Pending"}, {}),
    "a pod on its way out": (
        PODS,
        {**TEMPLATE["spec"], "nodeName": "far"},  # type: ignore[dict-item]
        {"phase": "Running"},
        {"deletionTimestamp": THEN, "deletionGracePeriodSeconds": 30, "ownerReferences": [OWNER]},
    ),
    "a pod without its owner": (
        PODS,
        TEMPLATE["spec"],
        {"phase": "Running"},
        {"ownerReferences": [OWNER]},
    ),
}


@pytest.mark.parametrize(
    ("resource", "spec", "status", "metadata"),
    first_and_rest([pytest.param(*row, id=name) for name, row in ROWS.items()], 3),
)
async def test_it_stays_as_it_was(
    cluster_with_node: Cluster, resource: Resource, spec: JSON, status: JSON, metadata: JSON
) -> None:
    """Status and times, while the controllers do for a newer object of the same kind what is theirs to do."""
    cluster = cluster_with_node
    made = await cluster.client.send(calls.create(resource, imported(resource, spec, status, **metadata)))
    assert (made["metadata"]["creationTimestamp"], made["status"]) == (THEN, status)
    await cluster.client.send(
        calls.create(DEPLOYMENTS, _plain(DEPLOYMENTS, {"replicas": 1, **SELECTOR, "template": TEMPLATE}))
    )
    await cluster.until(lambda found: found and found.get("status", {}).get("replicas"), "newer", DEPLOYMENTS)
    await cluster.settled()
    now = await cluster.find("old", resource)
    assert now is not None
    assert now["status"] == status
    assert {**now["metadata"], **metadata} == now["metadata"]
    pods, _ = await cluster.client.list_all(Object, "default", resource=PODS)
    owners = {owner.uid for pod in pods for owner in pod.metadata.owner_references}
    assert made["metadata"]["uid"] not in owners


def _plain(resource: Resource, spec: JSON) -> JSON:
    metadata = {"name": "newer", "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


OLD_MASTER = {"name": "m", "labels": {"node-role.kubernetes.io/master": ""}}
NODE_ROWS: dict[str, list[JSON]] = {
    "no nodes at all": [],
    "masters of the old label only": [{"metadata": OLD_MASTER}],
    "a cordoned control plane": [{"metadata": {"name": "c"}, "spec": {"unschedulable": True}}],
}


@pytest.mark.parametrize("nodes", NODE_ROWS.values(), ids=list(NODE_ROWS))
def test_the_sandboxs_own_pods_have_a_place(nodes: list[JSON]) -> None:
    """Whatever the dump's nodes are."""
    pods, there = Cache(WholePod), Cache(WholeNode)
    for each in nodes:
        there.put(codec.convert(WholeNode, each))
    spec = {"nodeSelector": {imports.HOSTNAME: imports.OWN_NODE}}
    pods.put(codec.convert(WholePod, {"metadata": {"name": "operator", "namespace": "ours"}, "spec": spec}))
    scheduler = Scheduler(pods, there, ManualClock(), (imports.own_node(),))
    binding, _event = scheduler.calls(NamespacedName("ours", "operator"))
    assert json.loads(binding.request.body or b"")["target"]["name"] == imports.OWN_NODE
