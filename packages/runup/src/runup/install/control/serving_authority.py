"""Creates an authority and a certificate for a component's Service, on a cluster that has no other source of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

JSON = dict[str, Any]
VALID_FOR = timedelta(days=3650)
# An installation that finds less than this left makes another one.
RENEWED_BEFORE = timedelta(days=365)
# The clocks of nodes differ.
_SKEW = timedelta(hours=1)


def serving_secret(name: str, namespace: str, hosts: Sequence[str], now: datetime) -> JSON:
    """Returns a Secret with `ca.crt`, `tls.crt` and `tls.key` for `hosts`. The authority's key is not kept."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"runup {namespace}")])
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    # A common name has 64 characters at most; the names that count are the alternative ones.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        _builder(subject, issuer, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    data = {"ca.crt": _pem(authority), "tls.crt": _pem(certificate), "tls.key": private}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {file: base64.b64encode(content).decode() for file, content in data.items()},
    }


def is_still_valid(secret: JSON | None, hosts: Sequence[str], now: datetime) -> bool:
    """Returns whether the certificate in `secret` is for `hosts` and lasts for another year."""
    if secret is None:
        return False
    try:
        certificate = x509.load_pem_x509_certificate(_content(secret, "tls.crt"))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        x509.load_pem_x509_certificate(authority_of(secret))
    except (KeyError, ValueError, x509.ExtensionNotFound):
        return False
    lasts = certificate.not_valid_after_utc - now > RENEWED_BEFORE
    return lasts and set(hosts) <= set(names.get_values_for_type(x509.DNSName))


def authority_of(secret: JSON) -> bytes:
    """Returns the authority in `secret`, in PEM. Raises KeyError and ValueError."""
    return _content(secret, "ca.crt")


def _content(secret: JSON, file: str) -> bytes:
    return base64.b64decode(secret["data"][file], validate=True)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    """Returns a builder of a certificate that is valid from now on for `VALID_FOR`."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID_FOR)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
