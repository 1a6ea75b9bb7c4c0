"""Keeps in memory what the checks read: one cache and one watch for each read, with only the fields that are needed.

Returns a `Snapshot`: the known objects, and for every other kind the reason why it is not known. A kind that was listed
once and can no longer be watched counts as not known, because its objects may be outdated. A single object that does
not decode is named, and the others are known. A kind whose list the server returned only in part is named as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache, Changes, differs_beyond_version
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import NO_API, FirstReads, Reflector, why_unreadable
from runup.checks.decide.model import Snapshot
from runup.checks.decide.reads import Lookup, Slim, has_type, kept_form, namespace_of, type_of

# Refusals that waiting does not change (kubekit.kube.watch.why_unreadable).
_FINAL = ("not allowed to ", NO_API)


def _looked_up(resource: Resource, cache: Cache[Any]) -> bool:
    """Returns whether `resource` is a lookup that fails at present: an aggregated API must not delay the checks."""
    return isinstance(resource, Lookup) and cache.error is not None


class WatchedKinds:
    """The caches of what checks read, one for each resource; `changed()` is called after every change of any of them.

    `_listed` keeps the sorted objects of a resource until they change, `_news` counts its changes, and `_unknown` says
    why a resource cannot be read at all.
    """

    def __init__(
        self,
        client: Client,
        resources: Iterable[Resource],
        *,
        clock: Clock,
        changed: Callable[[], None],
        first_reads: FirstReads | None = None,
    ) -> None:
        self.caches: dict[Resource, Cache[Any]] = {}
        self._reflectors: list[Reflector[Any] | Lookups] = []
        self._listed: dict[Resource, tuple[Any, ...]] = {}
        self._news: Counter[Resource] = Counter()
        self._first_reads = first_reads
        self._unknown = {item: "this release has no type for it" for item in resources if not has_type(item)}
        # A Lookup needs the cache of the objects that refer to it, so lookups come last.
        for resource in sorted(
            dict.fromkeys(resources), key=lambda watched_resource: isinstance(watched_resource, Lookup)
        ):
            if resource not in self._unknown:
                self._add(client, resource, clock, changed)

    def _add(self, client: Client, resource: Resource, clock: Clock, changed: Callable[[], None]) -> None:
        """Adds the cache of one resource, with what fills it: a watch, or a lookup by name."""
        kind = type_of(resource)
        slim = resource if isinstance(resource, Slim) else None
        cache: Cache[Any] = Cache(kind, keep=kept_form(resource))

        def count_news() -> None:
            self._news[resource] += 1
            changed()

        def on_changes(changes: Changes[Any]) -> None:
            # A heartbeat that changes none of the kept fields is not a change.
            if any(differs_beyond_version(old, new) for _, old, new in changes):
                self._listed.pop(resource, None)
                count_news()

        cache.add_changes_listener(on_changes)
        cache.add_state_listener(count_news)
        self.caches[resource] = cache
        if resource.kind == "CustomResourceDefinition":
            cache.add_changes_listener(self._hurry_missing)
        if isinstance(resource, Lookup):
            self._reflectors.append(
                Lookups(client, resource, of=self.caches.get(resource.of or resource), cache=cache, clock=clock)
            )
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
                first_reads=self._first_reads,
            )
        )

    def _hurry_missing(self, changes: Changes[Any]) -> None:
        """Lists the kinds of new and changed definitions at once, if they are missing: they may be served by now."""
        defined = {new.metadata.name for _, _, new in changes if new is not None}
        for reflector in self._reflectors:
            if (
                isinstance(reflector, Reflector)
                and f"{reflector.resource.plural}.{reflector.resource.group}" in defined
            ):
                reflector.hurry()

    async def run(self) -> None:
        """Watches every resource until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    @property
    def kinds(self) -> set[str]:
        """The kinds that are read, by name; one that is read in several namespaces counts once."""
        return {str(resource) for resource in self.caches}

    @property
    def waiting(self) -> tuple[Resource, ...]:
        """The reads that have neither an answer nor a final refusal yet."""
        return tuple(
            resource
            for resource, cache in self.caches.items()
            if not cache.synced and not (cache.error or "").startswith(_FINAL) and not _looked_up(resource, cache)
        )

    @property
    def trouble(self) -> str:
        """The error of the first waiting read that has one, or an empty string."""
        return next((error for resource in self.waiting if (error := self.caches[resource].error)), "")

    @property
    def news(self) -> Mapping[Resource, int]:
        """A number for each read, which changes whenever the read's objects or state change."""
        return dict(self._news)

    def snapshot(self) -> Snapshot:
        """Returns a snapshot of the current objects.

        An object's resourceVersion may be an earlier one.
        """
        # Tuples of unchanged kinds are reused: there may be hundreds of thousands of objects.
        fresh = {resource: cache for resource, cache in self.caches.items() if resource not in self._listed}
        self._listed |= {resource: tuple(cache.all()) for resource, cache in fresh.items()}
        objects = {resource: self._listed[resource] for resource, cache in self.caches.items() if cache.ready}
        # An empty list and an unread kind must not look the same to a check, so each has a reason.
        lacking = {
            resource: cache.error or "it was not listed yet"
            for resource, cache in self.caches.items()
            if not cache.ready
        }
        undecoded = {
            resource: bad for resource, cache in self.caches.items() if cache.ready and (bad := cache.undecoded)
        }
        incomplete = {
            resource: problem
            for resource, cache in self.caches.items()
            if cache.ready and (problem := cache.incomplete)
        }
        absent = frozenset(resource for resource, why in lacking.items() if why.startswith(NO_API))
        return Snapshot(
            objects=objects,
            unreadable=lacking | self._unknown,
            undecoded=undecoded,
            incomplete=incomplete,
            absent=absent,
        )


