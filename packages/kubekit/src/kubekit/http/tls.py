"""The TLS contexts of clients, which trust certificates as Go's clients do."""

from __future__ import annotations

import ssl


def client_context(authorities: str = "", *, ca_file: str = "") -> ssl.SSLContext:
    """Returns a context that trusts the certificates (PEM) given, or the system's if none are.

    As in Go (crypto/x509, `Certificate.Verify`), each of these certificates ends a chain, also one that is no
    authority: a webhook's caBundle may be its own certificate. Extensions that RFC 5280 demands of an authority may be
    missing, which Python refuses from 3.13 on. Raises OSError (ssl.SSLError among them) for a file or a text without
    certificates, and ValueError for a text that is not ASCII.
    """
    context = ssl.create_default_context(cafile=ca_file or None, cadata=authorities or None)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
