"""Reads a tar archive as a stream, with a limit for every header before any of it is stored, and gzip in linear time.

It reads what container tools write: ustar, GNU long names, pax (POSIX.1-2008, "pax Interchange Format"; GNU tar manual,
"Basic Tar Format"). Sparse files, and global headers that name or size every file, are rejected: no image has them, and
readers differ. docs/decisions/0029 says why this is not `tarfile`.

gzip is unpacked as it arrives (RFC 1952), one member after the other, as `gzip.GzipFile` does. GzipFile reads the name
and the comment in a member's header byte by byte, and a layer may have gigabytes of them. Here zlib reads the header,
and the number of members has a limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Protocol

import msgspec

# Maximum size of a long name or pax header: two extended attributes of the size that Linux allows.
MAX_HEADER_BYTES = 128 * 1024
MAX_NAME_BYTES = 4096  # maximum length of a path and of a link's target, in bytes: Linux' PATH_MAX
# Maximum number of extended headers before an entry; writers use one pax header, or one for name and link each.
MAX_HEADERS_IN_A_ROW = 8
REGULAR, HARD_LINK, LINK, CHARACTERS, BLOCKS, FOLDER, PIPE = b"0", b"1", b"2", b"3", b"4", b"5", b"6"

_BLOCK = 512
_EMPTY = bytes(_BLOCK)
_PIECE = 256 * 1024
_LONG_NAME, _LONG_LINK = b"L", b"K"
_PAX = (b"x", b"X")
_GLOBAL = b"g"
_SPARSE = b"S"
# The type of a file before POSIX, and "contiguous": both are regular files.
_FILES = (REGULAR, b"\0", b"7")
_WITHOUT_DATA = (HARD_LINK, LINK, CHARACTERS, BLOCKS, FOLDER, PIPE)
_DECIMAL = re.compile(rb"[0-9]{1,19}\Z")
_LENGTH = re.compile(rb"([0-9]{1,19}) ")
_OF_ONE_ENTRY = ("path", "linkpath", "size")


class BadTar(ValueError):
    """The bytes are not an archive, or exceed the limits."""


class Source(Protocol):
    """The source of an archive."""

    def read(self, size: int) -> bytes:
        """Returns `size` bytes, fewer only at the end."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file, folder, link or device; `linkname` is the target of a link."""

    name: str
    kind: bytes
    size: int
    mode: int
    linkname: str

    def isreg(self) -> bool:
        """Returns whether it is a regular file."""
        return self.kind == REGULAR

    def isdir(self) -> bool:
        """Returns whether it is a folder."""
        return self.kind == FOLDER

    def issym(self) -> bool:
        """Returns whether it is a symbolic link."""
        return self.kind == LINK

    def islnk(self) -> bool:
        """Returns whether it is a hard link."""
        return self.kind == HARD_LINK

    def isdev(self) -> bool:
        """Returns whether it is a device or pipe."""
        return self.kind in (CHARACTERS, BLOCKS, PIPE)


