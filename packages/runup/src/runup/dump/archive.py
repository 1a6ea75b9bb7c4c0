"""Unpacks a dump that is a tar archive (must-gather's, or the Insights operator's), compressed or not.

The archive is unpacked into a temporary folder for as long as it is read. Only members that may hold objects are
unpacked, up to a size limit, and never outside of that folder. Links in an archive are ignored; those in a folder are
followed inside it.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from kubekit.lang.files import links_inside, remove_tree
from kubekit.oci.tar import Archive, BadTar, GzipStream
from runup.dump.documents import SUFFIXES
from runup.dump.dump_files import BadDump
from runup.dump.dump_limits import MAX_DEPTH, MAX_ENTRIES, check_folder

# A must-gather's objects are some ten megabytes; its logs, which are not unpacked, gigabytes.
MAX_BYTES = 2 * 1024**3
# What unpacking xz may take: its largest preset needs 65 MiB.
MAX_XZ_BYTES = 128 * 1024**2
_PIECE = 64 * 1024
# What archives of other formats begin with: zip (also an empty and a split one), 7z, rar, Zstandard, LZ4.
_OTHER_ARCHIVES = {
    b"PK\3\4": "zip",
    b"PK\5\6": "zip",
    b"PK\7\x08": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\7": "rar",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
# must-gather records its start and end in the one, which gives the dump's time, and in the other whose image it was.
_KEPT = frozenset({"timestamp", "version"})
# Names of a file at the top of an archive: it may have one folder around all, and `./` counts for nothing.
_TOP = 2

_CONFIG_MAPS = "config/configmaps/"
# Bytes of a name and of a path that Linux takes (NAME_MAX, PATH_MAX), and of a suffix that is kept.
_LONGEST_NAME, _LONGEST_PATH, _LONGEST_SUFFIX = 255, 4000, 10


@contextmanager
def open_dump(path: Path, also: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields the folder of the dump at `path`, unpacked if it is an archive; raises BadDump.

    Of an archive of dumps, files whose names end in one of `also` are unpacked, too, if they are at its top.
    """
    if not path.is_file() or path.suffix in SUFFIXES:
        if path.is_dir():
            check_folder(path)
        # A single file is one that the user named, also where it is a link.
        with nullcontext() if path.is_file() else links_inside(path if path.is_dir() else path.parent):
            yield path
        return
    folder = Path(tempfile.mkdtemp(prefix="runup-dump-"))
    try:
        # The archive's name without the suffixes of its format.
        name = path.name
        for suffix in (".gz", ".tgz", ".xz", ".bz2", ".tar"):
            name = name.removesuffix(suffix)
        unpacked = folder / (name or "dump")
        yield _unpack(path, unpacked, also)
    except BadDump as error:
        # Messages name the archive, not the temporary folder.
        raise BadDump(error.message.replace(str(unpacked), str(path)), reason=error.reason) from error
    finally:
        remove_tree(folder)


def _is_kept(name: PurePosixPath, also: tuple[str, ...]) -> bool:
    if name.name.endswith(also) and len(name.parts) <= _TOP:
        return True
    # An Insights archive has a file for each key of a ConfigMap.
    return name.suffix in SUFFIXES or name.name in _KEPT or _CONFIG_MAPS in "/".join(name.parts[:-1]) + "/"


def may_hold_objects(name: PurePosixPath) -> bool:
    """Returns whether a file of a dump, by its path in it, may hold objects or report the dump itself."""
    return _is_kept(name, ())


