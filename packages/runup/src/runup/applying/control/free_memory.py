"""Returns memory that was needed to read a release to the system, with glibc's malloc_trim(3).

glibc keeps the memory that libyaml and JSON have freed: a tenth of the operator's memory, which is not needed again for
an hour.
"""

from __future__ import annotations

import ctypes
import gc


def trim() -> None:
    """Returns free memory to the system; does nothing if the C library has no `malloc_trim`."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return
