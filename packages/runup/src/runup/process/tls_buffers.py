"""Bounds the buffer that asyncio keeps for each TLS connection.

It is 256 KiB, filled with zeros when the connection is made, whatever arrives. A process that watches forty kinds has
forty connections for months, over which hardly anything arrives: ten MiB (docs/decisions/0109).
"""

from __future__ import annotations

from asyncio import sslproto

BUFFER_BYTES = 16 * 1024
"""A record of TLS has 16 KiB at most; a longer answer is read in more turns."""


def limit_buffers() -> None:
    """Makes the buffers of connections that are made from now on `BUFFER_BYTES` large."""
    sslproto.SSLProtocol.max_size = BUFFER_BYTES
