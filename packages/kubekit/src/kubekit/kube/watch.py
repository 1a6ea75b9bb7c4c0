"""Keeps a cache equal to the server: lists in pages, then watches the changes from the list's version on.

In: a client, a kind, a cache. Out: the cache, with the exact reason in `cache.error` if the kind cannot be read.
Prevents outdated caches: an expired version (410) leads to a new list that is compared with the cache, and so does a
watch that is silent for minutes, as after a restore of etcd, when the server is behind the version that it is watched
from. A broken connection is resumed where it stopped, and a failing server is asked at growing intervals. An object
that cannot be decoded is named in `cache.undecoded`, and the others are still watched. If the server says that its
answer is incomplete, `cache.incomplete` has the reasons. `FirstReads` orders the first requests of many reflectors.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from typing import Any, Generic, TypeVar

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, ConfigError, Forbidden, Gone, KubeError, NotFound, Transient, Unauthorized
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within
from kubekit.kube.list_pages import UndecodedEvent, WatchEvent, reasons_incomplete


class Allowance:
    """A token bucket: at most `burst` tokens, refilled with one every `interval_s` seconds."""

    def __init__(self, burst: int, interval_s: float) -> None:
        self._burst = burst
        self._interval_s = interval_s
        # The time at which all turns are back, in seconds of the caller's monotonic clock.
        self._full_at = float("-inf")

    def take(self, now: float) -> bool:
        """Takes a turn at `now`; returns False if it does not exist."""
        full_at = max(self._full_at, now) + self._interval_s
        if full_at - now > self._burst * self._interval_s:
            return False
        self._full_at = full_at
        return True


LISTS_AT_ONCE = 8
# One kind that does not answer leaves a turn to the others.
WATCHES_AT_ONCE = 2
LONGEST_S = 2.0

# Every server of Kubernetes has it. One that has just begun may list less than it will serve.
_ALWAYS_SERVED = "apps/v1"


class FirstReads:
    """Orders the first requests for these kinds for callers who wait until all of them were read.

    Each connection costs a TLS handshake, which takes milliseconds of processor time on both sides, and a watch needs
    one to itself. So lists take turns on `at_once` connections. Watches begin when `begin_watches` is called, those
    that it names at once and the others in turns. No request waits for its turn for longer than `longest_s` seconds,
    so that slow kinds do not hold up the others.

    With a `client`, kinds whose version the server does not have are not listed: that takes one request for all.
    """

    def __init__(
        self, clock: Clock, client: Client | None = None, *, at_once: int = LISTS_AT_ONCE, longest_s: float = LONGEST_S
    ) -> None:
        self._clock = clock
        self._client = client
        self._longest_s = longest_s
        self._turns = asyncio.Semaphore(at_once)
        self._watching = asyncio.Event()
        self._watch_turns = asyncio.Semaphore(WATCHES_AT_ONCE)
        self._watched_first: frozenset[Resource] = frozenset()
        self._asking = asyncio.Lock()
        # The versions that the server has; empty if that is not known, None before it was asked.
        self._served: frozenset[str] | None = None

    async def lacks(self, resource: Resource) -> bool:
        """Returns whether the server is known not to have the version of `resource`."""
        if self._client is None or not resource.group:
            return False
        if self._served is None:
            async with self._asking:
                self._served = self._served if self._served is not None else await self._ask(self._client)
        return bool(self._served) and resource.api_version not in self._served

    async def _ask(self, client: Client) -> frozenset[str]:
        try:
            served = await run_within(self._clock, self._longest_s, client.send(calls.list_group_versions()))
        except (KubeError, codec.DecodeError, TimeoutError):
            return frozenset()
        return served if _ALWAYS_SERVED in served else frozenset()

    def begin_watches(self, first: Collection[Resource] = ()) -> None:
        """Lets watches begin, those of `first` before the others, and those of kinds that are listed later at once."""
        if not self._watching.is_set():
            self._watched_first = frozenset(first)
            self._watching.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn to list, which ends with the block."""
        is_own = await self._waits(self._turns.acquire())
        try:
            yield
        finally:
            if is_own:
                self._turns.release()

    async def until_watch(self, resource: Resource) -> Callable[[], None]:
        """Waits until a watch may begin. The caller calls the returned function once the watch has begun."""
        await self._waits(self._watching.wait())
        if resource in self._watched_first or not await self._waits(self._watch_turns.acquire()):
            return _nothing
        return _Once(self._watch_turns.release)

    async def _waits(self, wait: Coroutine[Any, Any, bool]) -> bool:
        """Returns whether `wait` ended in time."""
        try:
            return await run_within(self._clock, self._longest_s, wait)
        except TimeoutError:
            return False


