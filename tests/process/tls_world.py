"""What a process needs that serves by TLS: a certificate, a client that trusts it, a profile in the cluster."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import aiohttp
from tests.applying.control import release_folders

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup.process.endpoint import Endpoint
from runup.process.tls_profile import API_SERVER

DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)


def pair(folder: Path) -> tuple[Path, Path, bytes]:
    """A certificate and its key as files, and its authority."""
    now = SystemClock().now()
    ca = new_ca(now)
    made = issue_server(ca, now)
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(made.cert)
    key.write_bytes(made.key)
    return cert, key, ca.cert


def certificate(folder: Path) -> tuple[dict[str, Any], ssl.SSLContext]:
    """The options of a process that serves with it, and what its clients trust."""
    cert, key, ca = pair(folder)
    trusting = ssl.create_default_context(cadata=ca.decode())
    return {"serving_cert_file": str(cert), "serving_key_file": str(key)}, trusting


async def answered(endpoint: Endpoint, trusting: ssl.SSLContext) -> bool:
    """Whether a client of that kind is."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{endpoint.address}/healthz", ssl=trusting) as response,
        ):
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def define_api_servers(client: Client) -> None:
    """The kind `APIServer`, of which OpenShift has one object, `cluster`."""
    definition = release_folders.definition("APIServer", API_SERVER.plural, API_SERVER.group)
    definition["spec"]["scope"] = "Cluster"
    await client.send(calls.create(DEFINITIONS, definition))


async def create_api_server(client: Client, **spec: Any) -> None:
    """That object."""
    obj = {"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"}, "spec": spec}
    await client.send(calls.create(API_SERVER, obj))
