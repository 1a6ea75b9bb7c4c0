"""The last few releases that were loaded, by digest: what a digest names never changes, so neither does what is kept.

Bounded, in memory, and gone with the process. One question at a time for an image: who asks second gets the same
answer. What failed is not kept, so asking again tries again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from runup.domain.release.payload import Payload
from runup.oci.reference import digest_of

KEPT = 2
"""A release that is updated to and one that is asked for instead; each takes as much as its manifests, some 10 MB."""


class Cache:
    """Payloads by the digest of their image; what is named by tag is loaded anew each time."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._found: OrderedDict[str, Payload] = OrderedDict()
        self._asked: dict[str, tuple[asyncio.Lock, int]] = {}

    async def get(self, image: str, load: Callable[[], Awaitable[Payload]]) -> Payload:
        """The payload of `image`, by `load` where it is not known; raises what that raises."""
        digest = digest_of(image)
        if not digest:
            return await load()
        # A manifest renders its own pull spec, so that two names of one image are two payloads.
        lock, waiting = self._asked.get(image, (asyncio.Lock(), 0))
        self._asked[image] = (lock, waiting + 1)
        try:
            async with lock:
                if image not in self._found:
                    self._found[image] = await load()
                self._found.move_to_end(image)
                while len(self._found) > self._kept:
                    self._found.popitem(last=False)
                return self._found[image]
        finally:
            self._leave(image)

    def _leave(self, image: str) -> None:
        lock, waiting = self._asked.pop(image)
        if waiting > 1:
            self._asked[image] = (lock, waiting - 1)
