"""Varints, the numbers of protocol buffers (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns the varint at `at`, and the position after it. Raises IndexError, and OverflowError beyond 70 bits."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise OverflowError("a varint has more than ten bytes")


def write_varint(value: int) -> bytes:
    """Returns a number as a varint; a negative one in two's complement of 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