# Seconds: a catalog changes a few times a day; a server that did not answer is asked again sooner.
AGAIN_S = 600.0
RETRY_S = 30.0


class Lookups:
    """Fills `cache` with the objects that those in `of` refer to, for as long as `run` runs."""

    def __init__(
        self, client: Client, resource: Lookup, of: Cache[Any] | None, cache: Cache[Any], clock: Clock
    ) -> None:
        self.resource = resource
        self._client, self._of, self._cache, self._clock = client, of, cache, clock
        self._called = asyncio.Event()
        if of is not None:
            of.add_state_listener(self._called.set)
            of.add_listener(lambda _change, _old, _new: self._called.set())

    async def run(self) -> None:
        """Reads the objects again and again until cancelled."""
        while True:
            wanted_pairs = self._pairs_wanted()
            if wanted_pairs is not None:
                await self._read_wanted(wanted_pairs)
            await self._until_due(wanted_pairs)

    def _pairs_wanted(self) -> list[tuple[str, str]] | None:
        """Returns the sorted (namespace, name) pairs to read; None if they are not known yet.

        Returns an empty list if the objects that refer to them cannot be read.
        """
        of = self._of
        if of is None or of.error is not None:
            return []
        references = {self.resource.names(obj) for obj in of.all()} if of.synced else None
        return None if references is None else sorted(reference for reference in references if reference[1])

    async def _read_wanted(self, wanted_pairs: list[tuple[str, str]]) -> None:
        """Reads the wanted objects into the cache, or records there why they cannot be read."""
        objects: list[Any] = []
        undecoded: list[Any] = []
        try:
            for namespace, name in wanted_pairs:
                listed = await self._client.listing(
                    self.resource.type,
                    namespace,
                    # A list with a field selector and not a get: aggregated APIs may have several objects of one name.
                    field_selector=f"metadata.name={name}",
                    resource=self.resource,
                    keep=self.resource.keep,
                )
                objects += listed.items
                undecoded += listed.undecoded
        except (KubeError, DecodeError) as error:
            self._cache.fail(why_unreadable("list", self.resource, "", error))
            return
        self._cache.replace(objects, "", undecoded)
        self._cache.recover()

    async def _until_due(self, found_keys: list[tuple[str, str]] | None) -> None:
        """Waits until other objects are referred to, or it is time to read again."""
        wait_s = RETRY_S if self._cache.error is not None else AGAIN_S
        alarm = asyncio.ensure_future(self._clock.sleep(wait_s))
        try:
            while not alarm.done():
                self._called.clear()
                if self._pairs_wanted() != found_keys:
                    return
                called = asyncio.ensure_future(self._called.wait())
                await asyncio.wait((alarm, called), return_when=asyncio.FIRST_COMPLETED)
                called.cancel()
        finally:
            alarm.cancel()
