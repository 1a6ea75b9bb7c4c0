"""SHA-256 of a few bytes without OpenSSL, which `hashlib` loads: that takes a fifth of a bare interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def sha256(data: bytes) -> bytes:
    """Returns the digest, the same as `hashlib.sha256(data).digest()`."""
    digest: bytes = find_algorithm()(data).digest()
    return digest


@cache
def find_algorithm() -> Callable[[bytes], Any]:
    """Returns the interpreter's own SHA-256, looked for once: to miss a module takes longer than a digest."""
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        try:
            algorithm: Callable[[bytes], Any] = import_module(name).sha256
        except ImportError:
            continue
        return algorithm
    import hashlib

    return hashlib.sha256