def _unpack(path: Path, into: Path, also: tuple[str, ...] = ()) -> Path:
    """Unpacks the objects' files of an archive into the folder `into` and returns it. Raises BadDump at a limit."""
    into.mkdir()
    bytes_left, entries_left = MAX_BYTES, MAX_ENTRIES
    try:
        with _decompressed(path) as stream:
            archive = Archive(stream)
            for entry in archive:
                entries_left -= 1
                if entries_left < 0:
                    text = f"{path} has more than {MAX_ENTRIES} entries; give the archive of one dump"
                    raise BadDump(text, reason="DumpTooLarge")
                name = PurePosixPath(entry.name)
                if not entry.isreg() or not _is_kept(name, also):
                    continue
                bytes_left -= entry.size
                if bytes_left < 0:
                    text = f"{path} unpacks to more than {MAX_BYTES // 1024**3} GiB; give the folder of the dump"
                    raise BadDump(text, reason="DumpTooLarge")
                if len(name.parts) > MAX_DEPTH:
                    text = f"{path} has more than {MAX_DEPTH} folders in one another; give the archive of a dump"
                    raise BadDump(text, reason="DumpTooDeep")
                # `name` as a relative path; raises ValueError if it leads outside.
                if ".." in name.parts:
                    raise ValueError(f"{name} leads out of it")
                # Links are never written, so no path can use one.
                with _place(into, name.relative_to(name.anchor)).open("wb") as writer:
                    writer.writelines(archive.pieces())
    except (BadTar, EOFError, OSError, ValueError, lzma.LZMAError) as error:
        why = str(error).partition("\n")[0].rstrip(":")
        way_out = "give a folder, a tar archive, or a file that is named .yaml or .json"
        raise BadDump(f"{path} is not a readable archive ({why}); {way_out}", reason="BadArchive") from error
    return into


def _place(into: Path, name: PurePosixPath) -> Path:
    """Returns where a member is written; its folder is there.

    A name that no file can have here (it is too long, or also that of a folder) is replaced: its objects count all the
    same, and it is next to the others of its folder.
    """
    suffix = name.suffix if len(name.suffix) <= _LONGEST_SUFFIX else ""
    replaced = f"{_digest(name)}{suffix}"
    if len(os.fsencode(into / name)) > _LONGEST_PATH:
        return into / replaced
    folder = into
    for parent in reversed(name.parents[:-1]):
        below = folder / (parent.name if len(os.fsencode(parent.name)) <= _LONGEST_NAME else _digest(parent))
        if below.is_file():
            return folder / replaced
        below.mkdir(exist_ok=True)
        folder = below
    file = folder / name.name
    return folder / replaced if len(os.fsencode(name.name)) > _LONGEST_NAME or file.is_dir() else file


def _digest(name: PurePosixPath) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _decompressed(path: Path) -> BinaryIO:
    """Returns the archive's unpacked bytes, by what it begins with, whatever it is called; the caller closes them."""
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", io.BufferedReader(_Gzip(path)))
    if head.startswith(b"BZh"):
        return cast("BinaryIO", bz2.open(path))
    if head.startswith(b"\xfd7zXZ\0"):
        return cast("BinaryIO", io.BufferedReader(_Xz(path)))
    if kind := next((kind for magic, kind in _OTHER_ARCHIVES.items() if head.startswith(magic)), ""):
        text = f"{path} is a {kind} archive, which runup cannot read; unpack it and give the folder"
        raise BadDump(text, reason="BadArchive")
    return path.open("rb")


class _Gzip(io.RawIOBase):
    """The unpacked bytes of a gzip file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacked = GzipStream(self._file)

    def readable(self) -> bool:
        """Returns that it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fills `buffer`, perhaps in part; returns the number of bytes, 0 at the end."""
        data = self.read_some(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_some(self, size: int) -> bytes:
        """Returns at most `size` unpacked bytes, none at the end."""
        return self._unpacked.read(size)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()


class _Xz(_Gzip):
    """The unpacked bytes of an xz file; `lzma.LZMAFile` takes as much memory as the file's header asks for."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacker = lzma.LZMADecompressor(memlimit=MAX_XZ_BYTES)

    def read_some(self, size: int) -> bytes:
        """Returns at most `size` unpacked bytes, none at the end."""
        while not self._unpacker.eof:
            packed = self._file.read(_PIECE) if self._unpacker.needs_input else b""
            if not packed and self._unpacker.needs_input:
                raise EOFError("it ends before its end marker")
            if data := self._unpacker.decompress(packed, size):
                return data
        return b""
