"""The Service by which pods find the server."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.access.authn import AUDIENCE, Claims
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


async def test_tokens_are_signed_by_the_published_key(tmp_path: Path) -> None:
    """The key of the issuer's documents verifies a token; without it, verification fails."""
    async with ApiServer(tmp_path / "data") as server:
        claims = Claims(namespace="a", account="b", account_uid="1", expires_s=2, audiences=(AUDIENCE,), token_id="t")
        signed, _, signature = server.authn.signer.sign(claims, 1).rpartition(".")
        (key,) = server.authn.signer.key_set()["keys"]
    x, y = (int.from_bytes(_decoded(key[name])) for name in ("x", "y"))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    both = _decoded(signature)
    der = encode_dss_signature(int.from_bytes(both[:32]), int.from_bytes(both[32:]))
    public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        public.verify(der, b"another", ec.ECDSA(hashes.SHA256()))


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
