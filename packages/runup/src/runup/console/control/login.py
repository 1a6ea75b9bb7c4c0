"""Decides who may log in: a bearer token whose user may get the ClusterVersion of the cluster that is asked.

In: a token. Out: the user's name, or a refusal. The cluster says who it is (TokenReview) and what they may
(SubjectAccessReview); an answer that does not come is a refusal, too.
"""

from __future__ import annotations

import asyncio

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import resource_of
from kubekit.kube import reviews
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within
from runup.api.config_v1 import ClusterVersion
from runup.process.endpoint import Refusal

ANSWER_S = 10.0
# Reviews that are sent to the API server at a time, and logins that wait for one: made-up tokens cost it no more.
AT_ONCE = 4
WAITING = 32
# Tokens of service accounts have some 1,200 characters; those of OpenID Connect providers may have several thousand.
MAX_TOKEN = 12_000


class Logins:
    """Reviews tokens. Nothing of a token is kept."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._asking = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def user_of(self, token: str) -> str | Refusal:
        """Returns the name of the token's user, or why they may not log in."""
        token = token.strip()
        if not token or len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            return Refusal(401, "that is not a bearer token; `oc whoami -t` or `kubectl create token` prints one")
        if self._waiting >= WAITING:
            return Refusal(503, "too many logins at once; try again in a minute")
        self._waiting += 1
        try:
            return await run_within(self._clock, ANSWER_S, self._review(token))
        except (KubeError, DecodeError, TimeoutError) as error:
            reason = str(error) or "it did not answer in time"
            return Refusal(503, f"the API server could not be asked who this is: {reason}")
        finally:
            self._waiting -= 1

    async def _review(self, token: str) -> str | Refusal:
        """Returns the user's name, or why the token may not log in. Raises KubeError."""
        async with self._asking:
            identity = await self._client.send(reviews.who_is(token))
            if not identity.authenticated or not identity.user.username:
                return Refusal(401, "the API server does not know this token")
            review = reviews.may_user(identity.user, "get", resource_of(ClusterVersion), name="version")
            access = await self._client.send(review)
        if access.allowed and not access.denied:
            return identity.user.username
        return Refusal(403, f"{identity.user.username} may not get clusterversions.config.openshift.io")
