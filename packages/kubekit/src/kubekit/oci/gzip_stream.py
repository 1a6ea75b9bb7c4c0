"""Unpacks gzip as it arrives (RFC 1952): one member after the other, as `gzip.GzipFile` does, but in linear time.

GzipFile reads the name and the comment in a member's header byte by byte, and a layer may have gigabytes of them. Here
zlib reads the header, and the number of members has a limit.
"""

from __future__ import annotations

import zlib
from typing import Protocol

MAX_MEMBERS = 1_000_000
"""Maximum number of members; an eStargz layer has some for each of its files. Each takes four microseconds."""

# Of packed bytes: what is behind a member's end is copied once, so that small members need small pieces.
_PIECE = 16 * 1024
# For zlib: a gzip header and trailer, with the largest window.
_GZIP = 16 + zlib.MAX_WBITS


class BadGzip(ValueError):
    """The bytes are not gzip members, or are too many of them."""


class Packed(Protocol):
    """The stream of packed bytes."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes, none at the end."""


class GzipStream:
    """The unpacked content of gzip members."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._left = b""
        # None between two members.
        self._member: zlib._Decompress | None = None
        self._members = 0

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes, none at the end. Raises BadGzip, and EOFError inside a member."""
        while self._member is not None or self._begin_member():
            assert self._member is not None
            data = self._left or self._packed.read(_PIECE)
            if not data:
                raise EOFError("the packed bytes end before the end of a gzip member")
            try:
                unpacked = self._member.decompress(data, size)
            except zlib.error as error:
                raise BadGzip(str(error)) from error
            if self._member.eof:
                self._left, self._member = self._member.unused_data, None
            else:
                self._left = self._member.unconsumed_tail
            if unpacked:
                return unpacked
        return b""

    def _begin_member(self) -> bool:
        """Begins the next member; returns False if there is none. Zeros between and behind members are skipped."""
        while True:
            if self._members:
                self._left = self._left.lstrip(b"\0")
            if self._left:
                break
            self._left = self._packed.read(_PIECE)
            if not self._left:
                return False
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BadGzip(f"it has more than {MAX_MEMBERS} gzip members")
        self._member = zlib.decompressobj(_GZIP)
        return True
