"""Keeps a cache equal to the server: list in pages, then follow the changes from the list's version on.

What goes in: a client, a kind, a cache. What comes out: the cache, and in `cache.error` what exactly is missing when
the kind cannot be read. Prevents silent staleness: an expired version (410) leads to a new list that is compared with
the cache, a cut connection is resumed where it stopped, and a server in trouble is asked less and less often. One
object that is not as its kind should be is named in `cache.undecoded`, and the others are followed all the same. Where
the server says that it does not have everything, `cache.incomplete` has its words.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import ApiError, ConfigError, Forbidden, Gone, KubeError, NotFound, Transient, Unauthorized
from kubekit.kube.pages import UndecodedEvent, WatchEvent
from kubekit.kube.warnings import incompleteness

K = TypeVar("K", bound=Object)

# client-go's reflector: 800 ms doubling, and watches of 5 to 10 minutes so that they do not end all at once. It goes up
# to 30 s, with its jitter to a minute, as long as nobody knows what the cluster is like once all is well again.
FIRST_BACKOFF_S = 0.8
LONGEST_BACKOFF_S = 10.0
SHORTEST_WATCH_S = 300
# A connection that is silent for so long, bookmarks included, is taken for dead however long the watch was to last.
LONGEST_SILENCE_S = 300.0
# A watch that failed this often in a row is an error that readers must know of; one or two are a server's restart.
PATIENCE = 3


class Reflector(Generic[K]):
    """Fills `cache` with the objects of `kind` that match the selectors, for as long as `run` runs.

    `resource` replaces the kind's own: `Reflector(client, Object, cache, resource=r)` follows the metadata alone.
    `rand` gives numbers from 0 to 1 for the jitter. `listed_as` is what a list is read as, where that is less than what
    a change is. A watch lasts at least `watch_s` seconds, and at most twice as long.
    """

    def __init__(
        self,
        client: Client,
        kind: type[K],
        cache: Cache[K],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock,
        resource: Resource | None = None,
        rand: Callable[[], float] = random.random,
        listed_as: type[K] | None = None,
        watch_s: int = SHORTEST_WATCH_S,
    ) -> None:
        self._client = client
        self._kind = kind
        self._cache = cache
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._clock = clock
        self.resource = resource or resource_of(kind)
        self._rand = rand
        self._failures = 0
        self._listed_as = listed_as or kind
        self._watch_s = watch_s
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Look again now if it waits after a failure: what was missing may be there."""
        if self._failures:
            self._hurried.set()

    async def run(self) -> None:
        """List and watch until cancelled. Errors of the server end up in `cache.error`, never here."""
        relist = True
        while True:
            verb = "list" if relist else "watch"
            try:
                if relist:
                    await self._list()
                    relist, verb = False, "watch"
                await self._watch()
            except Gone:
                # Ours is too old. If even a fresh list's version is, the next failure counts.
                relist = True
                await self._pause_if_again()
            except (KubeError, codec.DecodeError) as error:
                relist = relist or self._must_list_again(error)
                await self._failed(verb, error)

    async def _list(self) -> None:
        found = await self._client.listing(
            self._listed_as,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource=self.resource,
            keep=self._cache.keep,
        )
        self._cache.replace(found.items, found.resource_version, found.undecoded, found.incomplete)

    async def _watch(self) -> None:
        """Follow one watch to its end; one that ends without a word counts as a failure, however politely it ends."""
        timeout_s = int(self._watch_s * (1 + self._rand()))
        call = calls.watch(
            self._kind,
            self._namespace,
            resource_version=self._cache.resource_version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=timeout_s,
            resource=self.resource,
        )
        started = self._clock.monotonic()
        silence_s = timeout_s if self._watch_s <= SHORTEST_WATCH_S else LONGEST_SILENCE_S
        heard = False
        async with aclosing(self._client.stream(call, timeout_s=silence_s, opened=self._opened)) as events:
            async for event in events:
                heard = True
                self._take(event)
        if not heard and self._clock.monotonic() - started < 1:
            raise Transient("the watch ended at once", reason="WatchEnded")
        self._failures = 0

    def _opened(self, warnings: Sequence[str]) -> None:
        self._cache.recover(incompleteness(warnings))

    def _take(self, event: WatchEvent[K] | UndecodedEvent) -> None:
        self._failures = 0
        match event:
            case UndecodedEvent(type="DELETED"):
                self._cache.remove_undecoded(event.object)
            case UndecodedEvent():
                self._cache.put_undecoded(event.object)
            case WatchEvent(type="BOOKMARK"):
                self._cache.bookmark(event.object.metadata.resource_version)
            case WatchEvent(type="DELETED"):
                self._cache.remove(event.object)
            case _:
                self._cache.put(event.object)

    def _must_list_again(self, error: KubeError | codec.DecodeError) -> bool:
        """Whether what stopped the watch may be about its version or a single event, which a list steps over."""
        if isinstance(error, Transient):
            return self._failures + 1 >= PATIENCE
        return not isinstance(error, Forbidden | Unauthorized | ConfigError)

    async def _pause_if_again(self) -> None:
        self._failures += 1
        if self._failures > 1:
            await self._back_off(None)

    async def _failed(self, verb: str, error: KubeError | codec.DecodeError) -> None:
        self._failures += 1
        if not isinstance(error, Transient) or self._failures >= PATIENCE or not self._cache.synced:
            self._cache.fail(why_unreadable(verb, self.resource, self._namespace, error))
        await self._back_off(error.retry_after_s if isinstance(error, Transient) else None)

    async def _back_off(self, retry_after_s: float | None) -> None:
        longest = min(FIRST_BACKOFF_S * 2 ** (self._failures - 1), LONGEST_BACKOFF_S)
        # Up to twice as long, so that a thousand clients of a restarted server do not come back together.
        await self._sleep(max(longest * (1 + self._rand()), retry_after_s or 0))

    async def _sleep(self, seconds: float) -> None:
        """Wait so long, or until somebody knows better."""
        self._hurried.clear()
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait((alarm, hurried), return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            hurried.cancel()


def why_unreadable(verb: str, resource: Resource, namespace: str, error: KubeError | codec.DecodeError) -> str:
    """What is missing, so that a person can supply it: the RBAC rule, the API, the credentials, or the server."""
    where = f' in namespace "{namespace}"' if namespace else ""
    match error:
        case Forbidden():
            return f'not allowed to {verb} {resource.plural} in API group "{resource.group}"{where}: {error.message}'
        case NotFound():
            return f"the server has no API {resource.plural}.{resource.api_version}: {error.message}"
        case codec.DecodeError():
            return f"{resource} cannot be read{where}: the answer is not as expected: {error}"
        case ApiError() | ConfigError() | Transient() | _:
            return f"{resource} cannot be read{where}: {error}"
