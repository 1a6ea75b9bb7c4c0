"""Reads the validity of the certificate authorities in a bundle; bundles contain no private keys."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import datetime

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


class BadBundle(ValueError):
    """Error raised if a text is not a bundle of certificates; the message is that of the parser."""


def ends(bundle: str) -> Sequence[datetime]:
    """Returns the end of validity of each certificate in a PEM bundle, in order. Raises BadBundle.

    An empty text is an empty bundle.
    """
    if not bundle.strip():
        return ()
    # Imported here because it takes nine megabytes, which the managing operator, who loads this module, never needs.
    from cryptography import x509

    try:
        return [certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(bundle.encode())]
    except ValueError as error:
        raise BadBundle(str(error).partition(",")[0]) from error


def usable_until(bundle: str) -> datetime | None:
    """Returns when the last certificate of a bundle ends, or None if the API server finds none in it.

    As Go does, it passes over what it cannot read (crypto/x509, AppendCertsFromPEM).
    """
    found: list[datetime] = []
    for block in _CERTIFICATE.findall(bundle):
        with contextlib.suppress(BadBundle):
            found += ends(block)
    return max(found, default=None)
