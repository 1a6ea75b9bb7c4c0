"""Reads validity and signatures of the certificates in a bundle; bundles contain no private keys."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from kubekit.api.core_v1 import ConfigMap
from runup.checks.decide.reads import Slim, slim_metadata
from runup.rules import admin_acks

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


# Begin and end of a certificate's validity.
Validity = tuple[datetime, datetime]


# How long the owner of an authority may take to renew it; it looks every minute.
PATIENCE = timedelta(hours=1)


class BadBundle(ValueError):
    """Error raised if a text is not a bundle of certificates; the message is that of the parser."""


def validities(bundle: str) -> Sequence[Validity]:
    """Returns the validity of each certificate in a PEM bundle, in order. Raises BadBundle.

    An empty text is an empty bundle.
    """
    if not bundle.strip():
        return ()
    # Imported here because it takes nine megabytes, which the managing operator, who loads this module, never needs.
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(bundle.encode())
    except ValueError as error:
        raise BadBundle(str(error).partition(",")[0]) from error
    return [(certificate.not_valid_before_utc, certificate.not_valid_after_utc) for certificate in certificates]


def expiry_times(bundle: str) -> Sequence[datetime]:
    """Returns the end of validity of each certificate in a PEM bundle, in order. Raises BadBundle."""
    return [end for _, end in validities(bundle)]


def is_late(validity: Validity, now: datetime) -> bool:
    """Returns whether an authority should have been renewed before: with a fifth of its life left (library-go)."""
    begin, end = validity
    return now >= end - (end - begin) / 5 + PATIENCE


def last_validity(bundle: str) -> Validity | None:
    """Returns the validity of the certificate of a bundle that ends last, or None if the API server finds none in it.

    As Go does, it passes over what it cannot read (crypto/x509, AppendCertsFromPEM).
    """
    found_validities: list[Validity] = []
    for block in _CERTIFICATE.findall(bundle):
        with contextlib.suppress(BadBundle):
            found_validities += validities(block)
    return max(found_validities, key=lambda validity: validity[1], default=None)


def weak_signature(bundle: str) -> str:
    """Returns SHA-1 or MD5 if an authority signed a certificate of the bundle with it, else an empty string.

    A self-signed certificate does not count, since its signature is not verified. Text that cannot be parsed is
    skipped.
    """
    for block in _CERTIFICATE.findall(bundle):
        # Imported here for the same reason as above.
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm

        with contextlib.suppress(ValueError, UnsupportedAlgorithm):
            certificate = x509.load_pem_x509_certificate(block.encode())
            algorithm = certificate.signature_hash_algorithm
            if certificate.issuer != certificate.subject and algorithm is not None and algorithm.name in _WEAK:
                return _WEAK[algorithm.name]
    return ""


_WEAK = {"sha1": "SHA-1", "md5": "MD5"}


BUNDLE = "ca-bundle.crt"


def _slim_config_map(config_map: ConfigMap) -> ConfigMap:
    """Returns the ConfigMap with its CA bundle only, or with all data if it holds gates or acknowledgements."""
    keeps_all = config_map.metadata.name in (admin_acks.GATES, admin_acks.ACKS)
    data = {key: value for key, value in config_map.data.items() if keeps_all or key == BUNDLE}
    return ConfigMap(metadata=slim_metadata(config_map), data=data)


def _read_of_namespace(namespace: str) -> Slim:
    """Returns the read of one namespace's ConfigMaps."""
    return Slim(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        namespaced=True,
        type=ConfigMap,
        keep=_slim_config_map,
        namespace=namespace,
    )


CONFIG, MANAGED = _read_of_namespace("openshift-config"), _read_of_namespace("openshift-config-managed")
