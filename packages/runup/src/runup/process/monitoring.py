"""Queries the API of Prometheus or Thanos, with a credential, within a time limit and a size limit."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection
from pathlib import Path

import aiohttp

from kubekit.http.tls import client_context
from kubekit.kube.api_errors import KubeError
from kubekit.kube.auth import Auth
from kubekit.kube.clock import Clock
from kubekit.lang.files import stamp_of
from runup import __version__
from runup.process import http_fetch
from runup.process.cluster_egress import EgressSource, environment_egress

# What many thousand alerts take. The answer to a query of one sample takes a few hundred bytes.
MAX_BYTES = 8 << 20
# The errors of a query: of the server, of the connection, or of our credential.
FAILURES = (aiohttp.ClientError, KubeError, OSError, TimeoutError)


class Monitoring:
    """A client of the server at `url`, which has no path; an empty `url` means that there is no server.

    `auth` provides the credential; `ca_file` replaces the authorities of `egress`; `asker` is the user agent.
    """

    def __init__(
        self,
        url: str,
        auth: Auth,
        clock: Clock,
        *,
        asker: str,
        ca_file: str = "",
        egress: EgressSource = environment_egress,
    ) -> None:
        self.url = url.rstrip("/")
        self._auth = auth
        self._clock = clock
        self._headers = {"Accept": "application/json", "User-Agent": f"{asker}/{__version__}"}
        self._ca_file = ca_file
        self._egress = egress
        self._context: tuple[object, ssl.SSLContext] | None = None

    async def get(
        self, path: str, *, within_s: float, statuses: Collection[int] = (200,), limit: int | None = None
    ) -> bytes:
        """Returns the body of an answer, `limit` bytes at most, whose status is one of `statuses`. Raises FAILURES."""
        limit = MAX_BYTES if limit is None else limit
        context = None
        if self._ca_file and self.url.startswith("https:"):
            context = await asyncio.to_thread(self._trusted)
        credential = await asyncio.to_thread(self._auth.credential, self._clock.now())
        page = await http_fetch.fetch(
            self.url + path,
            within_s=within_s,
            limit=limit,
            headers=self._headers,
            authorization=credential.authorization,
            egress=await self._egress(),
            context=context,
        )
        if len(page.body) > limit:
            raise aiohttp.ClientError(f"the answer is longer than {limit} bytes")
        if page.status not in statuses:
            raise aiohttp.ClientError(f"unexpected HTTP status: {page.status}")
        return page.body

    def why(self, path: str, error: BaseException) -> str:
        """Returns a failure as text that names the queried URL."""
        return f"{self.url}{path}: {str(error) or type(error).__name__}"

    def _trusted(self) -> ssl.SSLContext:
        """Returns a context with the authorities now in their file: a mounted file changes while the process runs."""
        try:
            stamp = stamp_of(Path(self._ca_file))
            if self._context is None or self._context[0] != stamp:
                self._context = stamp, client_context(ca_file=self._ca_file)
        except OSError as error:
            raise OSError(f"the certificate authorities {self._ca_file} cannot be read: {error}") from error
        return self._context[1]
