"""Reads the validity of the certificate authorities in a bundle; bundles contain no private keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


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
