"""The end of objects: the garbage collector, and the protection of claims and volumes in use.

The rules of collection are those of Kubernetes' garbage collector (pkg/controller/garbagecollector
`attemptToDeleteItem`). Background deletes dependents once no owner is left. Foreground keeps the owner, marked by the
finalizer `foregroundDeletion`, until those that block it are gone. Orphan, by the finalizer `orphan`, removes the
references. An owner counts as gone only when the server itself says so. `decide_collection` has the rules,
`GarbageCollector` observes and carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import structlog

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Object, ObjectMeta, OwnerReference, key_of
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.kube.workqueue import WorkQueue
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.controller_loop import Loop, Read
from kubesandbox.controllers.owned_pods import JSON, PODS
from kubesandbox.controllers.owner_graph import Graph

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
# Longest back-off for an object whose owner cannot be looked up now (its kind is not served), in seconds.
_LONGEST_S = 60.0
log = structlog.get_logger("garbage")
CLAIMS = Resource(
    group="", version="v1", kind="PersistentVolumeClaim", plural="persistentvolumeclaims", namespaced=True
)
VOLUMES = Resource(group="", version="v1", kind="PersistentVolume", plural="persistentvolumes", namespaced=False)
FINALIZERS = {CLAIMS: "kubernetes.io/pvc-protection", VOLUMES: "kubernetes.io/pv-protection"}


class Owner(Enum):
    """The state of an owner."""

    SOLID = "it is there"
    DANGLING = "it is gone, or another object has its name"
    WAITING = "it is being deleted and waits for its dependents"


@dataclass(frozen=True, slots=True)
class Cut:
    """The decision to remove these owners from the object's references."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """The decision to delete the object; `unblock` first lets its owners go without it, which breaks a cycle."""

    propagation: Literal["Background", "Foreground", "Orphan"]
    unblock: bool = False


def decide_collection(
    obj: ObjectMeta, owners: Mapping[str, Owner], dependents: Iterable[ObjectMeta]
) -> Cut | Delete | None:
    """Decides about an object that is not being deleted, by the state of its owners (by uid)."""
    if not owners:
        return None
    states = set(owners.values())
    if Owner.SOLID in states:
        dangling_uids = frozenset(uid for uid, owner in owners.items() if owner is not Owner.SOLID)
        return Cut(dangling_uids) if dangling_uids else None
    below = list(dependents)
    if Owner.WAITING in states and below:
        return Delete("Foreground", unblock=any(is_in_foreground(dependent) for dependent in below))
    if ORPHAN in obj.finalizers:
        return Delete("Orphan")
    return Delete("Foreground" if FOREGROUND in obj.finalizers else "Background")


def is_in_foreground(metadata: ObjectMeta) -> bool:
    """Returns whether the object is being deleted and waits for its dependents."""
    return metadata.deletion_timestamp is not None and FOREGROUND in metadata.finalizers


class Unsettled(Exception):
    """An owner whose state cannot be determined now."""


class ForeignOwner(Exception):
    """A namespaced owner of a cluster-scoped object, which cannot be looked up; the object is left alone for good."""


