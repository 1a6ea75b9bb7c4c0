"""The resource quota controller: ResourceQuotas and the objects of their namespaces in, the quotas' status out.

The API server charges a quota when an object is created or changed; objects that go are counted here, as by Kubernetes'
controller of that name. It learns of changes from caches and counts from lists: caches are not of one moment, and a
count that lacks an object which was charged would let another one in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.apiserver.quotas.usage import DETAILED, counted_kinds, used_of_quota
from kubesandbox.controllers.controller_loop import Loop, Read, Requeue
from kubesandbox.controllers.owner_graph import Graph

JSON = dict[str, Any]
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)
# As --resource-quota-sync-period: what no watch shows, such as a pod that is past its deletion, counts by then.
_RESYNC_S = 300.0
_CHARGED_S = 0.2


class Quotas:
    """The controller of ResourceQuotas' status. What an imported quota counted stays: a dump may lack the objects."""

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
        for resource in self._counted_kinds(hard):
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

    def _counted_kinds(self, hard: JSON) -> list[Resource]:
        """Returns the kinds that a quota counts; one that is not served has no objects."""
        kinds = counted_kinds(hard)
        return [resource for resource in self._graph.caches if resource.namespaced and resource.name in kinds]


def watch_quotas(loop: Loop, graph: Graph) -> None:
    """Queues quotas that change, and the quotas of a namespace where an object that they count changes."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        """Queues the quotas that a change concerns."""
        obj = new or old
        if obj is None or not obj.metadata.namespace:
            return
        if resource == QUOTAS and new is not None:
            # A quota that changes may have been charged for an object that is stored in a moment.
            loop.queue.add_after(key_of(new), 0.0 if old is None else _CHARGED_S)
        if old is None or new is None or resource.name in DETAILED:
            cache = graph.caches.get(QUOTAS)
            for quota in cache.by_index("namespace", obj.metadata.namespace) if cache is not None else ():
                loop.queue.add(key_of(quota))

    graph.listen(on_change)
