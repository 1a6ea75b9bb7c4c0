"""Reads files that a user named, up to a limit: a device or a disk image is an error and does not fill memory.

Writes them whole or not at all.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

MIB = 1024 * 1024
# The largest files read this way are whole update graphs, of some 10 MiB.
MAX_BYTES = 64 * MIB


def read_limited(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """Returns the file's content. Raises OSError as reading does, and EFBIG if it has more than `limit` bytes."""
    with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not needed to talk to a cluster
        # A sparse file is refused before memory for what it claims to hold is asked for.
        data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        too_large = len(data) > limit or os.fstat(file.fileno()).st_size > limit
    if too_large:
        raise OSError(errno.EFBIG, f"it holds more than {limit // MIB} MiB", os.fspath(path))
    return data


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes the file so that readers find either its old content or all of `content`, even if the disk is full.

    What is no regular file (a pipe, `/dev/stdout`), or is in a folder that takes no new file, is written as it is.
    Raises OSError that names the file.
    """
    real = os.path.realpath(path)
    data = content if isinstance(content, bytes) else content.encode()
    try:
        if not _write_beside(real, data):
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write_new(path: str | os.PathLike[str], text: str) -> None:
    """Writes a new file as a whole. Raises FileExistsError if it exists, and OSError."""
    import tempfile  # not needed to read

    handle, scratch = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".writing-")  # noqa: PTH120
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(scratch, 0o666 & ~_umask())  # noqa: PTH101
        try:
            # Unlike a rename, a link refuses a name that another process has taken meanwhile.
            os.link(scratch, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path)) from None
            os.rename(scratch, path)  # noqa: PTH104
    finally:
        with suppress(OSError):
            os.unlink(scratch)  # noqa: PTH108


def _write_beside(path: str, data: bytes) -> bool:
    """Writes a new file and gives it the name `path`; returns False where that is not possible."""
    import tempfile  # not needed to read

    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode  # noqa: PTH116
    if mode is not None and not stat.S_ISREG(mode):
        return False
    try:
        handle, scratch = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".writing-")  # noqa: PTH120
    except PermissionError:
        return False
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        # mkstemp lets only its owner read.
        os.chmod(scratch, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))  # noqa: PTH101
        os.replace(scratch, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(scratch)  # noqa: PTH108
        raise
    return True


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
