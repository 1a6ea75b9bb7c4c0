"""The Service by which pods find the server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer

SERVICES = Resource(group="", version="v1", kind="Service", plural="services", namespaced=True)
SLICES = Resource(
    group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", namespaced=True
)


async def test_they_follow_the_server_to_another_port(tmp_path: Path) -> None:
    """A server that starts again listens elsewhere; what its clients hold on to stays."""
    addresses = set()
    for _ in range(2):
        async with ApiServer(tmp_path / "data") as server, Client(load(str(server.kubeconfig))) as client:
            service = await client.send(calls.get_raw(SERVICES, "kubernetes", "default"))
            endpoints = await client.send(calls.get_raw(SLICES, "kubernetes", "default"))
            addresses.add((service["metadata"]["uid"], service["spec"]["clusterIP"]))
            where = (endpoints["endpoints"][0]["addresses"][0], endpoints["ports"][0]["port"])
            assert where == (urlsplit(server.url).hostname, urlsplit(server.url).port)
            assert service["spec"]["ports"][0]["targetPort"] == urlsplit(server.url).port
    assert len(addresses) == 1
