"""Keeps in memory what the checks read: one cache and one watch a read, only the fields that are needed.

Out comes a `Snapshot`: what is known, and for every kind that is not, what is lacking. A kind that was listed once and
cannot be followed any more counts as not known: an old answer is no answer. A single object that is not as its kind
should be is named, and the others are known. So is a kind of which the server says that it has only a part.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache, Changes
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.checks.decide.model import Snapshot
from runup.checks.decide.reads import Lookup, Slim, known, namespace_of, type_of
from runup.preflight.control.lookups import Lookups

# Answers of the server that waiting does not change (kubekit.kube.watch.why_unreadable).
_ABSENT = "the server has no API "
_FINAL = ("not allowed to ", _ABSENT)


def _looked_up(resource: Resource, cache: Cache[Any]) -> bool:
    """Whether it is known of what is looked up that it cannot be just now: an API of somebody else holds nobody up."""
    return isinstance(resource, Lookup) and cache.error is not None


def _unversioned(obj: Object) -> Object:
    return replace(obj, metadata=replace(obj.metadata, resource_version=""))


class Reads:
    """The caches of `resources`; `changed()` is called after every change of any of them."""

    def __init__(
        self, client: Client, resources: Iterable[Resource], *, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._caches: dict[Resource, Cache[Any]] = {}
        self._reflectors: list[Reflector[Any] | Lookups] = []
        self._listed: dict[Resource, tuple[Any, ...]] = {}
        self._news: Counter[Resource] = Counter()
        self._unknown = {item: "this release has no type for it" for item in resources if not known(item)}
        # Those that others call for come after them.
        for resource in sorted(dict.fromkeys(resources), key=lambda each: isinstance(each, Lookup)):
            if resource not in self._unknown:
                self._add(client, resource, clock, changed)

    def _add(self, client: Client, resource: Resource, clock: Clock, changed: Callable[[], None]) -> None:
        kind = type_of(resource)
        slim = resource if isinstance(resource, Slim) else None
        cache: Cache[Any] = Cache(kind, keep=slim.keep if slim else None)

        def news() -> None:
            self._news[resource] += 1
            changed()

        def heard(changes: Changes[Any]) -> None:
            # A heartbeat that touches nothing of what is kept is no news.
            if any(old is None or new is None or _unversioned(old) != _unversioned(new) for _, old, new in changes):
                self._listed.pop(resource, None)
                news()

        cache.add_changes_listener(heard)
        cache.add_state_listener(news)
        self._caches[resource] = cache
        if isinstance(resource, Lookup):
            self._reflectors.append(Lookups(client, resource, self._caches.get(resource.of or resource), cache, clock))
            return
        self._reflectors.append(
            Reflector(
                client,
                kind,
                cache,
                namespace=namespace_of(resource),
                label_selector=slim.label_selector if slim else "",
                clock=clock,
                resource=resource,
            )
        )

    async def run(self) -> None:
        """Follow every read until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    @property
    def kinds(self) -> set[str]:
        """The kinds that are read, by name; one that is read of several namespaces is one."""
        return {str(resource) for resource in self._caches}

    @property
    def waiting(self) -> tuple[Resource, ...]:
        """The reads of which it is not known yet what they come to, not even that they are forbidden."""
        return tuple(
            resource
            for resource, cache in self._caches.items()
            if not cache.synced and not (cache.error or "").startswith(_FINAL) and not _looked_up(resource, cache)
        )

    @property
    def trouble(self) -> str:
        """What keeps the first of those from being read, or nothing."""
        return next((error for resource in self.waiting if (error := self._caches[resource].error)), "")

    @property
    def news(self) -> Mapping[Resource, int]:
        """A number for each read, another one whenever something of it changed."""
        return dict(self._news)

    def snapshot(self) -> Snapshot:
        """What is known now; later changes do not reach it. An object's resourceVersion may be an earlier one."""
        # Hundreds of thousands of objects are not put together again because another kind changed.
        fresh = {resource: cache for resource, cache in self._caches.items() if resource not in self._listed}
        self._listed |= {resource: tuple(cache.all()) for resource, cache in fresh.items()}
        objects = {resource: self._listed[resource] for resource, cache in self._caches.items() if cache.ready}
        lacking = {
            resource: cache.error or "it was not listed yet"
            for resource, cache in self._caches.items()
            if not cache.ready
        }
        undecoded = {
            resource: bad for resource, cache in self._caches.items() if cache.ready and (bad := cache.undecoded)
        }
        incomplete = {
            resource: why for resource, cache in self._caches.items() if cache.ready and (why := cache.incomplete)
        }
        absent = frozenset(resource for resource, why in lacking.items() if why.startswith(_ABSENT))
        return Snapshot(objects, lacking | self._unknown, undecoded, incomplete, absent)
