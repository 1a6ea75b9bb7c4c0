"""One question to the API of Prometheus or Thanos, with a credential, within a time and a size."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection
from pathlib import Path

import aiohttp

from kubekit.kube.auth import Auth
from kubekit.kube.clock import Clock
from kubekit.kube.errors import KubeError
from runup import __version__
from runup.process import web
from runup.process.stamp import stamp_of

MAX_BYTES = 16 << 20
# What can be wrong with a question that was put: the server, the way there, our credential.
FAILURES = (aiohttp.ClientError, KubeError, OSError, TimeoutError)


class Monitoring:
    """The server at `url`, which is without the path and empty where there is none.

    `auth` has its credential, `ca_file` further authorities for certificates; `asker` is whom its log names.
    """

    def __init__(self, url: str, auth: Auth, clock: Clock, *, asker: str, ca_file: str = "") -> None:
        self.url = url.rstrip("/")
        self._auth = auth
        self._clock = clock
        self._headers = {"Accept": "application/json", "User-Agent": f"{asker}/{__version__}"}
        self._ca_file = ca_file
        self._context: tuple[object, ssl.SSLContext] | None = None

    async def get(self, path: str, *, within_s: float, statuses: Collection[int] = (200,)) -> bytes:
        """What it answers with one of `statuses`; raises FAILURES."""
        context = await asyncio.to_thread(self._trusted) if self.url.startswith("https:") else None
        credential = await asyncio.to_thread(self._auth.credential, self._clock.now())
        page = await web.fetch(
            self.url + path,
            within_s=within_s,
            limit=MAX_BYTES,
            headers=self._headers,
            authorization=credential.authorization,
            context=context,
        )
        if len(page.body) > MAX_BYTES:
            raise aiohttp.ClientError(f"the answer is longer than {MAX_BYTES} bytes")
        if page.status not in statuses:
            raise aiohttp.ClientError(f"unexpected HTTP status: {page.status}")
        return page.body

    def why(self, path: str, error: BaseException) -> str:
        """A failure in words that name whom was asked."""
        return f"{self.url}{path}: {str(error) or type(error).__name__}"

    def _trusted(self) -> ssl.SSLContext:
        """The authorities as their file has them now: a mounted one is changed while we run."""
        try:
            seen = stamp_of(Path(self._ca_file)) if self._ca_file else None
            if self._context is None or self._context[0] != seen:
                self._context = seen, ssl.create_default_context(cafile=self._ca_file or None)
        except OSError as error:
            raise OSError(f"the certificate authorities {self._ca_file} cannot be read: {error}") from error
        return self._context[1]
