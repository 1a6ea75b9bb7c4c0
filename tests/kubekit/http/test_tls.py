"""Which certificates end a chain: those of a client's authorities, as in Go."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kubekit.http.tls import client_context
from kubekit.kube.clock import machine_now
from kubesandbox.apiserver.access import certs


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Connects two contexts in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


def test_trusts_the_certificate_of_the_server_itself(tmp_path: Path) -> None:
    """envtest gives a webhook's own certificate as its caBundle. Another certificate of its authority is refused."""
    now = machine_now()
    authority = certs.new_ca(now)
    ours, other = certs.issue_server(authority, now), certs.issue_server(authority, now)
    (tmp_path / "tls.pem").write_bytes(ours.cert + ours.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.pem")
    handshake(client_context(ours.cert.decode()), server)
    handshake(client_context(authority.cert.decode()), server)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client_context(other.cert.decode()), server)
