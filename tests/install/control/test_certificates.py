"""The certificate that a component serves with where nobody else makes one: who trusts it, and when it is renewed."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from runup.install.control import installing as serving_authority

HOSTS = ("kernel-module-preflight.mine.svc", "kernel-module-preflight.mine.svc.cluster.local")
NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def secret(now: datetime = NOW) -> dict[str, Any]:
    """A Secret that was made at that time."""
    return serving_authority.serving_secret("name", "mine", HOSTS, now)


@pytest.mark.parametrize("host", HOSTS)
def test_whoever_trusts_the_authority_trusts_the_service(host: str, tmp_path: Path) -> None:
    """A handshake by OpenSSL, with the name that the API server asks for, and no other."""
    made = secret(datetime.now(UTC))
    for name, content in made["data"].items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    asking = ssl.create_default_context(cadata=serving_authority.authority_of(made).decode())
    assert _handshake(serving, asking, host) == ""
    assert "not valid for" in _handshake(serving, asking, "another.mine.svc")
    stranger = serving_authority.authority_of(secret(datetime.now(UTC))).decode()
    assert "verify failed" in _handshake(serving, ssl.create_default_context(cadata=stranger), host)


def _handshake(serving: ssl.SSLContext, asking: ssl.SSLContext, host: str) -> str:
    """Why the client does not trust the server, empty if it does."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            with serving.wrap_socket(ours, server_side=True) as served:
                served.recv(1)
        except (ssl.SSLError, OSError):
            return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with asking.wrap_socket(theirs, server_hostname=host):
            return ""
    except ssl.SSLCertVerificationError as error:
        return str(error)
    finally:
        theirs.close()
        thread.join(90)


def test_the_key_of_the_authority_is_kept_nowhere() -> None:
    """Whoever reads the Secret can serve, and vouch for nobody else."""
    assert sorted(secret()["data"]) == ["ca.crt", "tls.crt", "tls.key"]
    assert base64.b64decode(secret()["data"]["tls.key"]).count(b"PRIVATE KEY") == 2


def without(name: str) -> dict[str, Any]:
    """A Secret that lacks a file."""
    made = secret()
    return {**made, "data": {key: value for key, value in made["data"].items() if key != name}}


@pytest.mark.parametrize(
    ("found", "at", "good"),
    [
        pytest.param(None, NOW, False, id="there is none"),
        pytest.param(secret(), NOW, True, id="just made"),
        pytest.param(secret(), NOW + timedelta(days=3284), True, id="more than a year is left"),
        pytest.param(secret(), NOW + timedelta(days=3286), False, id="less than a year is left"),
        pytest.param(without("tls.crt"), NOW, False, id="no certificate"),
        pytest.param(without("ca.crt"), NOW, False, id="no authority"),
        pytest.param({"data": {"tls.crt": "eA==", "ca.crt": "eA=="}}, NOW, False, id="not a certificate"),
        pytest.param({"data": {"tls.crt": "!", "ca.crt": "!"}}, NOW, False, id="not even base64"),
        pytest.param(serving_authority.serving_secret("n", "m", ("other",), NOW), NOW, False, id="for another name"),
    ],
)
def test_which_certificate_is_kept(found: dict[str, Any] | None, at: datetime, good: bool) -> None:
    """A good one, so that an upgrade changes nothing that others trust."""
    assert serving_authority.is_still_valid(found, HOSTS, at) is good


def test_how_long_it_lasts() -> None:
    """Ten years, from an hour before: clocks of nodes differ."""
    certificate = x509.load_pem_x509_certificate(base64.b64decode(secret()["data"]["tls.crt"]))
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=3650)
