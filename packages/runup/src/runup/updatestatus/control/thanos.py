"""Reads the firing alerts: in the process of a command, or by the queries of the controller."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.auth import Auth
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from kubekit.kube.transport import context_for
from runup.process.monitoring import FAILURES, Monitoring
from runup.process.threads import in_thread
from runup.updatestatus.decide.snapshot import PATH, Alert, Unreadable, read_alerts

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


_ROUTE = Resource("route.openshift.io", "v1", "Route", "routes", namespaced=True)
_MONITORING, _THANOS = "openshift-monitoring", "thanos-querier"
_ALERTS_TIMEOUT_S = 30.0
_MAX_BYTES = 16 << 20


def alerts(client: SyncClient, now: datetime) -> tuple[Alert, ...] | Unreadable:
    """Returns the alerts of the cluster's Thanos, or the reason why they cannot be read.

    They are requested through its Route and with the user's token, as oc does.
    """
    credential = client.config.auth.credential(now)
    # Thanos' Route accepts bearer tokens only, so a client certificate is of no use there.
    if not credential.authorization.startswith("Bearer "):
        return Unreadable("no token is currently in use for this session")
    try:
        route = client.send(calls.get_raw(_ROUTE, _THANOS, _MONITORING))
    except KubeError as error:
        return Unreadable(f"failed to get alerts from Thanos: {error.message}")
    # Imported here because most commands do not come this far.
    from runup.updatestatus.decide.snapshot import PATH, read_alerts

    hosts = [
        str(ingress["host"]) for ingress in (route.get("status") or {}).get("ingress") or () if ingress.get("host")
    ]
    causes = []
    for host in hosts:
        try:
            return read_alerts(_get_alerts(client, host, credential.authorization, now))
        except (OSError, ValueError) as error:  # what is not JSON, or a host that is none, is a ValueError
            causes.append(f"{host}->{error}")
    route_text = "the openshift-monitoring/thanos-querier Route"
    if len(causes) == 1:
        why = f"unable to get {PATH} from URI in {route_text}: {causes[0]}"
    else:
        why = f"unable to get {PATH} from any of {len(causes)} URIs in {route_text}: [{', '.join(causes)}]"
    return Unreadable(f"failed to get alerts from Thanos: {why}")


def _get_alerts(client: SyncClient, host: str, authorization: str, now: datetime) -> bytes:
    """Returns Prometheus' alerts as JSON, read from `host`. Raises OSError unless it answers with 200."""
    from urllib.parse import urlsplit

    from kubekit.http.addresses import Deadline
    from kubekit.http.single_request import send_once
    from runup.updatestatus.decide.snapshot import PATH

    context = context_for(client.config, client.config.auth.credential(now)) or ssl.create_default_context()
    # The Route's certificate is often signed by a public CA and not by that of the API server.
    context.load_default_certs()
    headers = {"Authorization": authorization, "Accept": "application/json"}
    deadline = Deadline.after(_ALERTS_TIMEOUT_S, _ALERTS_TIMEOUT_S)
    response = send_once("GET", urlsplit(f"https://{host}{PATH}"), headers, context=context, deadline=deadline)
    try:
        body = response.read(_MAX_BYTES + 1)
    finally:
        response.close()
    if response.status != 200:
        raise OSError(f"GET status code={response.status}")
    if len(body) > _MAX_BYTES:
        raise OSError(f"the answer is longer than {_MAX_BYTES} bytes")
    return body
