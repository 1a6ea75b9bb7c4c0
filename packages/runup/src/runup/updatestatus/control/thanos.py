"""Reads the alerts of a live cluster as oc does: from the route of its Thanos, with the user's token."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kubekit.api.scheme import Resource
from kubekit.http.tls import client_context
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.transport import context_for
from runup.updatestatus.decide.alerts import PATH, Alert, Unreadable, read_alerts

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

_ROUTE = Resource(group="route.openshift.io", version="v1", kind="Route", plural="routes", namespaced=True)
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

    context = context_for(client.config, client.config.auth.credential(now)) or client_context()
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
