"""The alerts that fire, asked of Prometheus' API (Thanos) every minute; `state` is what is known.

Alerts are the one input that is not in the Kubernetes API. That they cannot be read is said in UpdateStatus, and
keeps nothing else from being said. An old answer is no answer: a failure replaces it.
"""

from __future__ import annotations

from collections.abc import Callable

from kubekit.api import codec
from kubekit.kube.auth import Auth
from kubekit.kube.clock import Clock
from runup.process.monitoring import FAILURES, Monitoring
from runup.updatestatus.decide.alerts import PATH, read_alerts
from runup.updatestatus.decide.snapshot import Alert, Unreadable

REFRESH_S = 60.0
TIMEOUT_S = 20.0


class Alerts:
    """Asks `url` (a Prometheus or Thanos, without the path) with the credential of `auth`.

    `state` is None while nobody was asked: no `url`, or no answer yet. `ca_file` adds a certificate authority.
    """

    def __init__(self, url: str, auth: Auth, clock: Clock, on_change: Callable[[], None], *, ca_file: str = "") -> None:
        self.state: tuple[Alert, ...] | Unreadable | None = None
        self._server = Monitoring(url, auth, clock, asker="UpdateStatusController", ca_file=ca_file)
        self._clock = clock
        self._on_change = on_change

    async def run(self) -> None:
        """Ask until cancelled."""
        while self._server.url:
            found = await self._ask()
            if found != self.state:
                self.state = found
                self._on_change()
            await self._clock.sleep(REFRESH_S)

    async def _ask(self) -> tuple[Alert, ...] | Unreadable:
        try:
            return read_alerts(await self._server.get(PATH, within_s=TIMEOUT_S))
        except (*FAILURES, codec.DecodeError) as error:
            return Unreadable(self._server.why(PATH, error))
