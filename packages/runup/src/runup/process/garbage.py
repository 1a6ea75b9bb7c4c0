"""How often a process that keeps the objects of a whole cluster looks for garbage.

By default Python looks after every 700 new objects, and now and then at all objects that there are. With 300,000 pods
that was a twelfth of the time until the first report (`python -m bench checks`).
"""

from __future__ import annotations

import gc

_ALLOCATIONS = 20_000


def collect_rarely() -> None:
    """Lets the garbage collector look after every 20,000 new objects from now on."""
    gc.set_threshold(_ALLOCATIONS)
