"""Keeps structlog from importing rich, with which it would colour what developers read; the operator's log is JSON.

structlog does without rich where it is not installed. It always is here, for it draws the tables of commands, and with
Pygments it is 5 MiB for as long as the operator runs (docs/decisions/0109).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


class _WithoutRich:
    """A finder by which rich is not found by modules of structlog, and found as ever by others."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: object = None) -> None:
        """Returns None. Raises ModuleNotFoundError for rich while structlog is being imported."""
        if name == "rich" and _is_half_made("structlog.tracebacks", "structlog.dev"):
            raise ModuleNotFoundError("structlog does without it", name=name)


def install() -> None:
    """Lets structlog be imported without rich from now on."""
    if _WithoutRich not in sys.meta_path:
        sys.meta_path.insert(0, _WithoutRich)


def _is_half_made(*names: str) -> bool:
    """Returns whether one of the modules is being imported: Python marks such a module's specification."""
    modules = (sys.modules.get(name) for name in names)
    return any(getattr(getattr(module, "__spec__", None), "_initializing", False) for module in modules)
