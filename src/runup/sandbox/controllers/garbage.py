"""Owner references and finalizers of deletion: dependents go after their owners, namespaces when they are empty.

The rules are Kubernetes' (concepts/architecture/garbage-collection): Background deletes dependents once the owner is
gone; Foreground keeps the owner, marked by the finalizer `foregroundDeletion`, until those that block it are gone;
Orphan, by the finalizer `orphan`, cuts the ties. An owner counts as gone only when the server itself says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import structlog

from runup.api import codec
from runup.api.meta_v1 import NamespacedName, Object, OwnerReference
from runup.api.scheme import Resource
from runup.kube import calls
from runup.kube.cache import Cache
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import Conflict, KubeError, NotFound
from runup.kube.watch import Reflector
from runup.kube.workqueue import WorkQueue

JSON = dict[str, Any]
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
# Kinds whose objects never own or are owned, and change all the time.
_IGNORED = frozenset({"events", "componentstatuses", "bindings"})
log = structlog.get_logger("garbage")


class Graph:
    """The metadata of every object of every kind that can be deleted, found by discovery and followed by watches."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.caches: dict[Resource, Cache[Object]] = {}
        self._client = client
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: list[Callable[[Resource, Object | None, Object | None], None]] = []

    def listen(self, listener: Callable[[Resource, Object | None, Object | None], None]) -> None:
        """Call `listener(resource, old, new)` for every change of any object."""
        self._listeners.append(listener)

    async def discover(self) -> None:
        """Follow the kinds that appeared since the last time (a CRD brings new ones)."""
        for resource in await discovered(self._client):
            if resource not in self.caches:
                self._follow(resource)

    def _follow(self, resource: Resource) -> None:
        cache: Cache[Object] = Cache(Object)
        self.caches[resource] = cache
        cache.add_listener(lambda _change, old, new: self._tell(resource, old, new))
        reflector = Reflector(self._client, Object, cache, clock=self._clock, resource=resource)
        self._tasks.append(asyncio.create_task(reflector.run()))

    def _tell(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        for listener in self._listeners:
            listener(resource, old, new)

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind; any version of its group will do."""
        group = api_version.rpartition("/")[0]
        return next((r for r in self.caches if (r.group, r.kind) == (group, kind)), None)

    def dependents(self, uid: str) -> list[tuple[Resource, Object]]:
        """Every object that names `uid` as an owner."""
        return [
            (resource, obj)
            for resource, cache in self.caches.items()
            for obj in cache.all()
            if any(reference.uid == uid for reference in obj.metadata.owner_references)
        ]

    def inside(self, namespace: str) -> list[tuple[Resource, Object]]:
        """Every object in a namespace."""
        return [
            (resource, obj)
            for resource, cache in self.caches.items()
            if resource.namespaced
            for obj in cache.all()
            if obj.metadata.namespace == namespace
        ]

    async def close(self) -> None:
        """End the watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class GarbageCollector:
    """Works on (resource, key) pairs whose object, or whose owner, changed."""

    def __init__(self, graph: Graph, client: Client, clock: Clock) -> None:
        self._graph = graph
        self._client = client
        self._queue: WorkQueue[tuple[Resource, NamespacedName]] = WorkQueue(clock, first_backoff_s=0.05)
        graph.listen(self._on_change)

    def _on_change(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        metadata = obj.metadata
        if new is None:  # gone: whoever it owned may be garbage now
            for each, dependent in self._graph.dependents(metadata.uid):
                self._add(each, dependent)
            for reference in metadata.owner_references:
                self._add_owner(reference, metadata.namespace)
        elif metadata.owner_references or metadata.deletion_timestamp is not None:
            self._add(resource, obj)

    def _add(self, resource: Resource, obj: Object) -> None:
        self._queue.add((resource, NamespacedName(obj.metadata.namespace, obj.metadata.name)))

    def _add_owner(self, reference: OwnerReference, namespace: str) -> None:
        owner = self._graph.resource(reference.api_version, reference.kind)
        if owner is not None:
            self._queue.add((owner, NamespacedName(namespace if owner.namespaced else "", reference.name)))

    async def run(self) -> None:
        """Collect until cancelled."""
        while True:
            item = await self._queue.get()
            try:
                await self._collect(*item)
                self._queue.forget(item)
            except (NotFound, Conflict):
                self._queue.forget(item)
            except KubeError as error:
                log.info("retrying", resource=str(item[0]), key=str(item[1]), error=str(error))
                self._queue.add_rate_limited(item)
            finally:
                self._queue.done(item)

    async def _collect(self, resource: Resource, key: NamespacedName) -> None:
        obj = self._graph.caches[resource].get(key)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp is not None:
            await self._finish_deletion(resource, obj)
            return
        if obj.metadata.owner_references and not await self._any_owner_lives(obj):
            await self._delete(resource, obj)

    async def _any_owner_lives(self, obj: Object) -> bool:
        for reference in obj.metadata.owner_references:
            if await self._lives(reference, obj.metadata.namespace):
                return True
        return False

    async def _lives(self, reference: OwnerReference, namespace: str) -> bool:
        resource = self._graph.resource(reference.api_version, reference.kind)
        if resource is None:
            return True  # a kind that we cannot look at is no proof of death
        place = namespace if resource.namespaced else ""
        cached = self._graph.caches[resource].get(NamespacedName(place, reference.name))
        if cached is not None and cached.metadata.uid == reference.uid:
            return not (cached.metadata.deletion_timestamp is not None and FOREGROUND in cached.metadata.finalizers)
        try:
            found = await self._client.send(calls.get_raw(resource, reference.name, place))
        except NotFound:
            return False
        return bool(found["metadata"]["uid"] == reference.uid)

    async def _finish_deletion(self, resource: Resource, obj: Object) -> None:
        dependents = self._graph.dependents(obj.metadata.uid)
        if ORPHAN in obj.metadata.finalizers:
            for each, dependent in dependents:
                kept = [r for r in dependent.metadata.owner_references if r.uid != obj.metadata.uid]
                await self._patch(each, dependent, {"ownerReferences": _references(kept) or None})
            await self._without(resource, obj, ORPHAN)
        elif FOREGROUND in obj.metadata.finalizers:
            for each, dependent in dependents:
                if dependent.metadata.deletion_timestamp is None:
                    await self._delete(each, dependent, "Foreground")
            if not any(_blocks(dependent, obj) for _, dependent in dependents):
                await self._without(resource, obj, FOREGROUND)

    async def _without(self, resource: Resource, obj: Object, finalizer: str) -> None:
        left = [each for each in obj.metadata.finalizers if each != finalizer]
        await self._patch(resource, obj, {"finalizers": left or None})

    async def _patch(self, resource: Resource, obj: Object, metadata: JSON) -> None:
        guarded = {"metadata": {**metadata, "resourceVersion": obj.metadata.resource_version}}
        await self._client.send(calls.merge_patch(resource, obj.metadata.name, guarded, obj.metadata.namespace))

    async def _delete(self, resource: Resource, obj: Object, propagation: Any = "Background") -> None:
        call = calls.delete(
            resource, obj.metadata.name, obj.metadata.namespace, uid=obj.metadata.uid, propagation=propagation
        )
        await self._client.send(call)


class NamespaceController:
    """Empties namespaces that are being deleted, then lets them go."""

    def __init__(self, graph: Graph, client: Client, clock: Clock) -> None:
        self._graph = graph
        self._client = client
        self._queue: WorkQueue[str] = WorkQueue(clock, first_backoff_s=0.05)
        graph.listen(self._on_change)

    def _on_change(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        if resource == NAMESPACES and new is not None and new.metadata.deletion_timestamp is not None:
            self._queue.add(new.metadata.name)
        elif resource.namespaced and new is None:
            namespace = self._graph.caches.get(NAMESPACES)
            held = namespace.get(NamespacedName("", obj.metadata.namespace)) if namespace else None
            if held is not None and held.metadata.deletion_timestamp is not None:
                self._queue.add(held.metadata.name)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            name = await self._queue.get()
            try:
                await self._empty(name)
                self._queue.forget(name)
            except NotFound:
                self._queue.forget(name)
            except KubeError as error:
                log.info("retrying", namespace=name, error=str(error))
                self._queue.add_rate_limited(name)
            finally:
                self._queue.done(name)

    async def _empty(self, name: str) -> None:
        content = self._graph.inside(name)
        for resource, obj in content:
            if obj.metadata.deletion_timestamp is None:
                try:
                    await self._client.send(calls.delete(resource, obj.metadata.name, name, uid=obj.metadata.uid))
                except (NotFound, Conflict):
                    continue
        if content:
            return  # each deletion brings this namespace here again
        namespace = await self._client.send(calls.get_raw(NAMESPACES, name))
        namespace["spec"] = {"finalizers": []}
        await self._client.send(calls.replace(NAMESPACES, namespace, subresource="finalize"))


async def discovered(client: Client) -> list[Resource]:
    """Every kind that can be listed, watched and deleted, one version each."""
    paths = ["/api/v1"]
    groups = await _get(client, "/apis")
    paths += [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups.get("groups", ())]
    found: list[Resource] = []
    for body in await asyncio.gather(*(_list_of(client, path) for path in paths)):
        group, _, version = body.get("groupVersion", "").rpartition("/")
        for entry in body.get("resources", ()):
            verbs = set(entry.get("verbs", ()))
            if "/" in entry["name"] or entry["name"] in _IGNORED or not {"list", "watch", "delete"} <= verbs:
                continue
            found.append(Resource(group, version, entry["kind"], entry["name"], namespaced=entry["namespaced"]))
    return found


async def _list_of(client: Client, path: str) -> JSON:
    try:
        return await _get(client, path)
    except NotFound:
        return {}


async def _get(client: Client, path: str) -> JSON:
    data: bytes = await client.send(calls.get_path(path))
    body: JSON = orjson.loads(data)
    return body


def _references(references: Iterable[OwnerReference]) -> list[JSON]:
    return [codec.to_dict(reference) for reference in references]


def _blocks(dependent: Object, owner: Object) -> bool:
    return any(
        reference.uid == owner.metadata.uid and reference.block_owner_deletion
        for reference in dependent.metadata.owner_references
    )
