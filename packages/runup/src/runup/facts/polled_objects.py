"""Reads objects that cannot be watched, by the names that other objects refer to, and reads them again after a while.

In: the cache of the objects that refer to them. Out: a cache like any other, with its `error` if a read fails. An
aggregated API is another party's program: while it does not answer, earlier answers do not count, and nothing waits.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import why_unreadable
from runup.checks.decide.reads import Lookup

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
