"""Reads files that a user named, up to a limit; writes files whole or not at all; removes folders that others filled.

A device or a disk image is an error and does not fill memory. A removal handles folders of any depth in bounded memory,
with a handful of open files, and follows no link: `shutil.rmtree` calls itself and keeps a file open for each level, so
that a folder 1,000 deep ends it, by an error that it does not ignore. Here a folder's folders are moved up next to it
before it is removed, so that no path is longer than two names.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024
# The largest files read this way are whole update graphs, of some 10 MiB.
MAX_BYTES = 64 * MIB


# The folder of `links_inside`; empty outside of such a block.
_ROOT: ContextVar[str] = ContextVar("_ROOT", default="")


@contextmanager
def links_inside(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Makes `read_limited` refuse files of `folder` that are links out of it, until the block ends.

    Others fill such a folder: a link could lead to a file that only the reader may read, such as `/proc/self/environ`.
    The folder itself may be a link, and links within it may be absolute.
    """
    token = _ROOT.set(os.path.abspath(folder))  # noqa: PTH100
    try:
        yield
    finally:
        _ROOT.reset(token)


def _leads_out(path: str, root: str) -> bool:
    """Returns whether a path below `root` is or passes a link that leads to a place outside of it."""
    real_root = os.path.realpath(root)
    is_below = path.startswith(root.rstrip(os.sep) + os.sep)
    return is_below and os.path.commonpath((real_root, os.path.realpath(path))) != real_root


def read_limited(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """Returns the file's content. Raises OSError as reading does, and EFBIG if it has more than `limit` bytes.

    Within `links_inside`, raises EXDEV for a link that leads out of that folder.
    """
    if (root := _ROOT.get()) and _leads_out(os.path.abspath(path), root):  # noqa: PTH100
        raise OSError(errno.EXDEV, f"it is a link that leads out of {root}", os.fspath(path))
    with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not needed to talk to a cluster
        # A sparse file is refused before memory for what it claims to hold is asked for.
        data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        too_large = len(data) > limit or os.fstat(file.fileno()).st_size > limit
    if too_large:
        raise OSError(errno.EFBIG, f"it holds more than {limit // MIB} MiB", os.fspath(path))
    return data


def lines_limited(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> Iterator[bytes]:
    """Yields the file's lines, of which one is in memory. Raises OSError, and EFBIG for a line of more than `limit`."""
    with open(path, "rb") as file:  # noqa: PTH123
        while line := file.readline(limit + 1):
            if len(line) > limit:
                raise OSError(errno.EFBIG, f"a line holds more than {limit // MIB} MiB", os.fspath(path))
            yield line


# Inode, time of modification (ns), size in bytes.
FileVersion = tuple[int, int, int]


def stamp_of(file: Path) -> FileVersion:
    """Returns a value that differs whenever the file was replaced or written. Raises OSError if it does not exist."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_whole(path: str | os.PathLike[str], content: str | bytes | Iterable[str | bytes]) -> None:
    """Writes the file so that readers find either its old content or all of `content`, even if the disk is full.

    What is no regular file (a pipe, `/dev/stdout`), or is in a folder that takes no new file, is written as it is.
    Content in parts is written part by part. Raises OSError that names the file.
    """
    parts = (content,) if isinstance(content, str | bytes) else content
    data = (part if isinstance(part, bytes) else part.encode() for part in parts)
    try:
        if not _write_beside(os.path.realpath(path), data):
            with open(path, "wb") as file:  # noqa: PTH123
                file.writelines(data)
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


def _write_beside(path: str, data: Iterable[bytes]) -> bool:
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
            stream.writelines(data)
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


MAX_ENTRIES = 1_000_000  # the number of entries that one call removes at most
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Entries that are looked at together: a folder may have millions.
_TOGETHER = 1000


class _Stuck(OSError):
    """Error raised if no further entry of a folder can be removed."""


def remove_tree(path: Path, most: int = MAX_ENTRIES) -> str:
    """Removes the folder `path` with all that it holds; returns why something of it is left, or an empty text.

    A link in its place is not followed. Contents on other file systems are removed too, if they can be moved.
    """
    with ExitStack() as stack:
        try:
            parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, parent)
            root = os.open(path.name, _FOLDER, dir_fd=parent)
            stack.callback(os.close, root)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return error.strerror or str(error)
        try:
            if not _Removal(root, most).run():
                return f"it has more than {most} entries"
            os.rmdir(path.name, dir_fd=parent)
        except OSError as error:
            return error.strerror or str(error)
    return ""


class _Removal:
    def __init__(self, root: int, most: int) -> None:
        self._root = root
        self._removals_left = most
        self._names = count()
        self._error: OSError | None = None

    def run(self) -> bool:
        """Empties the folder; returns False if it has more than `most` entries. Raises OSError if one stays."""
        while batch := list(_first_entries(self._root)):
            left_before = self._removals_left
            for name, is_folder in batch:
                if self._removals_left <= 0:
                    return False
                if not is_folder:
                    self._do_step(os.unlink, name, self._root)
                elif self._empty_folder(name):
                    self._do_step(os.rmdir, name, self._root)
            if self._removals_left == left_before:
                raise self._error or _Stuck("it is filled again and again")
        return True

    def _empty_folder(self, name: str) -> bool:
        """Unlinks the files of a folder and moves its folders up to the root; returns whether nothing is left in it."""
        try:
            folder = os.open(name, _FOLDER, dir_fd=self._root)
        except OSError as error:
            self._error = error
            return False
        try:
            while batch := list(_first_entries(folder)):
                left_before = self._removals_left
                for path, is_folder in batch:
                    if self._removals_left <= 0:
                        return False
                    self._do_step(self._move_up if is_folder else os.unlink, path, folder)
                if self._removals_left == left_before:
                    return False
            return True
        finally:
            os.close(folder)

    def _move_up(self, name: str, *, dir_fd: int) -> None:
        """Moves a folder up to the root under a new name, so that paths never become too long. Raises OSError."""
        # A name that is taken already may be a folder with something in it: then the next number is tried.
        for number in islice(self._names, 3):
            try:
                os.rename(name, f".removed-{os.getpid()}-{number}", src_dir_fd=dir_fd, dst_dir_fd=self._root)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return
        raise _Stuck(f"{name} cannot be moved")

    def _do_step(self, step: Callable[..., None], name: str, folder: int) -> None:
        """Does and counts one step; an error is stored, because other entries may still be removable."""
        try:
            step(name, dir_fd=folder)
        except FileNotFoundError:
            self._removals_left -= 1
        except OSError as error:
            self._error = error
        else:
            self._removals_left -= 1


def _first_entries(folder: int) -> Iterator[tuple[str, bool]]:
    """Yields the first entries of a folder: the name, and whether it is a folder itself."""
    with os.scandir(folder) as entries:
        for entry in islice(entries, _TOGETHER):
            yield entry.name, entry.is_dir(follow_symlinks=False)


class Lossy:
    """A wrapper of `stream` that ignores its errors; a closed stream (ValueError) counts as full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes `text`, or drops it if that fails."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Writes the buffered text, or keeps it if that fails."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
