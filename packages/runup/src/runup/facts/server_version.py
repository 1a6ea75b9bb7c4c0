"""Asks an API server which Kubernetes it is."""

from __future__ import annotations

from kubekit.api import codec
from kubekit.kube import calls
from kubekit.kube.client import Client


async def server_version(client: Client) -> str:
    """Returns the version as the server gives it, such as v1.34.2+k3s1. Raises KubeError and DecodeError."""
    return git_version(await client.send(calls.get_path("/version")))


def git_version(answer: bytes) -> str:
    """Returns the version in the answer to `/version`; an empty string if it has none. Raises DecodeError."""
    return str(codec.decode(dict, answer).get("gitVersion") or "")
