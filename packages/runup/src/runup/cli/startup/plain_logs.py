"""Leaves rich out of structlog, for the programs of the operator's image.

rich takes 160 million instructions to import, where all imports of a preflight's target had 2345
(docs/decisions/0114-start-up-in-proportion.md).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


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
