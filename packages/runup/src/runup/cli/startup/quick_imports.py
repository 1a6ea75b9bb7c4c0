"""Imports the libraries of the operator's processes, the target's among them, without what they load just in case.

An administrator waits for the first risks, and the process that finds them spends most of that time on its imports. In
millions of instructions, where a bare interpreter has 41 and all imports of the process had 2345: aiohttp reads the
machine's certificate authorities twice (470), and the garbage collector walks what has been imported again and again
(80). Without both, the imports take 60 % longer (docs/decisions/0114-start-up-in-proportion.md). structlog's rich (160)
is left out by `leave_rich_out`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
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


class _WithoutRich:
    """A finder by which rich is not found by modules of structlog, and found as ever by others."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: object = None) -> None:
        """Returns None. Raises ModuleNotFoundError for rich while structlog is being imported."""
        modules = (sys.modules.get(module) for module in ("structlog.tracebacks", "structlog.dev"))
        # Python marks the specification of a module that is being imported.
        specs = (getattr(module, "__spec__", None) for module in modules)
        if name == "rich" and any(getattr(spec, "_initializing", False) for spec in specs):
            raise ModuleNotFoundError("structlog does without it", name=name)


def leave_rich_out() -> None:
    """Lets structlog be imported without rich from now on.

    structlog would colour with it what developers read; the operator's log is JSON. It does without rich where that is
    not installed. It always is here, for it draws the tables of commands, and with Pygments it is 5 MiB for as long as
    the operator runs (docs/decisions/0109).
    """
    if _WithoutRich not in sys.meta_path:
        sys.meta_path.insert(0, _WithoutRich)
