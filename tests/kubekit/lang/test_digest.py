"""SHA-256 without OpenSSL."""

from __future__ import annotations

import hashlib
import sys

import pytest

from kubekit.lang.digest import find_algorithm, sha256

# The first two: FIPS 180-4's own examples.
_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("data", "digest"),
    [(b"", _EMPTY), (b"abc", _ABC), (b"a" * 1000, hashlib.sha256(b"a" * 1000).hexdigest())],
    ids=["nothing", "a few bytes", "several blocks"],
)
def test_it_is_the_digest(data: bytes, digest: str) -> None:
    """Byte for byte."""
    assert sha256(data).hex() == digest


def test_a_python_without_its_own_takes_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both modules are the interpreter's private ones: either may go."""
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, None)
    find_algorithm.cache_clear()
    try:
        assert sha256(b"abc").hex() == _ABC
    finally:
        find_algorithm.cache_clear()