class Archive:
    """The entries of `source` in order; an entry's content can be read until the next entry is requested."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = 0
        self._padding = 0
        self._at_start = True

    def __iter__(self) -> Iterator[Entry]:
        """Yields the entries. Raises BadTar."""
        while (entry := self._next_entry()) is not None:
            yield entry

    def pieces(self) -> Iterator[bytes]:
        """Yields the rest of the current entry's content. Raises BadTar if the archive ends in it."""
        while self._left:
            piece = self._source.read(min(self._left, _PIECE))
            if not piece:
                raise BadTar("it ends in the middle of a file")
            self._left -= len(piece)
            yield piece

    def _next_entry(self) -> Entry | None:
        """Returns the next entry, with the long name and pax records before it; None at the end. Raises BadTar."""
        extended: dict[str, bytes] = {}
        for _ in range(MAX_HEADERS_IN_A_ROW + 1):
            block = self._next_header()
            if block is None:
                return None
            kind, size = block[156:157], _parse_number(block[124:136])
            if kind in (_LONG_NAME, _LONG_LINK):
                extended["path" if kind == _LONG_NAME else "linkpath"] = self._read_extended(size).split(b"\0", 1)[0]
            elif kind in _PAX:
                extended |= _pax_records(self._read_extended(size))
            elif kind == _GLOBAL:
                for key in _pax_records(self._read_extended(size)):
                    if key in _OF_ONE_ENTRY or key.startswith("GNU.sparse."):
                        raise BadTar(f"a global header gives every entry a {key}")
            else:
                return self._make_entry(block, kind, size, extended)
        raise BadTar(f"more than {MAX_HEADERS_IN_A_ROW} extended headers belong to one entry")

    def _make_entry(self, block: bytes, kind: bytes, size: int, extensions: dict[str, bytes]) -> Entry:
        """Returns the entry of a header; the extended headers before it take precedence. Raises BadTar."""
        if kind == _SPARSE or any(key.startswith("GNU.sparse.") for key in extensions):
            raise BadTar("it has a sparse file, which is not read")
        plain_name = _until_nul(block[0:100])
        # In GNU tar's format this field has times; in POSIX it is the first part of a long name.
        if block[257:263] == b"ustar\0" and (prefix := _until_nul(block[345:500])):
            plain_name = prefix + b"/" + plain_name
        name = _decode_name(extensions.get("path", b"") or plain_name, "name")
        link = _decode_name(extensions.get("linkpath", b"") or _until_nul(block[157:257]), "link")
        if "size" in extensions:
            if _DECIMAL.match(extensions["size"]) is None:
                raise BadTar(f"a file's size is {extensions['size'][:40]!r}")
            size = int(extensions["size"])
        # Before POSIX, a folder was a file whose name ends in a slash.
        if kind == b"\0" and name.endswith("/"):
            kind = FOLDER
        self._expect_content(0 if kind in _WITHOUT_DATA else size)
        # Only the permission bits are used, so an invalid mode is replaced by a default.
        mode = _parse_number(block[100:108], or_else=0o644)
        return Entry(
            name=name,
            kind=REGULAR if kind in _FILES else kind,
            size=self._left,
            mode=mode & 0o7777,
            linkname=link,
        )

    def _next_header(self) -> bytes | None:
        """Returns the next header, None at the end of the archive."""
        if self._left or self._padding:
            for _ in self.pieces():
                pass
            self._source.read(self._padding)
        block = self._source.read(_BLOCK)
        if not block and not self._at_start:
            return None
        if len(block) < _BLOCK:
            raise BadTar("it is cut short" if block else "it is empty")
        self._at_start = False
        if block == _EMPTY:
            return None
        checksum = _parse_number(block[148:156])
        without = sum(block[:148]) + sum(block[156:]) + 8 * ord(" ")
        # Some writers summed signed bytes (POSIX ustar).
        if checksum not in (without, without - 256 * sum(byte > 127 for byte in block[:148] + block[156:])):
            raise BadTar("a header's checksum does not hold")
        return block

    def _read_extended(self, size: int) -> bytes:
        if size > MAX_HEADER_BYTES:
            raise BadTar(f"a header has {size} bytes; the limit is {MAX_HEADER_BYTES}")
        self._expect_content(size)
        return b"".join(self.pieces())

    def _expect_content(self, size: int) -> None:
        """Sets how many bytes of content follow, with the padding to a whole block."""
        self._left, self._padding = size, -size % _BLOCK


def _until_nul(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decode_name(name: bytes, header_part: str) -> str:
    if len(name) > MAX_NAME_BYTES:
        raise BadTar(f"a {header_part} has {len(name)} bytes; the limit is {MAX_NAME_BYTES}")
    return name.decode("utf-8", "surrogateescape")


def _parse_number(field: bytes, *, or_else: int | None = None) -> int:
    """Returns a header's number, octal or base-256. Raises BadTar if it is neither, unless `or_else` is given."""
    plain = field.strip(b" \0")
    if not plain.strip(b"01234567"):
        return int(plain or b"0", 8)
    # Base-256, which GNU tar uses for numbers that do not fit in octal digits.
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    if or_else is None:
        raise BadTar(f"{field!r} is not a number")
    return or_else


def _pax_records(data: bytes) -> dict[str, bytes]:
    """Returns the records `LENGTH KEY=VALUE\\n` of a pax header."""
    records: dict[str, bytes] = {}
    position = 0
    while position < len(data):
        length = _LENGTH.match(data, position)
        if length is None:
            raise BadTar("a pax header is malformed")
        end = position + int(length[1])
        key, sign, value = data[length.end() : end - 1].partition(b"=")
        if not sign or data[end - 1 : end] != b"\n":
            raise BadTar("a pax header is malformed")
        records[key.decode("utf-8", "replace")] = value
        position = end
    return records


# Maximum number of members; an eStargz layer has some for each of its files. Each takes four microseconds.
MAX_MEMBERS = 1_000_000
# Of packed bytes: what is behind a member's end is copied once, so that small members need small pieces.
_PACKED_PIECE = 16 * 1024
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
            data = self._left or self._packed.read(_PACKED_PIECE)
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
        """Begins the next member; returns False if it does not exist. Zeros between and behind members are skipped."""
        while True:
            if self._members:
                self._left = self._left.lstrip(b"\0")
            if self._left:
                break
            self._left = self._packed.read(_PACKED_PIECE)
            if not self._left:
                return False
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BadGzip(f"it has more than {MAX_MEMBERS} gzip members")
        self._member = zlib.decompressobj(_GZIP)
        return True
