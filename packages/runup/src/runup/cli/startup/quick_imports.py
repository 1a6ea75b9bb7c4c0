"""Imports the libraries of the operator's processes, the target's among them, without what they load just in case.

An administrator waits for the first risks, and the process that finds them spends most of that time on its imports. In
millions of instructions, where a bare interpreter has 41 and all imports of the process had 2345: aiohttp reads the
machine's certificate authorities twice (470), and the garbage collector walks what has been imported again and again
(80). Without both, the imports take 60 % longer (docs/decisions/0114-start-up-in-proportion.md). structlog's rich (160)
is left out by `plain_logs`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables that tell OpenSSL where the machine's certificate authorities are."""


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
    own (`kubekit.kube.transport`, `runup.process.http_fetch`). One that did would trust nobody, and so fail.
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
