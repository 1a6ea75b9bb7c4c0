"""Queries the firing alerts from the Prometheus API (Thanos) every minute; `state` holds the last answer.

Alerts are the only input that is not in the Kubernetes API. If they cannot be read, UpdateStatus says so, and
everything else is still reported. A failure replaces the last answer: an old answer is not used.
"""

from __future__ import annotations

from collections.abc import Callable

from kubekit.api import codec
from kubekit.kube.auth import Auth
from kubekit.kube.clock import Clock
from runup.process.monitoring import FAILURES, Monitoring
from runup.process.threads import in_thread
from runup.updatestatus.decide.alerts import PATH, Alert, Unreadable, read_alerts

REFRESH_S = 60.0
TIMEOUT_S = 20.0


class Alerts:
    """A client that queries `url` (a Prometheus or Thanos, without the path) with the credential of `auth`.

    `state` is None while there is no answer: no `url`, or not queried yet. `ca_file` adds a certificate authority.
    """

    def __init__(self, url: str, auth: Auth, clock: Clock, on_change: Callable[[], None], *, ca_file: str = "") -> None:
        self.state: tuple[Alert, ...] | Unreadable | None = None
        self._server = Monitoring(url, auth, clock, asker="UpdateStatusController", ca_file=ca_file)
        self._clock = clock
        self._on_change = on_change

    async def run(self) -> None:
        """Queries the alerts every `REFRESH_S` seconds until cancelled."""
        while self._server.url:
            answer = await self._query_alerts()
            if answer != self.state:
                self.state = answer
                self._on_change()
            await self._clock.sleep(REFRESH_S)

    async def _query_alerts(self) -> tuple[Alert, ...] | Unreadable:
        """Returns the firing alerts, or why they could not be read."""
        try:
            body = await self._server.get(PATH, within_s=TIMEOUT_S)
            return await in_thread(lambda: read_alerts(body), "read alerts")
        except (*FAILURES, codec.DecodeError) as error:
            return Unreadable(self._server.why(PATH, error))
