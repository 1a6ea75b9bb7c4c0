"""Authorizes readers of metrics by TokenReview and SubjectAccessReview, as kube-rbac-proxy does.

In: the Authorization header of a request. Out: None, or a refusal with message and HTTP status. A failed review is a
refusal, too. Answers are cached for a short time, so that a scrape every few seconds costs the API server nothing and
a revoked right ends within a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from kubekit.api.codec import DecodeError
from kubekit.kube import reviews
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within

ALLOWED_FOR_S = 60.0
REFUSED_FOR_S = 10.0
# Prometheus gives up a scrape after 10 s.
ANSWER_S = 8.0
# Limits against made-up tokens: answers kept in memory, and reviews sent to the API server at a time.
MAX_CACHED = 256
MAX_CONCURRENT = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request; `status` is the HTTP status."""

    status: int
    message: str


class MetricsAuthorizer:
    """A cache of reviews of whether a request's sender may `get` a path. Tokens are kept as hashes only."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: OrderedDict[tuple[bytes, str], tuple[float, Refusal | None]] = OrderedDict()
        self._asking = asyncio.Semaphore(MAX_CONCURRENT)

    @property
    def cached(self) -> int:
        """The number of answers that are remembered."""
        return len(self._kept)

    async def refusal(self, authorization: str, path: str) -> Refusal | None:
        """Returns why the sender of this header may not read `path`; None if they may."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Refusal(401, "a bearer token is needed")
        key = (hashlib.sha256(token.strip().encode()).digest(), path)
        cached = self._kept.get(key)
        if cached is not None and self._clock.monotonic() < cached[0]:
            return cached[1]
        try:
            refusal = await run_within(self._clock, ANSWER_S, self._review_access(token.strip(), path))
        except (KubeError, DecodeError, TimeoutError) as error:
            # Not kept: the API server may answer the next scrape.
            return Refusal(503, f"the API server could not be asked who may read this: {error}")
        self._keep_answer(key, refusal)
        return refusal

    async def _review_access(self, token: str, path: str) -> Refusal | None:
        """Asks the API server whether the token's user may get `path`; returns the refusal, None if so."""
        async with self._asking:
            identity = await self._client.send(reviews.who_is(token))
            if not identity.authenticated:
                return Refusal(401, "the API server does not know this token")
            access = await self._client.send(reviews.may_reach_path(identity.user, "get", path))
        if access.allowed and not access.denied:
            return None
        return Refusal(403, f'{identity.user.username} may not get the non-resource URL "{path}"')

    def _keep_answer(self, key: tuple[bytes, str], refusal: Refusal | None) -> None:
        """Keeps a review's answer for a while; of more than `MAX_CACHED` the oldest goes."""
        lasts_s = ALLOWED_FOR_S if refusal is None else REFUSED_FOR_S
        self._kept[key] = (self._clock.monotonic() + lasts_s, refusal)
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_CACHED:
            # The oldest answer goes first.
            self._kept.popitem(last=False)
