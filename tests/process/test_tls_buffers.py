"""How much asyncio keeps for a TLS connection."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto

import pytest

from runup.process import memory


async def test_a_connections_buffer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is made afterwards keeps one record; before, what asyncio's own attribute says."""
    # As asyncio has it, also where another test has run a process of the operator in this one; set back at the end.
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", 256 * 1024)

    def buffer_bytes() -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        protocol = sslproto.SSLProtocol(asyncio.get_running_loop(), asyncio.Protocol(), context, None)
        return len(protocol.get_buffer(-1))

    assert buffer_bytes() == 256 * 1024
    memory.limit_buffers()
    assert buffer_bytes() == memory.BUFFER_BYTES
