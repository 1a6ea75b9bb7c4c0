"""Steps of a request that are computed in a thread where they are large, so that the event loop serves others.

In: a function without awaits, and whether its values are large. Out: its result. The interpreter switches between the
thread and the event loop every few milliseconds. A step may read the store, and must not change it.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
# A write of so many values takes about 0.05 s, by far most of it for their field ownership; one of so many bytes less.
_MANY_VALUES, _MANY_BYTES = 1_000, 256 * 1024
# One thread: each further one would take a share of the interpreter from the event loop.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="large-requests")


async def run_step(step: Callable[[], T], *, large: bool) -> T:
    """Returns the result of `step`. Raises what it raises."""
    if not large:
        return step()

    def step_without_collections() -> T:
        # Collecting garbage among millions of new objects would stop all threads for half a second.
        gc.disable()
        try:
            return step()
        except Exception as error:
            # The frames would keep all values of the step until the error is reported.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            gc.enable()

    return await asyncio.get_running_loop().run_in_executor(_THREAD, step_without_collections)


def is_large(*texts: bytes) -> bool:
    """Returns whether JSON or YAML texts have many values, without parsing them."""
    size = sum(map(len, texts))
    if not _MANY_VALUES < size <= _MANY_BYTES:
        return size > _MANY_BYTES
    return sum(text.count(sign) for text in texts for sign in (b",", b"\n", b"[", b"{")) > _MANY_VALUES
