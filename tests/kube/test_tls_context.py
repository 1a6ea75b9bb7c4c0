"""A client certificate on its way into a context: through memory, or a folder where there is none."""

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

from runup.kube.auth import Credential
from runup.kube.config import ClusterConfig
from runup.kube.errors import ConfigError
from runup.kube.tls import context_for


def _pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number()).not_valid_before(start)
    signed = made.not_valid_after(start + timedelta(days=3650)).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    return (
        signed.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()),
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
    assert isinstance(context_for(ClusterConfig("https://here:6443"), Credential("", cert, key)), ssl.SSLContext)
    assert not list(place.iterdir())


def test_a_pair_that_does_not_fit_is_refused(place: Path) -> None:
    """In words of what was given, not of how it was handed over."""
    (cert, _), (_, other) = _pair(), _pair()
    with pytest.raises(ConfigError, match="the client certificate and its key cannot be used"):
        context_for(ClusterConfig("https://here:6443"), Credential("", cert, other))
    assert not list(place.iterdir())