class _Once:
    """A call that is made at most once, regardless of the number of requests for it."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


def _nothing() -> None:
    """Does nothing."""


K = TypeVar("K", bound=Object)

# client-go's reflector: 800 ms doubling, and watches of 5 to 10 minutes so that they do not end all at once. It goes up
# to 30 s, with its jitter to a minute, which would delay the discovery that the server is back for as long.
FIRST_BACKOFF_S = 0.8
LONGEST_BACKOFF_S = 10.0
# A kind that is not served comes with an installation, if at all; who sees its definition calls `hurry`.
LONGEST_MISSING_BACKOFF_S = 120.0
_FAILURES_UNTIL_LONGEST = int(LONGEST_MISSING_BACKOFF_S / FIRST_BACKOFF_S).bit_length() + 1
SHORTEST_WATCH_S = 300
# Seconds without any event, bookmarks included, after which a connection counts as dead.
CONNECTION_SILENCE_S = 300.0
# Seconds without any event after which a watch's version is taken for one that the server has not reached:
# kube-apiserver sends a bookmark every minute. After a restore of etcd it sends nothing until it has reached that
# version again. A server that has written more than was lost before the watch is resumed cannot be distinguished
# from one that lost nothing.
RELIST_AFTER_SILENCE_S = 150.0
# The beginning of what a cache's error is for a kind that the server does not serve.
NO_API = "the server has no API "
# Watches that follow each other at once, and seconds until there is room for another one.
BURST = 10
INTERVAL_S = 1.0
# Consecutive failures of a watch that are reported as an error; one or two may be a restart of the server.
PATIENCE = 3


class Reflector(Generic[K]):
    """Fills `cache` with the objects of `kind` that match the selectors, for as long as `run` runs.

    `resource` replaces the kind's own: `Reflector(client, Object, cache, resource=r)` watches only the metadata. `rand`
    returns numbers from 0 to 1 for jitter. `listed_as` is the type for lists, if it has fewer fields than the type for
    changes. A watch lasts at least `watch_s` seconds, and at most twice as long. `first_reads` orders the requests of
    many reflectors until the first watch.
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
        rand: Callable[[], float] = random.random,  # noqa: S311 -- spreads requests, is no secret
        listed_as: type[K] | None = None,
        watch_s: int = SHORTEST_WATCH_S,
        first_reads: FirstReads | None = None,
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
        self.watch_s = watch_s
        # None from the first watch on.
        self._first_reads = first_reads
        # Called when a watch has begun, or cannot.
        self._end_turn: Callable[[], None] = lambda: None
        self._hurried = asyncio.Event()
        self._starts = Allowance(BURST, INTERVAL_S)
        # When the watch began, and whether anything was heard of it since.
        self._began = 0.0
        self._heard = True

    def hurry(self) -> None:
        """Ends the wait after a failure, because what was missing may exist now, or in a moment."""
        if self._failures:
            self._failures = 1
            self._hurried.set()

    async def run(self) -> None:
        """Lists and watches until cancelled. Errors of the server are stored in `cache.error` and never raised."""
        if self._first_reads is not None and await self._first_reads.lacks(self.resource):
            self._cache.fail(f"{NO_API}{_api_name(self.resource)}: it does not serve {self.resource.api_version}")
            # As if it had been missing for long: the watcher of its definition calls `hurry`.
            self._failures = _FAILURES_UNTIL_LONGEST
            await self._back_off(None, LONGEST_MISSING_BACKOFF_S)
        relist = True
        while True:
            verb = "list" if relist else "watch"
            try:
                if relist:
                    async with self._turn():
                        listing = await self._client.listing(
                            self._listed_as,
                            self._namespace,
                            label_selector=self._label_selector,
                            field_selector=self._field_selector,
                            resource=self.resource,
                            keep=self._cache.keep,
                        )
                        self._cache.replace(
                            listing.items, listing.resource_version, listing.undecoded, listing.incomplete
                        )
                    relist, verb = False, "watch"
                if self._first_reads is not None:
                    self._end_turn = await self._first_reads.until_watch(self.resource)
                    self._first_reads = None
                try:
                    await self._watch_once()
                finally:
                    self._end_turn()
                relist = self._is_silent()
            except (Gone, _Restored):
                # The version is too old. If even that of a new list is, the next failure is backed off.
                relist = True
                self._failures += 1
                if self._failures > 1:
                    await self._back_off(None)
            except (KubeError, codec.DecodeError) as error:
                relist = relist or self._must_list_again(error) or self._is_silent()
                self._failures += 1
                if not isinstance(error, Transient) or self._failures >= PATIENCE or not self._cache.synced:
                    self._cache.fail(why_unreadable(verb, self.resource, self._namespace, error))
                limit = LONGEST_MISSING_BACKOFF_S if isinstance(error, NotFound) else LONGEST_BACKOFF_S
                await self._back_off(error.retry_after_s if isinstance(error, Transient) else None, limit)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._first_reads is None else self._first_reads.turn()

    async def _watch_once(self) -> None:
        """Follows one watch to its end; a watch that ends at once without an event counts as a failure."""
        timeout_s = int(self.watch_s * (1 + self._rand()))
        call = calls.watch(
            self._kind,
            self._namespace,
            resource_version=self._cache.resource_version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=timeout_s,
            resource=self.resource,
        )
        # A server or proxy that ends every watch after an event would otherwise be asked in a tight loop.
        while not self._starts.take(self._clock.monotonic()):
            await self._clock.sleep(INTERVAL_S)
        self._began, self._heard = self._clock.monotonic(), False
        silence_s = min(timeout_s, CONNECTION_SILENCE_S)
        async with aclosing(self._client.stream(call, timeout_s=silence_s, opened=self._on_watch_opened)) as events:
            async for event in events:
                self._heard = True
                self._apply_event(event)
        if not self._heard and self._clock.monotonic() - self._began < 1:
            raise Transient("the watch ended at once", reason="WatchEnded")
        self._failures = 0

    def _is_silent(self) -> bool:
        return not self._heard and self._clock.monotonic() - self._began >= RELIST_AFTER_SILENCE_S

    def _on_watch_opened(self, warnings: Sequence[str]) -> None:
        self._end_turn()
        self._cache.recover(reasons_incomplete(warnings))

    def _apply_event(self, event: WatchEvent[K] | UndecodedEvent) -> None:
        """Applies one event of the watch to the cache."""
        self._failures = 0
        match event:
            case UndecodedEvent(type="DELETED"):
                self._cache.remove_undecoded(event.object)
            case UndecodedEvent():
                self._cache.put_undecoded(event.object)
            case WatchEvent(type="BOOKMARK"):
                version = event.object.metadata.resource_version
                if _is_older(version, self._cache.resource_version):
                    raise _Restored
                self._cache.bookmark(version)
            case WatchEvent(type="DELETED"):
                self._cache.remove(event.object)
            case _:
                self._cache.put(event.object)

    def _must_list_again(self, error: KubeError | codec.DecodeError) -> bool:
        """Returns whether the error may concern the watch's version or a single event, which a new list gets past."""
        if isinstance(error, Transient):
            return self._failures + 1 >= PATIENCE
        return not isinstance(error, Forbidden | Unauthorized | ConfigError)

    async def _back_off(self, retry_after_s: float | None, limit: float = LONGEST_BACKOFF_S) -> None:
        # Only so many doublings as reach the limit: a kind may be missing for months.
        longest = min(FIRST_BACKOFF_S * 2 ** min(self._failures - 1, 16), limit)
        self._hurried.clear()
        # Up to twice as long, so that a thousand clients of a restarted server do not come back together.
        alarm = asyncio.ensure_future(self._clock.sleep(max(longest * (1 + self._rand()), retry_after_s or 0)))
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait((alarm, hurried), return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            hurried.cancel()


class _Restored(Exception):
    """The server is behind the version that it is watched from."""


def _is_older(version: str, than: str) -> bool:
    """Returns whether `version` is before the other: of one kind they are numbers that rise (KEP-5504)."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


def _api_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.api_version}"


def why_unreadable(verb: str, resource: Resource, namespace: str, error: KubeError | codec.DecodeError) -> str:
    """Returns what the user must provide: the RBAC rule, the API, the credentials, or the server."""
    scope = f' in namespace "{namespace}"' if namespace else ""
    match error:
        case Forbidden():
            return f'not allowed to {verb} {resource.plural} in API group "{resource.group}"{scope}: {error.message}'
        case NotFound():
            return f"{NO_API}{_api_name(resource)}: {error.message}"
        case codec.DecodeError():
            return f"{resource} cannot be read{scope}: the answer is not as expected: {error}"
        case ApiError() | ConfigError() | Transient() | _:
            return f"{resource} cannot be read{scope}: {error}"
