"""Asks an API server which Kubernetes it is."""

from __future__ import annotations

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError
from kubekit.kube.client import Client
from runup.checks.decide.model import Check
from runup.checks.decide.requested_apis import metrics_check, requested_versions


async def server_version(client: Client) -> str:
    """Returns the version as the server gives it, such as v1.34.2+k3s1. Raises KubeError and DecodeError."""
    return await client.send(calls.server_version())


async def read_metrics_check(client: Client) -> Check:
    """Returns the check of the requests to this server; behind a load balancer, other servers may have had more."""
    try:
        answer = await client.send(calls.get_path("/metrics"))
    except ApiError as error:
        return metrics_check((), f"the API server's metrics: {error.message}")
    return metrics_check(requested_versions(answer.decode(errors="replace")))
