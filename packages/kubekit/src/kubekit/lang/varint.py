"""Varints and fields of protocol buffers (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _BYTES = 0, 1, 2


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


def write_bytes_field(number: int, value: bytes) -> bytes:
    """Returns a field with bytes, a text in UTF-8, or an encoded message."""
    return write_varint(number << 3 | _BYTES) + write_varint(len(value)) + value


def write_int_field(number: int, value: int) -> bytes:
    """Returns a field with an integer or a boolean."""
    return write_varint(number << 3 | _VARINT) + write_varint(int(value))


def write_double_field(number: int, value: float) -> bytes:
    """Returns a field with a number of 64 bits."""
    return write_varint(number << 3 | _FIXED64) + struct.pack("<d", value)
