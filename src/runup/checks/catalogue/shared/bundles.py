"""Until when the certificate authorities of a bundle are valid; private keys are in none of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


class BadBundle(ValueError):
    """The text is no bundle of certificates; the message says what the reader said."""


def ends(bundle: str) -> Sequence[datetime]:
    """When each certificate of a PEM bundle ends, in its order; raises BadBundle. Empty text is an empty bundle."""
    if not bundle.strip():
        return ()
    # Nine megabytes, which the managing operator loads this room without ever needing.
    from cryptography import x509

    try:
        return [certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(bundle.encode())]
    except ValueError as error:
        raise BadBundle(str(error).partition(",")[0]) from error
