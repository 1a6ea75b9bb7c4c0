"""The controllers of counts in a status: PodDisruptionBudgets and ResourceQuotas.

The disruption controller computes budgets from the caches. The resource quota controller learns of changes from caches
and counts from lists: caches are not of one moment, and a count that lacks an object which was charged would let
another one in. The API server charges a quota when an object is created or changed; objects that go are counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.whole_v1 import WholePod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.rules.eviction_rules import desired_healthy, disruptions_allowed
from kubesandbox.apiserver.quotas.usage import DETAILED, counted_kinds, used_of_quota
from kubesandbox.controllers.controller_loop import Loop, Read, Requeue
from kubesandbox.controllers.owned_pods import JSON, is_active, is_ready
from kubesandbox.controllers.owner_graph import Graph

BUDGETS = resource_of(PodDisruptionBudget)
QUOTAS = Resource(group="", version="v1", kind="ResourceQuota", plural="resourcequotas", namespaced=True)
# As --resource-quota-sync-period: what no watch shows, such as a pod that is past its deletion, counts by then.
_RESYNC_S = 300.0
_CHARGED_S = 0.2
_COUNTS = {
    "observedGeneration": "observed_generation",
    "disruptionsAllowed": "disruptions_allowed",
    "currentHealthy": "current_healthy",
    "desiredHealthy": "desired_healthy",
    "expectedPods": "expected_pods",
}


class Budgets:
    """The controller of PodDisruptionBudgets' status.

    Counts come from the pods that the selector matches. If none of them exist, as in a dump without pods, the
    recorded counts of the budget stay.
    """

    name = "disruption"

    def __init__(self, budgets: Cache[PodDisruptionBudget], pods: Cache[WholePod]) -> None:
        self._budgets, self._pods = budgets, pods

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """Yields the patch of a budget whose status differs from the computed one."""
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return
        status = budget_status(budget, self._pods.all())
        if status != {wire: getattr(budget.status, field) for wire, field in _COUNTS.items()}:
            yield calls.merge_patch(BUDGETS, key.name, {"status": status}, key.namespace, subresource="status")


def budget_status(budget: PodDisruptionBudget, pods: Iterable[WholePod]) -> dict[str, int]:
    """Returns the counts of a budget's status."""
    spec = budget.spec
    selected = [
        pod
        for pod in pods
        if spec.selector is not None
        and pod.metadata.namespace == budget.metadata.namespace
        and is_active(pod)
        and spec.selector.matches(pod.metadata.labels)
    ]
    expected = len(selected) or budget.status.expected_pods
    healthy = sum(is_ready(pod) for pod in selected) if selected else budget.status.current_healthy
    desired = desired_healthy(spec.min_available, spec.max_unavailable, expected)
    return {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": disruptions_allowed(expected, healthy, desired),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }


class Quotas:
    """Keeps the status of ResourceQuotas. The counts of an imported quota stay: a dump may lack the objects."""

    name = "resourcequota"

    def __init__(self, graph: Graph, clock: Clock, not_imported: str) -> None:
        self._graph, self._clock, self._selector = graph, clock, not_imported

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue | Read]:
        """Yields the patch of a quota whose status differs from what its namespace holds."""
        pending_read = Read(calls.list_raw(QUOTAS, key.namespace, label_selector=self._selector, limit=0))
        yield pending_read
        quota = next((quota for quota in pending_read.answer.items if quota["metadata"]["name"] == key.name), None)
        if quota is None or quota["metadata"].get("deletionTimestamp"):
            return
        hard = quota["spec"].get("hard") or {}
        objects: list[tuple[str, JSON]] = []
        kinds = counted_kinds(hard)
        # A kind that is not served has no objects.
        for resource in [kind for kind in self._graph.caches if kind.namespaced and kind.name in kinds]:
            listed = Read(calls.list_raw(resource, key.namespace, limit=0))
            yield listed
            objects += [(resource.name, item) for item in listed.answer.items]
        status = {"hard": hard, "used": used_of_quota(quota, objects, self._clock.now())}
        if status != {"hard": {}, "used": {}} | (quota.get("status") or {}):
            # If the server has charged it meanwhile, that is a conflict, and it is counted again.
            revision = {"op": "add", "path": "/metadata/resourceVersion", "value": quota["metadata"]["resourceVersion"]}
            whole = {"op": "add", "path": "/status", "value": status}
            yield calls.json_patch(QUOTAS, key.name, [revision, whole], key.namespace, subresource="status")
        yield Requeue(_RESYNC_S)


def watch_quotas(loop: Loop, graph: Graph) -> None:
    """Queues quotas that change, and the quotas of a namespace where an object that they count changes."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or not obj.metadata.namespace:
            return
        if resource == QUOTAS and new is not None:
            # A quota that changes may have been charged for an object that is stored in a moment.
            loop.queue.add_after(key_of(new), 0.0 if old is None else _CHARGED_S)
        if old is None or new is None or resource.name in DETAILED:
            for quota in graph.cached(QUOTAS, obj.metadata.namespace):
                loop.queue.add(key_of(quota))

    graph.listen(on_change)
