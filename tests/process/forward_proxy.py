"""A real forward proxy (proxy.py), and servers that only it can reach, with certificates of one authority.

The proxy resolves every name of the domain `test` to this machine, and nobody else does: a request that does not go
through the proxy finds no server.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DEADLINE_S = 90.0
# proxy.py with a separate resolver, as a proxy in a network with its own DNS has.
PROGRAM = """
import socket
resolve = socket.getaddrinfo
def inside(host, *arguments, **options):
    return resolve("127.0.0.1" if str(host).endswith(".test") else host, *arguments, **options)
socket.getaddrinfo = inside
connect = socket.create_connection
socket.create_connection = lambda address, *rest, **options: connect(
    ("127.0.0.1" if str(address[0]).endswith(".test") else address[0], address[1]), *rest, **options
)
from proxy import entry_point
entry_point()
"""


class Authority:
    """A private certificate authority; `pem` is its certificate."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "private authority")])
        certificate = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, host: str, folder: Path) -> tuple[Path, Path]:
        """A certificate for `host`, a name or an address, and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        builder = self._builder(subject, key).add_extension(x509.SubjectAlternativeName([name]), critical=False)
        files = folder / f"{host}.crt", folder / f"{host}.key"
        files[0].write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )


@dataclass(frozen=True)
class ForwardProxy:
    """A running proxy; `url` has its login."""

    url: str
    log: Path

    def connections(self, host: str) -> int:
        """How many connections to `host` the proxy has logged, tunnels and plain requests; refused ones as well."""
        return sum(f"{host}:" in line and (" - CONNECT " in line or " - GET " in line) for line in self._lines())

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines()


@asynccontextmanager
async def forward_proxy(folder: Path, authority: Authority, *, tls: bool, login: str) -> AsyncIterator[ForwardProxy]:
    """proxy.py on loopback, over TLS if wanted, which asks for `login` (user:password) if that is given."""
    port_file, log = folder / "proxy.port", folder / "proxy.log"
    flags = ["--port", "0", "--port-file", str(port_file), "--num-workers", "1", "--num-acceptors", "1"]
    flags += ["--log-file", str(log), "--data-dir", str(folder / "proxy")]
    if tls:
        certificate, key = authority.issue("127.0.0.1", folder)
        flags += ["--cert-file", str(certificate), "--key-file", str(key)]
    if login:
        flags += ["--basic-auth", login]
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *flags, env=os.environ)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (port_file.is_file() and (port := port_file.read_text().strip())):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        prefix = f"{login}@" if login else ""
        yield ForwardProxy(f"{'https' if tls else 'http'}://{prefix}127.0.0.1:{port.split()[0]}", log)
    finally:
        if child.returncode is None:
            child.terminate()
        await asyncio.wait_for(child.wait(), DEADLINE_S)


@asynccontextmanager
async def behind(authority: Authority, folder: Path, host: str, answers: dict[str, Any]) -> AsyncIterator[str]:
    """An HTTPS server of the name `host` that answers paths with JSON or bytes; yields its URL."""

    async def answer(request: web.Request) -> web.Response:
        found = answers.get(request.path)
        if found is None:
            return web.Response(status=404)
        return web.Response(body=found) if isinstance(found, bytes) else web.json_response(found)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue(host, folder))
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
