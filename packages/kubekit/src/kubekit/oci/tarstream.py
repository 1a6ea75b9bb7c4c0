"""Reads a layer as a stream: unpacked piece by piece, hashed, and limited in size.

So a small blob cannot expand without end. The module also finds one file in a layer that is still arriving. The meaning
of names and whiteouts is defined here, so that reading and unpacking agree on it (OCI image-spec, "Whiteouts": they
hide paths of lower layers, never of the same layer).

The limits fit a release on a distribution's base image: a few layers, tens of thousands of entries, a gigabyte
unpacked, three to ten times the packed size. Whatever an image claims, reading it takes less than 100 MiB of memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, Protocol, cast

from kubekit.oci import images
from kubekit.oci.registry_errors import BadImage, BeyondLimits
from kubekit.oci.tar import Archive, BadGzip, BadTar, Entry, GzipStream

MAX_IMAGE_BYTES = 4 * 1024 * 1024 * 1024  # maximum unpacked size of an image
# Maximum number of files, folders and links of an image; each folder beyond `COMMON_DEPTH` counts as one more.
MAX_ENTRIES = 100_000
COMMON_DEPTH = 16  # depth of a path that costs no more than a short one
# Maximum number of names in a path; a distribution's deepest have some 30, and Linux takes 4,096 characters.
MAX_DEPTH = 256
# Maximum ratio of a layer's unpacked to its packed size, beyond `MAX_SMALL_BYTES`; deflate allows 1,032.
MAX_RATIO = 200
MAX_SMALL_BYTES = 64 * 1024 * 1024  # unpacked size that every layer may have, however small its packed size is
# Maximum window of a zstd layer; RFC 8878, 3.1.1.1.2 recommends that every decoder supports as much.
MAX_WINDOW_BYTES = 8 * 1024 * 1024
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# Whiteouts of the folder itself or its parent, which for the root is outside the image.
_NAMELESS = frozenset({WHITEOUT, f"{WHITEOUT}.", f"{WHITEOUT}.."})
_PIECE = 256 * 1024


class Hidden(Enum):
    """An answer about a path that a layer does not have: whether a lower layer may still have it."""

    YES = "this layer hides it"
    NO = "this layer says nothing about it"


@dataclass(slots=True, kw_only=True)
class Budget:
    """The rest of an image's limits, shared by all of its layers."""

    image: str
    bytes: int
    entries: int
    most_bytes: int
    most_entries: int

    @classmethod
    def of(cls, image: str, most_bytes: int | None = None, most_entries: int | None = None) -> Budget:
        """Returns a full budget, by default with the limits of an image that is unpacked."""
        size = MAX_IMAGE_BYTES if most_bytes is None else most_bytes
        count = MAX_ENTRIES if most_entries is None else most_entries
        return cls(image=image, bytes=size, entries=count, most_bytes=size, most_entries=count)

    def take(self, size: int) -> None:
        """Counts unpacked bytes. Raises BeyondLimits."""
        self.bytes -= size
        if self.bytes < 0:
            raise BeyondLimits(f"image {self.image}: unpacks to more than {self.most_bytes} bytes")

    def count(self, depth: int = 0) -> None:
        """Counts an entry whose path has `depth` names. Raises BeyondLimits."""
        if depth > MAX_DEPTH:
            raise BeyondLimits(f"image {self.image}: a path has {depth} names; the limit is {MAX_DEPTH}")
        self.entries -= 1 + max(0, depth - COMMON_DEPTH)
        if self.entries < 0:
            raise BeyondLimits(f"image {self.image}: has more than {self.most_entries} entries")


class Readable(Protocol):
    """The stream of a packed layer."""

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes."""


@contextlib.contextmanager
def open_layer(stream: Readable, layer: images.Descriptor, budget: Budget) -> Iterator[tuple[Archive, Unpacked]]:
    """Opens a layer's archive and unpacked bytes. Raises BadImage for what cannot be read, and for broken data."""
    if layer.media_type not in images.LAYERS:
        raise BeyondLimits(f"image {budget.image}: cannot read a layer of type {layer.media_type}")
    try:
        compression = images.LAYERS[layer.media_type]
        content: Readable = GzipStream(stream) if compression == "gzip" else stream
        content = _Zstd(stream) if compression == "zstd" else content
    except ModuleNotFoundError as error:
        problem = f"layers of type {layer.media_type} need package {error.name}: pip install 'kubekit[zstd]'"
        raise BeyondLimits(f"image {budget.image}: {problem}") from error
    unpacked = Unpacked(content, layer, budget)
    try:
        yield Archive(unpacked), unpacked
    except _WindowTooLarge as error:
        raise BeyondLimits(f"image {budget.image}: layer {layer.digest} cannot be read: {error}") from error
    except (BadTar, EOFError, BadGzip, _BadZstd) as error:
        raise BrokenLayer(f"image {budget.image}: layer {layer.digest} is broken: {error}") from error


class _BadZstd(ValueError):
    """The bytes are not zstd frames."""


class _WindowTooLarge(ValueError):
    """A zstd frame needs a larger window than `MAX_WINDOW_BYTES`; its content may be valid."""


