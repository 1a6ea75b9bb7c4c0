"""The server's certificate authority, the certificates that it issues, and the kubeconfig that embeds them.

All of them are kept in the data folder, so that a kubeconfig stays valid across restarts.
"""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEARS_10 = timedelta(days=3650)
LOOPBACK = ("127.0.0.1", "::1")
_SERVER_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A PEM certificate with its PEM private key."""

    cert: bytes
    key: bytes


def load_or_create(folder: Path, now: datetime, addresses: Sequence[str] = ()) -> tuple[KeyPair, KeyPair]:
    """Returns the certificate authority and the server's certificate of `folder`, created on first use.

    The server's is for loopback and `addresses`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ca = _read_pair(folder, "ca") or _write_pair(folder, "ca", new_ca(now))
    server = _read_pair(folder, "server") or _write_pair(folder, "server", issue_server(ca, now, addresses=addresses))
    return ca, server


def _read_pair(folder: Path, name: str) -> KeyPair | None:
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    return KeyPair(cert.read_bytes(), key.read_bytes()) if cert.exists() and key.exists() else None


def _write_pair(folder: Path, name: str, pair: KeyPair) -> KeyPair:
    write_private(folder / f"{name}.key", pair.key)
    (folder / f"{name}.crt").write_bytes(pair.cert)
    return pair


def write_private(path: Path, data: bytes) -> None:
    """Writes a file that only its owner may read, atomically."""
    temporary = path.with_name(path.name + ".new")
    temporary.touch(mode=0o600)
    # touch leaves the mode of an existing file.
    temporary.chmod(0o600)
    temporary.write_bytes(data)
    temporary.replace(path)


def new_ca(now: datetime) -> KeyPair:
    """Returns a new self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject_name("kubesandbox-ca")
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    cert = (
        _certificate_builder(name, name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _encode_pair(cert, key)


def issue_server(ca: KeyPair, now: datetime, services: Sequence[str] = (), addresses: Sequence[str] = ()) -> KeyPair:
    """Issues a certificate for loopback, `addresses`, and the names of `services`, by default the API server's."""
    served = [x509.IPAddress(ipaddress.ip_address(address)) for address in (*LOOPBACK, *addresses)]
    names = [x509.DNSName(name) for name in ("localhost", *(services or _SERVER_NAMES))]
    alternative = x509.SubjectAlternativeName([*names, *served])
    subject = _subject_name(services[0] if services else "kube-apiserver")
    return _issue_certificate(ca, subject, ExtendedKeyUsageOID.SERVER_AUTH, now, alternative=alternative)


def issue_client(ca: KeyPair, user: str, groups: Sequence[str], now: datetime) -> KeyPair:
    """Issues a client certificate: the common name is the user, each organization a group."""
    return _issue_certificate(ca, _subject_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, now)


def _issue_certificate(
    ca: KeyPair,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    now: datetime,
    *,
    alternative: x509.SubjectAlternativeName | None = None,
) -> KeyPair:
    """Returns a key and its certificate, signed by `ca`; `alternative` has the names of a server."""
    ca_cert = x509.load_pem_x509_certificate(ca.cert)
    ca_key = serialization.load_pem_private_key(ca.key, None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate_builder(subject, ca_cert.subject, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    if alternative is not None:
        builder = builder.add_extension(alternative, critical=False)
    return _encode_pair(builder.sign(ca_key, hashes.SHA256()), key)


def _subject_name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    """Returns the builder of a certificate that is valid for ten years from an hour ago."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # An hour in the past, so that clients whose clock is behind accept the certificate.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _YEARS_10)
    )


def _encode_pair(cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(cert.public_bytes(pem), private)


def build_kubeconfig(url: str, ca: KeyPair, user: str, credentials: dict[str, Any]) -> bytes:
    """Returns a kubeconfig (JSON, which is YAML) with everything embedded; `credentials` is the user's entry."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": url, "certificate-authority-data": _b64(ca.cert)}}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user, "namespace": "default"}}],
        "current-context": "sandbox",
    }
    return (json.dumps(config, indent=2) + "\n").encode()


def client_credentials(pair: KeyPair) -> dict[str, Any]:
    """Returns the user's entry of a kubeconfig for a client certificate."""
    return {"client-certificate-data": _b64(pair.cert), "client-key-data": _b64(pair.key)}


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
