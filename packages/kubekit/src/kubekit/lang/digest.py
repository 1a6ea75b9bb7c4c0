"""SHA-256 of a few bytes without OpenSSL, which `hashlib` loads: that takes a fifth of a bare interpreter."""

from __future__ import annotations

import sys
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
    """Returns the interpreter's own SHA-256."""
    try:
        algorithm: Callable[[bytes], Any] = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # a Python that was built without it
        import hashlib

        return hashlib.sha256
    return algorithm
