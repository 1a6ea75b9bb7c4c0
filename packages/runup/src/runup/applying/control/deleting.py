"""Deletes the objects that a release removes: sends one request for each, and watches until the object is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.applying.control import object_requests
from runup.applying.decide.task import Task
from runup.process.leader_election import cancel
from runup.release.decide.manifest import Identity

log = structlog.get_logger("payload")


class ObjectDeleter:
    """The deletions of a release that are under way.

    `on_change` is called with True when a deletion was requested, and again when the object is gone.
    """

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[bool], None]) -> None:
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._pending: dict[Identity, asyncio.Task[None]] = {}
        self._requested: set[Identity] = set()

    @property
    def pending(self) -> tuple[str, ...]:
        """The objects whose deletion was requested and that still exist, as sorted text."""
        return tuple(sorted(str(identity) for identity in self._pending))

    async def delete(self, task: Task, resource: Resource | None) -> None:
        """Requests the object's deletion, once. Does nothing if the object or its kind (`resource` None) is absent."""
        identity = task.identity
        if resource is None or identity in self._requested:
            return
        if await object_requests.delete(self._client, resource, identity.name, identity.namespace):
            log.info("deleted", task=str(task))
            self._pending[identity] = asyncio.create_task(self._until_gone(identity, resource))
            self._on_change(True)
        # Only after the request, so that a retry repeats one that failed.
        self._requested.add(identity)

    def forget(self) -> None:
        """Forgets which deletions were requested, so that the next release requests its own again."""
        self._requested.clear()

    async def close(self) -> None:
        """Stops all watches."""
        await cancel(list(self._pending.values()))
        self._pending.clear()

    async def _until_gone(self, identity: Identity, resource: Resource) -> None:
        """Waits until the object is not there any more, by a watch of its own.

        Waits for ever if a finalizer never goes.
        """
        cache: Cache[Object] = Cache(Object)
        changed = asyncio.Event()
        cache.add_listener(lambda *_: changed.set())
        cache.add_state_listener(changed.set)
        key = NamespacedName(identity.namespace, identity.name)
        reflector: Reflector[Any] = Reflector(
            self._client,
            Object,
            cache,
            namespace=identity.namespace,
            field_selector=f"metadata.name={identity.name}",
            clock=self._clock,
            resource=resource,
        )
        watch = asyncio.create_task(reflector.run())
        try:
            while not cache.synced or cache.get(key) is not None:
                changed.clear()
                await changed.wait()
        finally:
            await cancel([watch])
        del self._pending[identity]
        self._on_change(True)
