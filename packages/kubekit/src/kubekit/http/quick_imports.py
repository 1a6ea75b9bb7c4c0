"""Imports the libraries of a process that waits for requests or changes, without what they load just in case.

A person or a test waits until such a process is ready, and most of that time is imports. aiohttp reads the machine's
certificate authorities twice, and the garbage collector walks what has been imported again and again. Without this
module, an API server of kubesandbox takes 24 % longer until it is ready, and the imports of a preflight's target take
60 % longer (docs/decisions/0114-start-up-in-proportion.md).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables by which OpenSSL finds the machine's certificate authorities."""


@contextmanager
def quick_imports() -> Iterator[None]:
    """Prepares for imports of the whole process, and afterwards exempts their objects from garbage collection."""
    gc.disable()
    try:
        _import_aiohttp()
        yield
    finally:
        gc.freeze()
        gc.enable()


def _import_aiohttp() -> None:
    """Imports aiohttp as where the machine has no certificate authorities.

    aiohttp makes its default contexts when it is imported. Nothing of ours uses them: a connection has a context of its
    own (`kubekit.kube.transport`, `kubekit.http.tls`, `runup.process.http_fetch`). One that did would trust nobody, and
    so fail.
    """
    kept = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        import aiohttp  # noqa: F401
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
