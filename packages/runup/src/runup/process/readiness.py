"""Decides whether a process is ready: its caches follow the cluster, and the API server answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubekit.api.codec import DecodeError
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within
from kubekit.kube.request import Call, Request

# A kubelet's probe gives up after a second, unless told otherwise.
ANSWER_S = 0.8
ASKED_EVERY_S = 5.0
_VERSION = Call(Request(method="GET", path="/version"), lambda _data: None)


class Readiness:
    """The readiness of a process: its caches, and a periodic request to the API server.

    `lacking()` names what is needed and was never read; a kind that a cluster does not have is not needed.
    """

    def __init__(self, client: Client, clock: Clock, lacking: Callable[[], str], caches: Iterable[Cache[Any]]) -> None:
        self._client = client
        self._clock = clock
        self._lacking = lacking
        self._caches = tuple(caches)
        self._asked_at = float("-inf")
        self._unanswered = ""

    async def why_not(self) -> str:
        """Returns what is missing, as text for the reader of a probe; empty if nothing is."""
        return self._lacking() or self._why_stale() or await self._why_unanswered()

    def _why_stale(self) -> str:
        """Returns the first cache that is no longer followed, so that its content may be stale; empty if none is."""
        stale = (cache for cache in self._caches if cache.synced and cache.error is not None)
        return next((f"{cache.kind.__name__} is not followed any more: {cache.error}" for cache in stale), "")

    async def _why_unanswered(self) -> str:
        """Returns why the API server does not answer, empty if it does; it is asked every `ASKED_EVERY_S` seconds."""
        if self._clock.monotonic() - self._asked_at >= ASKED_EVERY_S:
            try:
                await run_within(self._clock, ANSWER_S, self._client.send(_VERSION))
            except (KubeError, DecodeError, TimeoutError) as error:
                self._unanswered = f"the API server does not answer: {error}"
            else:
                self._unanswered = ""
            self._asked_at = self._clock.monotonic()
        return self._unanswered