class _Zstd:
    """The unpacked content of zstd frames, one after the other."""

    def __init__(self, stream: Readable) -> None:
        import zstandard  # few images need it, so it is an extra (pyproject.toml)

        self._zstd_error = zstandard.ZstdError
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._reader = unpacker.stream_reader(cast("BinaryIO", stream), read_across_frames=True)

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes, none at the end."""
        try:
            return self._reader.read(size)
        except self._zstd_error as error:
            # libzstd's text for a frame beyond `max_window_size`; the exception has no code.
            kind = _WindowTooLarge if "too much memory" in str(error) else _BadZstd
            raise kind(str(error)) from error


class BrokenLayer(BadImage):
    """The layer cannot be read as the type that it claims."""


class Unpacked:
    """A layer's unpacked bytes, hashed and counted as they are read."""

    def __init__(self, stream: Readable, layer: images.Descriptor, budget: Budget) -> None:
        self._stream = stream
        self._budget = budget
        # Bounds decompression bombs, without rejecting small layers of very compressible files.
        self._most = max(MAX_SMALL_BYTES, MAX_RATIO * layer.size)
        self._left = self._most
        self._hash = hashlib.sha256()
        self._buffer = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        """Returns `size` bytes, fewer only at the end. Raises BadImage beyond the limits."""
        buffered = len(self._buffer) - self._at
        if size <= buffered:
            self._at += size
            return self._buffer[self._at - size : self._at]
        pieces = [self._buffer[self._at :]]
        missing = size - buffered
        while True:
            self._buffer, self._at = self._next_bytes(), 0
            if missing <= len(self._buffer) or not self._buffer:
                pieces.append(self._buffer[:missing])
                self._at = min(missing, len(self._buffer))
                return b"".join(pieces)
            pieces.append(self._buffer)
            missing -= len(self._buffer)

    def rest(self) -> str:
        """Reads to the end and returns the digest of all bytes."""
        while self._next_bytes():
            pass
        return "sha256:" + self._hash.hexdigest()

    def _next_bytes(self) -> bytes:
        """Returns the next unpacked bytes, counted against the limits and hashed. Raises BeyondLimits."""
        data = self._stream.read(_PIECE)
        self._budget.take(len(data))
        self._left -= len(data)
        if self._left < 0:
            raise BeyondLimits(
                f"image {self._budget.image}: a layer unpacks to more than {self._most} bytes, "
                f"{MAX_RATIO} times what it has packed"
            )
        self._hash.update(data)
        return data


def checked_entries(archive: Archive, budget: Budget) -> Iterator[tuple[str, Entry]]:
    """Yields each entry, with its path, but the root. Raises BadImage for too many, or one that leaves the root."""
    for entry in archive:
        budget.count(entry.name.count("/") + 1)
        if path := inner_path(entry.name, budget.image):
            if posixpath.basename(path) in _NAMELESS:
                raise BadImage(f"image {budget.image}: the whiteout {path!r} hides no name")
            yield path, entry


def inner_path(name: str, image: str) -> str:
    """Returns the path from the root, empty for the root itself. Raises BadImage if it leaves the root."""
    # `..` could write outside the root, and a NUL ends a path in system calls.
    if "\0" in name or ".." in name.split("/"):
        raise BadImage(f"image {image}: {name!r} leaves the image's root")
    return posixpath.normpath("/" + name).lstrip("/")


def hidden_by(path: str) -> tuple[str, bool] | None:
    """Returns the path that a whiteout hides, and whether that itself stays (opaque); None for any other path."""
    folder, _, name = path.rpartition("/")
    if not name.startswith(WHITEOUT):
        return None
    return (folder, True) if name == OPAQUE else (posixpath.join(folder, name.removeprefix(WHITEOUT)), False)


def find_in_layer(
    pieces: Iterable[bytes], layer: images.Descriptor, path: str, *, limit: int, budget: Budget
) -> bytes | Hidden:
    """Returns the file `path` of a layer that arrives in `pieces`, or whether lower layers may still have it.

    All pieces are consumed, so that a caller that hashes them sees the whole layer. Raises BadImage, also for a link of
    that name.
    """
    source = Pieces(iter(pieces))
    result: bytes | Hidden = Hidden.NO
    try:
        with open_layer(source, layer, budget) as (archive, unpacked):
            for name, entry in checked_entries(archive, budget):
                if name == path:
                    if not entry.isreg():
                        raise BadImage(f"image {budget.image}: {entry.name} is not a regular file")
                    if entry.size > limit:
                        raise BadImage(f"image {budget.image}: {entry.name} is larger than {limit} bytes")
                    result = b"".join(archive.pieces())
                elif result is Hidden.NO and _hides_path(name, entry, path):
                    result = Hidden.YES
            unpacked.rest()
    except BrokenLayer:
        source.drain()  # where the bytes are not even those of the digest, that is the better answer
        raise
    source.drain()
    return result


def _hides_path(name: str, entry: Entry, path: str) -> bool:
    """Returns whether an entry of an upper layer hides `path` in the layers below it."""
    whiteout = hidden_by(name)
    if whiteout is not None:
        removed_path, stays = whiteout
        return path.startswith(f"{removed_path}/" if removed_path else "") or (not stays and path == removed_path)
    # A file or link hides the paths below a folder of the same name.
    return path.startswith(f"{name}/") and not entry.isdir()


class Pieces:
    """A file-like object over bytes that arrive in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes, none at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._left = piece
        data, self._left = self._left[:size], self._left[size:]
        return data

    def drain(self) -> None:
        """Consumes the rest, such as bytes after the end of a compressed stream."""
        for _ in self._pieces:
            pass
