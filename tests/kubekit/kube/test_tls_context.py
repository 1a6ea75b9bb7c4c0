"""A client certificate on its way into a context: through memory, or a folder where it does not exist."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubekit.kube.api_errors import ConfigError
from kubekit.kube.auth import Credential
from kubekit.kube.config import ClusterConfig
from kubekit.kube.transport import context_for


def _pair(password: bytes = b"") -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number()).not_valid_before(start)
    signed = made.not_valid_after(start + timedelta(days=3650)).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return (
        signed.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, form, lock),
    )


@pytest.fixture(params=["in memory", "in a folder"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary files would go; both ways are tried."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if request.param == "in a folder":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    return tmp_path


def test_a_pair_that_fits_is_taken(place: Path) -> None:
    """And nothing of it is left."""
    cert, key = _pair()
    assert isinstance(context_for(ClusterConfig(server="https://here:6443"), Credential("", cert, key)), ssl.SSLContext)
    assert not list(place.iterdir())


def test_a_pair_that_does_not_fit_is_refused(place: Path) -> None:
    """In words of what was given, not of how it was handed over."""
    (cert, _), (_, other) = _pair(), _pair()
    with pytest.raises(ConfigError, match="the client certificate and its key cannot be used"):
        context_for(ClusterConfig(server="https://here:6443"), Credential("", cert, other))
    assert not list(place.iterdir())


def test_a_key_with_a_password_is_refused(place: Path) -> None:
    """A kubeconfig has no place for it, and nobody is asked for it."""
    cert, key = _pair(b"hush")
    with pytest.raises(ConfigError, match="the key is encrypted, and a kubeconfig has no place for its password"):
        context_for(ClusterConfig(server="https://here:6443", client_cert=cert, client_key=key), Credential())
    assert not list(place.iterdir())


def test_what_a_context_demands() -> None:
    """The certificate and its name, as strictly as clusters' own authorities can bear; nothing where that was said."""
    checking = context_for(ClusterConfig(server="https://h"), Credential())
    assert checking is not None
    assert (checking.verify_mode, checking.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not checking.verify_flags & ssl.VERIFY_X509_STRICT
    trusting = context_for(ClusterConfig(server="https://h", insecure=True), Credential())
    assert trusting is not None
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)
    assert context_for(ClusterConfig(server="http://h", ca_data=b"nonsense"), Credential()) is None


def test_whom_a_context_trusts() -> None:
    """The cluster's own authority alone, where it has one."""
    cert, _ = _pair()
    made = context_for(ClusterConfig(server="https://h", ca_data=cert), Credential())
    assert made is not None
    assert made.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("data", [b"nonsense", b"\xff", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_an_authority_that_is_none(data: bytes) -> None:
    """The server is named, and what is wrong."""
    with pytest.raises(ConfigError, match="the certificate authority for https://h is not PEM: "):
        context_for(ClusterConfig(server="https://h", ca_data=data), Credential())


def test_a_plugins_pair_goes_before_the_kubeconfigs() -> None:
    """Of both parts."""
    pair = _pair()
    spoilt = ClusterConfig(server="https://h", client_cert=b"nonsense", client_key=b"nonsense")
    assert context_for(spoilt, Credential("", *pair)) is not None
    with pytest.raises(ConfigError, match="cannot be used"):
        context_for(spoilt, Credential())
    assert (
        context_for(ClusterConfig(server="https://h", client_cert=pair[0], client_key=pair[1]), Credential())
        is not None
    )
