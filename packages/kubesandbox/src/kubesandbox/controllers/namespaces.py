"""The controllers of namespaces: the objects that each has, and its deletion.

Each namespace gets the ServiceAccount `default`, without which pods that name no account would wait for ever, and the
CA certificate in a ConfigMap (Kubernetes' controllers serviceaccounts and root-ca-cert-publisher). A deleted namespace
is emptied first, then finalized: its finalizer `kubernetes` in `spec.finalizers` is removed last, and only when the
server itself lists no more objects. Remaining objects are reported in the namespace's conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import structlog

from kubekit.api import codec
from kubekit.api.conditions import with_condition
from kubekit.api.meta_v1 import Condition, NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.kube.workqueue import WorkQueue
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.controller_loop import Loop, Requeue
from kubesandbox.controllers.owned_pods import EVENTS, JSON
from kubesandbox.controllers.owner_graph import Graph

NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
FINALIZER = "kubernetes"
_AGAIN_S = 1.0
log = structlog.get_logger("namespaces")
ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
ACCOUNT, CERTIFICATE = "default", "kube-root-ca.crt"
_NAMES = {ACCOUNTS: ACCOUNT, CONFIG_MAPS: CERTIFICATE}
_LOOK_S = 0.1


class NamespaceController:
    """The controller that empties namespaces that are being deleted, and then finalizes them."""

    def __init__(self, graph: Graph, client: Client, clock: Clock) -> None:
        self._graph = graph
        self._client = client
        self._clock = clock
        self._queue: WorkQueue[str] = WorkQueue(clock, first_backoff_s=0.05, longest_backoff_s=30)
        graph.listen(self._on_change)

    def _on_change(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Queues a namespace that is being deleted, and one that is whose objects change."""
        obj = new or old
        if obj is None:
            return
        namespace = new if resource == NAMESPACES else None
        if resource.namespaced and (namespaces := self._graph.caches.get(NAMESPACES)):
            namespace = namespaces.get(NamespacedName("", obj.metadata.namespace))
        if namespace is not None and _is_being_deleted(namespace):
            self._queue.add(namespace.metadata.name)

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            name = await self._queue.get()
            await self._graph.until_ready()
            try:
                await self._empty_namespace(name)
                self._queue.forget(name)
            except NotFound:
                self._queue.forget(name)
            except KubeError as error:
                log.info("retrying", namespace=name, error=str(error))
                self._queue.add_rate_limited(name)
            finally:
                self._queue.done(name)

    async def _empty_namespace(self, name: str) -> None:
        """Takes one step: deletes the known objects, looks for unknown ones, or removes the finalizer."""
        namespace = await self._client.send(calls.get_raw(NAMESPACES, name))
        finalizers = namespace.get("spec", {}).get("finalizers") or []
        if "deletionTimestamp" not in namespace["metadata"] or FINALIZER not in finalizers:
            return
        remaining = self._graph.objects_in(name)
        for resource, obj in remaining:
            await self._delete_object(resource, obj)
        if not remaining:
            # The server may list objects that the watches have not shown yet.
            for resource in [EVENTS, *(kind for kind in self._graph.caches if kind.namespaced)]:
                items, _ = await self._client.list_all(Object, name, resource=resource)
                for obj in items:
                    await self._delete_object(resource, obj)
                # Events have neither finalizers nor a grace period, so they are gone now.
                remaining += [(resource, obj) for obj in items if resource != EVENTS]
        before = codec.convert(tuple[Condition, ...], (namespace.get("status") or {}).get("conditions") or [])
        after = before
        for condition in deletion_conditions(remaining):
            after = with_condition(after, condition, now=self._clock.now())
        if after != before:
            patch = {"status": {"conditions": codec.to_dict(after)}}
            await self._client.send(calls.merge_patch(NAMESPACES, name, patch, subresource="status"))
        if remaining:
            # Each deletion queues it again; the timer is for objects that were listed and are not in the watches yet.
            self._queue.add_after(name, _AGAIN_S)
            return
        namespace = await self._client.send(calls.get_raw(NAMESPACES, name))
        namespace["spec"] = {"finalizers": [finalizer for finalizer in finalizers if finalizer != FINALIZER]}
        await self._client.send(calls.replace(NAMESPACES, namespace, subresource="finalize"))

    async def _delete_object(self, resource: Resource, obj: Object) -> None:
        """Deletes an object, unless it is being deleted, is gone, or was replaced."""
        if _is_being_deleted(obj):
            return
        metadata = obj.metadata
        try:
            await self._client.send(calls.delete(resource, metadata.name, metadata.namespace, uid=metadata.uid))
        # Gone, or replaced by another object of the same name.
        except (NotFound, Conflict):
            return


