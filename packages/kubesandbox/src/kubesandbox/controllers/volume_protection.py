"""The controllers that protect volumes in use: deleted claims and volumes, and who uses them, in; their end out.

The API server gives each new claim and volume a finalizer. It is taken off a deleted claim that no pod uses, and a
deleted volume that is not bound, as by Kubernetes' controllers pvc-protection and pv-protection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.request import Call
from kubesandbox.controllers.controller_loop import Loop, Read
from kubesandbox.controllers.owned_pods import PODS
from kubesandbox.controllers.owner_graph import Graph

JSON = dict[str, Any]
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
FINALIZERS = {CLAIMS: "kubernetes.io/pvc-protection", VOLUMES: "kubernetes.io/pv-protection"}


class VolumeProtection:
    """The controller; its keys are those of claims, and those of volumes, which have no namespace."""

    name = "volume-protection"

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Read]:
        """Yields the patch that removes the finalizer of a deleted claim or volume that is not in use."""
        resource = CLAIMS if key.namespace else VOLUMES
        cache = self._graph.caches.get(resource)
        obj = cache.get(key) if cache is not None else None
        if obj is None or not _awaits_release(resource, obj):
            return
        if resource == CLAIMS:
            pending_read = Read(calls.list_raw(PODS, key.namespace, limit=0))
            yield pending_read
            if any(key.name in _claims_of(pod) for pod in pending_read.answer.items):
                return
        else:
            pending_read = Read(calls.list_raw(VOLUMES, field_selector=f"metadata.name={key.name}", limit=0))
            yield pending_read
            if any((volume.get("status") or {}).get("phase") == "Bound" for volume in pending_read.answer.items):
                return
        metadata = {
            "finalizers": [name for name in obj.metadata.finalizers if name != FINALIZERS[resource]],
            "resourceVersion": obj.metadata.resource_version,
        }
        yield calls.merge_patch(resource, key.name, {"metadata": metadata}, key.namespace)


def watch_volumes(loop: Loop, graph: Graph) -> None:
    """Queues claims and volumes that are deleted, and the claims of a namespace in which a pod ends."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        """Queues claims and volumes that wait for their release, and the claims of a pod that changed."""
        if resource in FINALIZERS and new is not None and _awaits_release(resource, new):
            loop.queue.add(key_of(new))
        elif resource == PODS and old is not None:
            cache = graph.caches.get(CLAIMS)
            for claim in cache.by_index("namespace", old.metadata.namespace) if cache is not None else ():
                if _awaits_release(CLAIMS, claim):
                    loop.queue.add(key_of(claim))

    graph.listen(on_change)


def _awaits_release(resource: Resource, obj: Object) -> bool:
    return obj.metadata.deletion_timestamp is not None and FINALIZERS[resource] in obj.metadata.finalizers


def _claims_of(pod: JSON) -> set[str]:
    """Returns the claims that a pod uses: none before it is on a node, as no node starts it with a deleted claim."""
    spec = pod.get("spec") or {}
    volumes = (spec.get("volumes") or ()) if spec.get("nodeName") else ()
    claim_names = {(volume.get("persistentVolumeClaim") or {}).get("claimName", "") for volume in volumes}
    return claim_names | {
        f"{pod['metadata']['name']}-{volume['name']}" for volume in volumes if volume.get("ephemeral")
    }
