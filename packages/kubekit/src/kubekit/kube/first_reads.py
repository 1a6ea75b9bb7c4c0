"""Orders the first requests of many reflectors: lists of what is served over few connections, watches afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.kube import discovery
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within

LISTS_AT_ONCE = 8
# One kind that does not answer leaves a turn to the others.
WATCHES_AT_ONCE = 2
LONGEST_S = 2.0

# Every server of Kubernetes has it. One that has just begun may list less than it will serve.
_ALWAYS_SERVED = "apps/v1"


class FirstReads:
    """The order of the first requests for whoever waits for all of these kinds, and for no change of them yet.

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
            served = await run_within(self._clock, self._longest_s, client.send(discovery.list_group_versions()))
        except (KubeError, DecodeError, TimeoutError):
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
        """Waits until the watch of `resource` may begin; whoever waits calls what is returned once it has begun."""
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
    """A call that is made once, however often it is asked for."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


def _nothing() -> None:
    """Does nothing."""
