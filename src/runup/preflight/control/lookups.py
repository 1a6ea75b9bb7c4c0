"""What cannot be watched is asked for, by the names that other objects call for, and asked again after a while.

In: the cache of those objects. Out: a cache like any other; what cannot be had is its `error`. An aggregated API is
somebody else's program: while it does not answer, what was known of it does not count, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import KubeError
from kubekit.kube.watch import why_unreadable
from runup.checks.decide.reads import Lookup

# Seconds: a catalog changes a few times a day; a server that was away is asked again sooner.
AGAIN_S = 600.0
RETRY_S = 30.0


class Lookups:
    """Fills `cache` with what the objects in `of` call for, for as long as `run` runs."""

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
        """Ask until cancelled."""
        while True:
            wanted = self._wanted()
            if wanted is not None:
                await self._look(wanted)
            await self._until_due(wanted)

    def _wanted(self) -> list[tuple[str, str]] | None:
        """Namespace and name of each; None where nobody knows yet, none where those that call cannot be read."""
        of = self._of
        if of is None or of.error is not None:
            return []
        names = {self.resource.names(obj) for obj in of.all()} if of.synced else None
        return None if names is None else sorted(each for each in names if each[1])

    async def _look(self, wanted: list[tuple[str, str]]) -> None:
        found: list[Any] = []
        undecoded: list[Any] = []
        try:
            for namespace, name in wanted:
                listed = await self._client.listing(
                    self.resource.type,
                    namespace,
                    field_selector=f"metadata.name={name}",
                    resource=self.resource,
                    keep=self.resource.keep,
                )
                found += listed.items
                undecoded += listed.undecoded
        except (KubeError, DecodeError) as error:
            self._cache.fail(why_unreadable("list", self.resource, "", error))
            return
        self._cache.replace(found, "", undecoded)
        self._cache.recover()

    async def _until_due(self, looked: list[tuple[str, str]] | None) -> None:
        """Until other objects are called for, or it is time to ask again."""
        wait_s = RETRY_S if self._cache.error is not None else AGAIN_S
        alarm = asyncio.ensure_future(self._clock.sleep(wait_s))
        try:
            while not alarm.done():
                self._called.clear()
                if self._wanted() != looked:
                    return
                called = asyncio.ensure_future(self._called.wait())
                await asyncio.wait((alarm, called), return_when=asyncio.FIRST_COMPLETED)
                called.cancel()
        finally:
            alarm.cancel()
