"""Unpacks an OpenPGP message within a size limit, before a library reads it (RFC 9580, 4.2 and 5.6).

A message may be compressed, and what is compressed may be compressed again: 600 bytes become gigabytes. GnuPG
compresses signed messages, so one level is read; it is replaced by what it holds.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

_COMPRESSED = 8
_PACKET, _NEW_FORMAT = 0x80, 0x40
_INDETERMINATE = 3
# First octets of a new-format length: two octets from 192 on, partial from 224 on, five octets for 255.
_TWO, _PARTIAL, _FIVE = 192, 224, 255


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


# RFC 9580, 9.4. Without an algorithm (0) the packets are there as they are.
_ALGORITHMS: dict[int, Callable[[], _Decompressor]] = {
    1: lambda: zlib.decompressobj(-zlib.MAX_WBITS),
    2: zlib.decompressobj,
    3: bz2.BZ2Decompressor,
}


class BadMessage(ValueError):
    """The bytes are not a binary OpenPGP message, or one that is too large or compressed more than once."""


def decompress_message(message: bytes, limit: int) -> bytes:
    """Returns the packets of `message` without compression, `limit` bytes at most. Raises BadMessage."""
    tags = list(_read_packets(message))
    if [tag for tag, _ in tags] == [_COMPRESSED]:
        message = _decompress_packet(tags[0][1], limit)
        tags = list(_read_packets(message))
    if any(tag == _COMPRESSED for tag, _ in tags):
        raise BadMessage("the message is compressed more than once")
    return message


def _decompress_packet(body: bytes, limit: int) -> bytes:
    """Returns the content of a compressed-data packet (RFC 9580, 5.6), `limit` bytes at most. Raises BadMessage."""
    algorithm, data = body[0] if body else -1, body[1:]
    if algorithm == 0:
        return data
    if algorithm not in _ALGORITHMS:
        raise BadMessage(f"the message is compressed by an unknown algorithm {algorithm}")
    try:
        packets = _ALGORITHMS[algorithm]().decompress(data, limit + 1)
    except (zlib.error, OSError) as error:
        raise BadMessage(f"the message cannot be decompressed: {error}") from error
    if len(packets) > limit:
        raise BadMessage(f"the message decompresses to more than {limit} bytes")
    return packets


def _read_packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields tag and body of each packet."""
    at = 0
    while at < len(data):
        first = data[at]
        if not first & _PACKET:
            raise BadMessage("it is not a binary OpenPGP message")
        if first & _NEW_FORMAT:
            body, at = _new_body(data, at + 1)
            yield first & 0x3F, body
        else:
            size = 1 << (first & 3)
            start = at + 1 + size
            end = start + int.from_bytes(data[at + 1 : start], "big")
            if first & 3 == _INDETERMINATE:
                start, end = at + 1, len(data)
            yield (first >> 2) & 0xF, _slice_or_fail(data, start, end)
            at = end


def _new_body(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns the body of a packet of the new format, and where it ends. It may consist of parts."""
    parts: list[bytes] = []
    while True:
        length, start, last = _new_length(data, at)
        at = start + length
        parts.append(_slice_or_fail(data, start, at))
        if last:
            return b"".join(parts), at


def _new_length(data: bytes, at: int) -> tuple[int, int, bool]:
    """Returns the length at `at`, where the body or its next part begins, and whether that is the last part."""
    octets = _slice_or_fail(data, at, at + 1)
    if octets[0] < _TWO:
        return octets[0], at + 1, True
    if octets[0] < _PARTIAL:
        return ((octets[0] - _TWO) << 8) + _slice_or_fail(data, at + 1, at + 2)[0] + _TWO, at + 2, True
    if octets[0] == _FIVE:
        return int.from_bytes(_slice_or_fail(data, at + 1, at + 5), "big"), at + 5, True
    return 1 << (octets[0] & 0x1F), at + 1, False


def _slice_or_fail(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise BadMessage("the message ends inside a packet")
    return data[start:end]
