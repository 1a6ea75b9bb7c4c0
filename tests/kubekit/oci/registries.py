"""Registries for tests: the sandbox's, Debian's docker-registry, and one that misbehaves as it is reported."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.servers import eventually

from kubekit.oci.access import Access
from kubekit.oci.credentials import AuthFile, Credentials, Login
from kubekit.oci.layout import Layout
from runup.release.control.image_build import BuiltImage, build_release
from runup.sandbox.processes.services import Registry

DIGEST_HEADER = "Docker-Content-Digest"


LISTED: set[str] = set()
"""Every registry that tests have started; on this machine, so that a cluster's objects may not name them unlisted."""


def writing(host: str) -> Access:
    """Who may push to the sandbox's registry; one that lets everybody in does not ask."""
    return Access(credentials=Credentials((AuthFile("test", {host: Login("writer", "word")}),)))


def release(folder: Path, version: str = "5.2.0", **files: bytes) -> BuiltImage:
    """A small release in a separate layout."""
    manifest = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"
    return build_release(folder, version=version, files={"release-manifests/a.yaml": manifest, **files})


@contextmanager
def sandbox_registry(folder: Path, users: Mapping[str, str] | None = None) -> Iterator[str]:
    """`host:port` of the sandbox's registry, served by a separate thread."""
    started = threading.Event()
    ended: list[Callable[[], object]] = []
    host: list[str] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        ended.append(lambda: loop.call_soon_threadsafe(stop.set))
        writers = None if users else {"writer": "word"}
        store = folder / "signatures"
        async with Registry(folder / "registry", users=users, writers=writers, signatures=store) as registry:
            host.append(registry.host)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(90)
        LISTED.add(host[0])
        yield host[0]
    finally:
        ended[0]()
        thread.join(60)


@contextmanager
def docker_registry(
    folder: Path, users: Mapping[str, str] | None = None, certificate: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """`host:port` of a docker-registry, by TLS if it has a certificate; skips the test where it is not installed."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed (Debian package docker-registry)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{probe.getsockname()[1]}"
    http: dict[str, object] = {"addr": host}
    if certificate:
        http["tls"] = {"certificate": str(certificate[0]), "key": str(certificate[1])}
    options: dict[str, object] = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": http,
    }
    if users:
        options["auth"] = {"htpasswd": {"realm": "test", "path": str(_htpasswd(folder, users))}}
    (folder / "registry.yml").write_text(yaml.safe_dump(options))
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(folder / "registry.yml")], stdout=log, stderr=log)
        try:
            eventually(lambda: _answers(host), "docker-registry answers")
            LISTED.add(host)
            yield host
        finally:
            process.terminate()
            process.wait(60)


REAL = {"the sandbox's registry": sandbox_registry, "docker-registry": docker_registry}


def _htpasswd(folder: Path, users: Mapping[str, str]) -> Path:
    """The passwords as bcrypt, which is all that docker-registry takes; Perl speaks to the C library's crypt."""
    if (perl := shutil.which("perl")) is None:
        pytest.skip("perl is not installed, which makes the password file")
    script = "print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuu))"
    hashes = {
        user: subprocess.run([perl, "-e", script, password], capture_output=True, text=True, check=True).stdout
        for user, password in users.items()
    }
    if not all(text.startswith("$2b$") for text in hashes.values()):
        pytest.skip("this C library's crypt knows no bcrypt")
    (folder / "htpasswd").write_text("".join(f"{user}:{text}\n" for user, text in hashes.items()))
    return folder / "htpasswd"


def _answers(host: str) -> bool:
    try:
        urllib.request.urlopen(f"http://{host}/v2/", timeout=90).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def basic(user: str, password: str) -> str:
    """An Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@dataclass
class Asked:
    """One request that the odd registry got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Answer:
    """What it says to it. `cut` sends that many bytes of the body and breaks off."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class Odd:
    """A registry whose every answer is `rule(request)`, else what `layout` has."""

    layout: Layout
    rule: Callable[[Asked], Answer | None] = lambda _asked: None
    asked: list[Asked] = field(default_factory=list)
    host: str = ""

    def answer(self, asked: Asked) -> Answer:
        """The answer to one request."""
        self.asked.append(asked)
        return self.rule(asked) or self.usual(asked)

    def usual(self, asked: Asked) -> Answer:
        """What an honest registry says."""
        kind, _, name = (
            asked.path.partition("?")[0].rpartition("/")[0].rpartition("/")[2],
            "",
            asked.path.rpartition("/")[2],
        )
        if kind == "manifests":
            descriptor = self.layout.resolve(name)
            headers = {DIGEST_HEADER: descriptor.digest, "Content-Type": descriptor.media_type}
            return Answer(200, self.layout.read(descriptor.digest), headers)
        path = self.layout.blob(name)
        return Answer(200, path.read_bytes()) if path.is_file() else Answer(404)

    def paths(self, method: str = "GET") -> list[str]:
        """The paths that were asked for with `method`."""
        return [asked.path for asked in self.asked if asked.method == method]


@contextmanager
def odd_registry(
    layout: Layout,
    rule: Callable[[Asked], Answer | None] = lambda _asked: None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Odd]:
    """A registry that does what `rule` says."""
    odd = Odd(layout, rule)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

        def respond(self) -> None:
            """Sends what is odd."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = odd.answer(Asked(self.command, self.path, dict(self.headers.items()), body))
            self.close_connection = True
            self.send_response_only(answer.status)
            length = {"Content-Length": str(len(answer.body)), "Connection": "close"}
            for name, value in {**length, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                with suppress(ConnectionError):  # a client need not take all of it
                    self.wfile.write(answer.body[: answer.cut])

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH"):
        setattr(Handler, f"do_{method}", Handler.respond)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    odd.host = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield odd
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def self_signed(address: str, folder: Path, since_days: int = 1, until_days: int = 1) -> tuple[Path, Path]:
    """A certificate for an IP address that is its own authority, and its key, as files; valid for these days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test registry")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=since_days))
        .not_valid_after(datetime.now(UTC) + timedelta(days=until_days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "tls.crt", folder / "tls.key"