def _is_being_deleted(obj: Object) -> bool:
    """Returns whether the object is being deleted here, and not only in the cluster that it was imported from."""
    return obj.metadata.deletion_timestamp is not None and IMPORTED not in obj.metadata.labels


def deletion_conditions(remaining_objects: Iterable[tuple[Resource, Object]]) -> tuple[Condition, ...]:
    """Returns the conditions of a namespace that is being deleted (pkg/controller/namespace/deletion)."""
    content = list(remaining_objects)
    resources = Counter(f"{resource.plural}.{resource.group}" for resource, _ in content)
    finalizers = Counter(finalizer for _, obj in content for finalizer in obj.metadata.finalizers)
    remaining = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
    holding = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    return (
        Condition(type="NamespaceDeletionDiscoveryFailure", status="False", reason="ResourcesDiscovered",
                  message="All resources successfully discovered"),
        Condition(type="NamespaceDeletionGroupVersionParsingFailure", status="False", reason="ParsedGroupVersions",
                  message="All legacy kube types successfully parsed"),
        Condition(type="NamespaceDeletionContentFailure", status="False", reason="ContentDeleted",
                  message="All content successfully deleted, may be waiting on finalization"),
        Condition(type="NamespaceContentRemaining", status="True", reason="SomeResourcesRemain",
                  message=f"Some resources are remaining: {remaining}") if content else
        Condition(type="NamespaceContentRemaining", status="False", reason="ContentRemoved",
                  message="All content successfully removed"),
        Condition(type="NamespaceFinalizersRemaining", status="True", reason="SomeFinalizersRemain",
                  message=f"Some content in the namespace has finalizers remaining: {holding}") if finalizers else
        Condition(type="NamespaceFinalizersRemaining", status="False", reason="ContentHasNoFinalizers",
                  message="All content-preserving finalizers finished"),
    )  # fmt: skip


class Furnishing:
    """The controller that creates the missing objects of a namespace; its keys are names of namespaces."""

    name = "furnishing"

    def __init__(self, graph: Graph, ca: bytes) -> None:
        self._graph = graph
        self._ca = ca.decode()
        # Namespaces whose certificate was written to; the watched metadata has no data to compare.
        self.touched: set[str] = set()

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue]:
        """Yields the calls that a namespace needs."""
        caches = [self._graph.caches.get(resource) for resource in (NAMESPACES, *_NAMES)]
        if not all(cache is not None and cache.synced for cache in caches):
            yield Requeue(_LOOK_S)  # before the first lists, an object that is not in a cache may exist
            return
        namespace = self._graph.caches[NAMESPACES].get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        data = {"ca.crt": self._ca}
        for resource, name in _NAMES.items():
            if self._graph.caches[resource].get(NamespacedName(key.name, name)) is None:
                metadata = {"name": name, "namespace": key.name}
                body: JSON = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
                yield calls.create(resource, body | ({"data": data} if resource == CONFIG_MAPS else {}))
            elif resource == CONFIG_MAPS and key.name in self.touched:
                self.touched.discard(key.name)
                # The server ignores a patch that changes nothing, so that this does not trigger itself again.
                whole = {"op": "add", "path": "/data", "value": data}
                yield calls.json_patch(resource, name, [whole], key.name)


def watch_namespaces(loop: Loop, graph: Graph, furnishing: Furnishing) -> None:
    """Queues new namespaces, and those whose account or certificate was deleted or changed."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        if resource == NAMESPACES and new is not None and old is None:
            loop.queue.add(NamespacedName("", new.metadata.name))
        elif new is None and old is not None and _NAMES.get(resource) == old.metadata.name:
            loop.queue.add(NamespacedName("", old.metadata.namespace))
        elif old is not None and new is not None and resource == CONFIG_MAPS and new.metadata.name == CERTIFICATE:
            furnishing.touched.add(new.metadata.namespace)
            loop.queue.add(NamespacedName("", new.metadata.namespace))

    graph.listen(on_change)
