"""The graph of owners and dependents: the metadata of all objects of all kinds, by discovery and watches.

The garbage collector and the namespace controller read it, but not before it is ready (`until_ready`): an object that
was not listed yet does not count as deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubesandbox.tasks import cancel_tasks

Listener = Callable[[Resource, Object | None, Object | None], None]
# Kinds whose objects have no owners or dependents, and change all the time.
_IGNORED = frozenset({"events", "componentstatuses", "bindings"})


class Graph:
    """The objects by resource; `listen` reports every change."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.caches: dict[Resource, Cache[Object]] = {}
        self._client = client
        self._clock = clock
        self._discovered = asyncio.Event()
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Calls `listener(resource, old, new)` for every change of any object."""
        self._listeners.append(listener)

    async def discover(self) -> None:
        """Starts watching kinds that are served since the last call, and stops watching those no longer served."""
        served = await discover_kinds(self._client)
        for resource in self.caches.keys() - set(served):
            self._tasks.pop(resource).cancel()
            removed_cache = self.caches.pop(resource)
            if not removed_cache.synced:
                # Otherwise a task that waits for its first list would wait for ever.
                removed_cache.replace((), "")
        for resource in served:
            if resource not in self.caches:
                self._watch_kind(resource)
        self._discovered.set()

    def _watch_kind(self, resource: Resource) -> None:
        """Starts a cache of the kind, indexed by owner and by namespace, and the task that fills it."""
        cache: Cache[Object] = Cache(
            Object,
            owner=lambda obj: [reference.uid for reference in obj.metadata.owner_references],
            namespace=lambda obj: [obj.metadata.namespace],
        )
        self.caches[resource] = cache

        def notify_listeners(_change: str, old: Object | None, new: Object | None) -> None:
            for listener in self._listeners:
                listener(resource, old, new)

        cache.add_listener(notify_listeners)
        reflector = Reflector(self._client, Object, cache, clock=self._clock, resource=resource)
        self._tasks[resource] = asyncio.create_task(reflector.run())

    async def until_ready(self) -> None:
        """Waits until every known kind has been listed."""
        await self._discovered.wait()
        while waiting := [cache for cache in self.caches.values() if not cache.synced]:
            await waiting[0].until_synced()

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """Returns the resource of a kind in any version of its group, or None."""
        group = api_version.rpartition("/")[0]
        return next((r for r in self.caches if (r.group, r.kind) == (group, kind)), None)

    def dependents(self, owner: Object, resource: Resource) -> list[tuple[Resource, Object]]:
        """Returns every object that names `owner` as its owner; those of a namespaced owner only in its namespace."""
        return [
            (dependent_resource, obj)
            for dependent_resource, obj in self.dependents_of(owner.metadata.uid)
            if not resource.namespaced or obj.metadata.namespace == owner.metadata.namespace
        ]

    def dependents_of(self, uid: str) -> list[tuple[Resource, Object]]:
        """Returns every object that names this uid as its owner's, in any namespace."""
        return [
            (dependent_resource, obj)
            for dependent_resource, cache in self.caches.items()
            for obj in cache.by_index("owner", uid)
        ]

    def cached(self, resource: Resource, namespace: str) -> Iterable[Object]:
        """Returns the objects of a kind in a namespace; none if the kind is not served."""
        cache = self.caches.get(resource)
        return cache.by_index("namespace", namespace) if cache is not None else ()

    def objects_in(self, namespace: str) -> list[tuple[Resource, Object]]:
        """Returns every object in a namespace."""
        return [
            (resource, obj)
            for resource, cache in self.caches.items()
            if resource.namespaced
            for obj in cache.by_index("namespace", namespace)
        ]

    async def close(self) -> None:
        """Ends the watches."""
        await cancel_tasks(self._tasks.values())


async def discover_kinds(client: Client) -> list[Resource]:
    """Returns every kind that can be listed, watched and deleted, each in one version, preferably the preferred."""
    paths = ["/api/v1"]
    for group in (await _get_json(client, "/apis")).get("groups", ()):
        # The preferred version comes first.
        versions = [group["preferredVersion"], *group["versions"]]
        paths += dict.fromkeys(f"/apis/{version['groupVersion']}" for version in versions)
    resources: dict[tuple[str, str], Resource] = {}
    for body in await asyncio.gather(*(_get_json(client, path) for path in paths)):
        group, _, version = body.get("groupVersion", "").rpartition("/")
        for entry in body.get("resources", ()):
            verbs = set(entry.get("verbs", ()))
            if "/" in entry["name"] or entry["name"] in _IGNORED or not {"list", "watch", "delete"} <= verbs:
                continue
            resource = Resource(
                group=group, version=version, kind=entry["kind"], plural=entry["name"], namespaced=entry["namespaced"]
            )
            resources.setdefault((group, entry["name"]), resource)
    return list(resources.values())


async def _get_json(client: Client, path: str) -> dict[str, Any]:
    """Returns a discovery document, empty if it is not served."""
    try:
        data = await client.send(calls.get_path(path))
    except NotFound:
        return {}
    body: dict[str, Any] = orjson.loads(data)
    return body
