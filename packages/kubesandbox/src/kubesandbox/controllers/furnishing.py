"""The objects that every namespace has: the ServiceAccount `default`, and the CA certificate in a ConfigMap.

Pods that name no account run as `default`; without it they would wait for ever. Kubernetes has a controller for each
(serviceaccounts, root-ca-cert-publisher): both create a missing object, and the second one also reverts changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.request import Call
from kubesandbox.controllers.controller_loop import Loop, Requeue
from kubesandbox.controllers.namespaces import NAMESPACES
from kubesandbox.controllers.owner_graph import Graph

JSON = dict[str, Any]
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
ACCOUNT, CERTIFICATE = "default", "kube-root-ca.crt"
_NAMES = {ACCOUNTS: ACCOUNT, CONFIG_MAPS: CERTIFICATE}
_LOOK_S = 0.1


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
        for resource, name in _NAMES.items():
            if self._graph.caches[resource].get(NamespacedName(key.name, name)) is None:
                yield calls.create(resource, self._new_object(resource, name, key.name))
            elif resource == CONFIG_MAPS and key.name in self.touched:
                self.touched.discard(key.name)
                # The server ignores a patch that changes nothing, so that this does not trigger itself again.
                whole = {"op": "add", "path": "/data", "value": {"ca.crt": self._ca}}
                yield calls.json_patch(resource, name, [whole], key.name)

    def _new_object(self, resource: Resource, name: str, namespace: str) -> JSON:
        metadata = {"name": name, "namespace": namespace}
        body: JSON = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        return body | ({"data": {"ca.crt": self._ca}} if resource == CONFIG_MAPS else {})


def watch_namespaces(loop: Loop, graph: Graph, furnishing: Furnishing) -> None:
    """Queues new namespaces, and those whose account or certificate was deleted or changed."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        """Queues a namespace that is new, or that lost its account or certificate."""
        if resource == NAMESPACES and new is not None and old is None:
            loop.queue.add(NamespacedName("", new.metadata.name))
        elif new is None and old is not None and _NAMES.get(resource) == old.metadata.name:
            loop.queue.add(NamespacedName("", old.metadata.namespace))
        elif old is not None and new is not None and resource == CONFIG_MAPS and new.metadata.name == CERTIFICATE:
            furnishing.touched.add(new.metadata.namespace)
            loop.queue.add(NamespacedName("", new.metadata.namespace))

    graph.listen(on_change)
