"""Memory that a release needed while it was read, given back to the machine.

What libyaml and JSON took is freed, and glibc keeps it for later: a tenth of the operator's memory, for an hour that
needs none of it. Where the C library has no such call nothing happens.
"""

from __future__ import annotations

import ctypes
import gc


def trim() -> None:
    """Give back what is free."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return
