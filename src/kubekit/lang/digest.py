"""SHA-256 of a few bytes without OpenSSL, which `hashlib` loads: that takes a fifth of a bare interpreter."""

from __future__ import annotations

from importlib import import_module


def sha256(data: bytes) -> bytes:
    """Returns the digest, the same as `hashlib.sha256(data).digest()`."""
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        try:
            digest: bytes = import_module(name).sha256(data).digest()
        except ImportError:
            continue
        return digest
    import hashlib

    return hashlib.sha256(data).digest()