class GarbageCollector:
    """The controller, whose keys are (resource, key) of objects that changed, or whose owner or dependent changed."""

    def __init__(self, graph: Graph, client: Client, clock: Clock) -> None:
        self._graph = graph
        self._client = client
        self._queue: WorkQueue[tuple[Resource, NamespacedName]] = WorkQueue(
            clock, first_backoff_s=0.05, longest_backoff_s=_LONGEST_S
        )
        graph.listen(self._on_change)

    def _on_change(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Queues the possible garbage of a change: the object itself, or the dependents of a deleted object."""
        obj = new or old
        if obj is None or IMPORTED in obj.metadata.labels:  # its owners are those of another cluster
            return
        if new is None or is_in_foreground(new.metadata):
            # It is deleted or about to be: its dependents may have to be deleted as well.
            for dependent_resource, dependent in self._graph.dependents_of(obj.metadata.uid):
                self._queue.add((dependent_resource, key_of(dependent)))
        if new is not None and (new.metadata.owner_references or new.metadata.deletion_timestamp is not None):
            self._queue.add((resource, key_of(new)))
        present = set(new.metadata.owner_references) if new is not None else set()
        for reference in old.metadata.owner_references if old is not None else ():
            if reference in present:
                continue
            # An owner that waits for its dependents may go without this one.
            owner = self._graph.resource(reference.api_version, reference.kind)
            if owner is not None:
                namespace = obj.metadata.namespace if owner.namespaced else ""
                self._queue.add((owner, NamespacedName(namespace, reference.name)))

    async def run(self) -> None:
        """Collects until cancelled."""
        while True:
            item = await self._queue.get()
            await self._graph.until_ready()
            try:
                await self._collect_object(*item)
                self._queue.forget(item)
            except (KubeError, Unsettled) as error:
                log.info("retrying", resource=str(item[0]), key=str(item[1]), error=str(error))
                self._queue.add_rate_limited(item)
            except ForeignOwner as error:
                log.warning("left alone", resource=str(item[0]), key=str(item[1]), error=str(error))
            finally:
                self._queue.done(item)

    async def _collect_object(self, resource: Resource, key: NamespacedName) -> None:
        """Deletes an object without living owners, or continues its deletion. Raises KubeError and Unsettled."""
        cache = self._graph.caches.get(resource)
        obj = cache.get(key) if cache is not None else None
        if obj is None:
            return
        if obj.metadata.deletion_timestamp is not None:
            await self._finish_deletion(resource, obj)
            return
        owners = {owner.uid: await self._owner_state(owner, resource, obj) for owner in obj.metadata.owner_references}
        below = (dependent.metadata for _, dependent in self._graph.dependents(obj, resource))
        match decide_collection(obj.metadata, owners, below):
            case Cut(uids):
                await self._remove_owners(resource, obj, uids)
            case Delete(propagation, unblock):
                if unblock:
                    references = [codec.to_dict(owner) for owner in obj.metadata.owner_references]
                    unblocked = [{**reference, "blockOwnerDeletion": False} for reference in references]
                    await self._patch_metadata(resource, obj, {"ownerReferences": unblocked})
                metadata = obj.metadata
                call = calls.delete(
                    resource, metadata.name, metadata.namespace, uid=metadata.uid, propagation=propagation,
                    # The deletion is for the revision that was decided on.
                    resource_version="" if unblock else metadata.resource_version,
                )  # fmt: skip
                with suppress(NotFound):
                    await self._client.send(call)

    async def _owner_state(self, reference: OwnerReference, of: Resource, obj: Object) -> Owner:
        """Returns whether an owner was deleted, waits for its dependents, or keeps the object.

        Raises Unsettled and ForeignOwner.
        """
        resource = self._graph.resource(reference.api_version, reference.kind)
        if resource is None:
            raise Unsettled(f"no kind {reference.kind} of {reference.api_version} is served")
        # kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents: no cross-scope owners.
        if resource.namespaced and not of.namespaced:
            raise ForeignOwner(f"it names {reference.kind} {reference.name}, which is in a namespace, as its owner")
        place = obj.metadata.namespace if resource.namespaced else ""
        cached = self._graph.caches[resource].get(NamespacedName(place, reference.name))
        if cached is not None and cached.metadata.uid == reference.uid:
            return Owner.WAITING if is_in_foreground(cached.metadata) else Owner.SOLID
        # Only the server can prove that an owner is absent.
        try:
            raw = await self._client.send(calls.get_raw(resource, reference.name, place))
        except NotFound:
            return Owner.DANGLING
        owner = codec.convert(ObjectMeta, raw["metadata"])
        if owner.uid != reference.uid:
            return Owner.DANGLING
        return Owner.WAITING if is_in_foreground(owner) else Owner.SOLID

    async def _finish_deletion(self, resource: Resource, obj: Object) -> None:
        """Orphans or deletes the dependents of an object that is being deleted, then removes its finalizer."""
        dependents = self._graph.dependents(obj, resource)
        if ORPHAN in obj.metadata.finalizers:
            for dependent_resource, dependent in dependents:
                await self._remove_owners(dependent_resource, dependent, frozenset({obj.metadata.uid}))
            await self._remove_finalizer(resource, obj, ORPHAN)
        elif FOREGROUND in obj.metadata.finalizers:
            blocking = [
                (dependent_resource, dependent)
                for dependent_resource, dependent in dependents
                for reference in dependent.metadata.owner_references
                if reference.uid == obj.metadata.uid and reference.block_owner_deletion
            ]
            for dependent_resource, dependent in blocking:
                if dependent.metadata.deletion_timestamp is None:
                    self._queue.add((dependent_resource, key_of(dependent)))
            if not blocking:
                await self._remove_finalizer(resource, obj, FOREGROUND)

    async def _remove_finalizer(self, resource: Resource, obj: Object, finalizer: str) -> None:
        finalizers = [name for name in obj.metadata.finalizers if name != finalizer]
        await self._patch_metadata(resource, obj, {"finalizers": finalizers or None})

    async def _remove_owners(self, resource: Resource, obj: Object, uids: frozenset[str]) -> None:
        remaining_owners = [codec.to_dict(owner) for owner in obj.metadata.owner_references if owner.uid not in uids]
        await self._patch_metadata(resource, obj, {"ownerReferences": remaining_owners or None})

    async def _patch_metadata(self, resource: Resource, obj: Object, metadata: JSON) -> None:
        """Patches the object at the revision that was decided on; NotFound is ignored, since the object is gone."""
        guarded = {"metadata": {**metadata, "uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}}
        with suppress(NotFound):
            await self._client.send(calls.merge_patch(resource, obj.metadata.name, guarded, obj.metadata.namespace))


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
            users = Read(calls.list_raw(PODS, key.namespace, limit=0))
            yield users
            in_use = any(key.name in _claims_of(pod) for pod in users.answer.items)
        else:
            present = Read(calls.list_raw(VOLUMES, field_selector=f"metadata.name={key.name}", limit=0))
            yield present
            in_use = any((volume.get("status") or {}).get("phase") == "Bound" for volume in present.answer.items)
        if in_use:
            return
        metadata = {
            "finalizers": [name for name in obj.metadata.finalizers if name != FINALIZERS[resource]],
            "resourceVersion": obj.metadata.resource_version,
        }
        yield calls.merge_patch(resource, key.name, {"metadata": metadata}, key.namespace)


def watch_volumes(loop: Loop, graph: Graph) -> None:
    """Queues claims and volumes that are deleted, and the claims of a namespace in which a pod ends."""

    def on_change(resource: Resource, old: Object | None, new: Object | None) -> None:
        if resource in FINALIZERS and new is not None and _awaits_release(resource, new):
            loop.queue.add(key_of(new))
        elif resource == PODS and old is not None:
            for claim in graph.cached(CLAIMS, old.metadata.namespace):
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
