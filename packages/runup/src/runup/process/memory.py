"""Limits what a process that runs for months spends on garbage collection and on the buffers of its connections."""

from __future__ import annotations

import gc
from asyncio import sslproto

_ALLOCATIONS = 20_000


def collect_rarely() -> None:
    """Lets the garbage collector run after every 20,000 new objects from now on.

    By default Python runs it after every 700, and now and then on all objects that there are. With the 300,000 pods of
    a cluster that was a twelfth of the time until the first report (`python -m bench checks`).
    """
    gc.set_threshold(_ALLOCATIONS)


BUFFER_BYTES = 16 * 1024
"""A record of TLS has 16 KiB at most; a longer answer is read in more turns."""


def limit_buffers() -> None:
    """Makes the buffers of TLS connections that are made from now on `BUFFER_BYTES` large.

    By default asyncio fills 256 KiB with zeros for each connection, whatever arrives. A process that watches forty
    kinds has forty connections for months, over which hardly anything arrives: ten MiB (docs/decisions/0109).
    """
    sslproto.SSLProtocol.max_size = BUFFER_BYTES
