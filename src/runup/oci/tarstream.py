"""A layer as a stream: unpacked piece by piece, hashed, and bounded, so that a small blob cannot grow without end.

Also the search for one file in a layer that is still arriving. What a name or a whiteout means is here, so that reading
and unpacking agree on it (OCI image-spec, "Whiteouts": they hide what lower layers have, never what their own has).
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import posixpath
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import BinaryIO, cast

from runup.oci import images
from runup.oci.errors import BadImage
from runup.oci.images import Descriptor

MAX_IMAGE_BYTES = 4 * 1024 * 1024 * 1024
"""Most that an image may unpack to."""

MAX_ENTRIES = 1_000_000
"""Most files, folders and links of a layer."""

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# What would hide the folder itself, or the one above it, which for the root is not the image's.
_NAMELESS = frozenset({WHITEOUT, f"{WHITEOUT}.", f"{WHITEOUT}.."})
_PIECE = 1 << 20


class Hidden(Enum):
    """Whether what a layer does not have may still be in a lower one."""

    YES = "this layer hides it"
    NO = "this layer says nothing about it"


@contextlib.contextmanager
def opened(stream: BinaryIO, layer: Descriptor, image: str, *, limit: int) -> Iterator[tuple[tarfile.TarFile, Hashed]]:
    """A layer's archive and the hash of what it unpacks to; raises BadImage for another type, and for broken data."""
    if layer.media_type not in images.LAYERS:
        raise BadImage(f"image {image}: cannot read a layer of type {layer.media_type}")
    packed = images.LAYERS[layer.media_type] == "gzip"
    plain = Hashed(cast("BinaryIO", gzip.GzipFile(fileobj=stream)) if packed else stream, image, limit)
    try:
        with tarfile.open(fileobj=cast("BinaryIO", plain), mode="r|") as archive:
            yield archive, plain
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadImage(f"image {image}: layer {layer.digest} is broken: {error}") from error


class Hashed:
    """A stream that hashes what is read from it, up to a limit."""

    def __init__(self, stream: BinaryIO, image: str, limit: int) -> None:
        self._stream = stream
        self._image = image
        self._limit = limit
        self._left = limit
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises BadImage beyond the limit."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise BadImage(f"image {self._image}: a layer unpacks to more than {self._limit} bytes")
        self._hash.update(data)
        return data

    def rest(self) -> str:
        """The digest of all of it."""
        while self.read(_PIECE):
            pass
        return "sha256:" + self._hash.hexdigest()


def entries(archive: tarfile.TarFile, image: str) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """The path of each entry and the entry, without the root; raises BadImage for too many, or one that leaves it."""
    for number, entry in enumerate(archive, start=1):
        if number > MAX_ENTRIES:
            raise BadImage(f"image {image}: a layer has more than {MAX_ENTRIES} entries")
        if path := inner_path(entry.name, image):
            if posixpath.basename(path) in _NAMELESS:
                raise BadImage(f"image {image}: the whiteout {path!r} hides no name")
            yield path, entry


def inner_path(name: str, image: str) -> str:
    """The path from the root, empty for the root itself; raises BadImage where it leaves the root."""
    if "\0" in name or ".." in name.split("/"):
        raise BadImage(f"image {image}: {name!r} leaves the image's root")
    return posixpath.normpath("/" + name).lstrip("/")


def hidden_by(path: str) -> tuple[str, bool] | None:
    """What the whiteout `path` hides and whether that itself stays (an opaque folder); None where it is no whiteout."""
    folder, _, name = path.rpartition("/")
    if not name.startswith(WHITEOUT):
        return None
    return (folder, True) if name == OPAQUE else (posixpath.join(folder, name.removeprefix(WHITEOUT)), False)


def find_in_layer(pieces: Iterable[bytes], layer: Descriptor, path: str, *, limit: int, image: str) -> bytes | Hidden:
    """The file `path` of a layer that arrives in `pieces`, or whether lower layers may still have it.

    All pieces are taken, so that whoever hashes them sees the whole. Raises BadImage, also for a link of that name.
    """
    source = _Pieces(iter(pieces))
    found: bytes | Hidden = Hidden.NO
    with opened(cast("BinaryIO", io.BufferedReader(source)), layer, image, limit=MAX_IMAGE_BYTES) as (archive, plain):
        for name, entry in entries(archive, image):
            if name == path:
                found = _content(archive, entry, limit, image)
            elif found is Hidden.NO and _hides(name, entry, path):
                found = Hidden.YES
        plain.rest()
    source.drain()
    return found


def _hides(name: str, entry: tarfile.TarInfo, path: str) -> bool:
    whiteout = hidden_by(name)
    if whiteout is not None:
        gone, stays = whiteout
        return path.startswith(f"{gone}/" if gone else "") or (not stays and path == gone)
    # A file or link where the path has a folder.
    return path.startswith(f"{name}/") and not entry.isdir()


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo, limit: int, image: str) -> bytes:
    if not entry.isreg():
        raise BadImage(f"image {image}: {entry.name} is no regular file")
    if entry.size > limit:
        raise BadImage(f"image {image}: {entry.name} is larger than {limit} bytes")
    return cast("BinaryIO", archive.extractfile(entry)).read()


class _Pieces(io.RawIOBase):
    """Bytes that arrive in pieces, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill `buffer` with what is there; 0 at the end."""
        view = memoryview(cast("bytearray", buffer))
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        count = min(len(view), len(self._left))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count

    def drain(self) -> None:
        """Take what is left, such as what follows the end of a compressed stream."""
        for _ in self._pieces:
            pass
