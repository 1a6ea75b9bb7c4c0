"""The alerts that fire, asked of Prometheus' API (Thanos) every minute; `state` is what is known.

Alerts are the one input that is not in the Kubernetes API. That they cannot be read is said in UpdateStatus, and
keeps nothing else from being said. An old answer is no answer: a failure replaces it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import aiohttp

from runup import __version__
from runup.api import codec
from runup.controllers.sources import web
from runup.domain.updatestatus.alerts import PATH, read_alerts
from runup.domain.updatestatus.snapshot import Alert, Unreadable
from runup.kube.auth import Auth
from runup.kube.clock import Clock
from runup.kube.errors import KubeError

REFRESH_S = 60.0
TIMEOUT_S = 20.0
MAX_BYTES = 16 << 20


class Alerts:
    """Asks `url` (a Prometheus or Thanos, without the path) with the credential of `auth`.

    `state` is None while nobody was asked: no `url`, or no answer yet. `ca_file` adds a certificate authority.
    """

    def __init__(self, url: str, auth: Auth, clock: Clock, on_change: Callable[[], None], *, ca_file: str = "") -> None:
        self.state: tuple[Alert, ...] | Unreadable | None = None
        self._url = url.rstrip("/")
        self._auth = auth
        self._clock = clock
        self._on_change = on_change
        self._ca_file = ca_file

    async def run(self) -> None:
        """Ask until cancelled."""
        while self._url:
            found = await self._ask()
            if found != self.state:
                self.state = found
                self._on_change()
            await self._clock.sleep(REFRESH_S)

    async def _ask(self) -> tuple[Alert, ...] | Unreadable:
        try:
            return read_alerts(await self._get())
        except (aiohttp.ClientError, KubeError, OSError, TimeoutError, codec.DecodeError) as error:
            return Unreadable(f"{self._url}{PATH}: {str(error) or type(error).__name__}")

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file or None)
        except OSError as error:
            raise OSError(f"the certificate authorities {self._ca_file} cannot be read: {error}") from error

    async def _get(self) -> bytes:
        context = self._context() if self._url.startswith("https:") else None
        headers = {"Accept": "application/json", "User-Agent": f"UpdateStatusController/{__version__}"}
        credential = await asyncio.to_thread(self._auth.credential, self._clock.now())
        page = await web.fetch(
            self._url + PATH,
            within_s=TIMEOUT_S,
            limit=MAX_BYTES,
            headers=headers,
            authorization=credential.authorization,
            context=context,
        )
        if page.status != 200:
            raise aiohttp.ClientError(f"unexpected HTTP status: {page.status}")
        if len(page.body) > MAX_BYTES:
            raise aiohttp.ClientError(f"the answer is longer than {MAX_BYTES} bytes")
        return page.body
